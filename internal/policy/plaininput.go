package policy

// plainArguments reads the plainest of inputs: one object of texts in printable
// ASCII without escapes, each name once. ok is false for every other, valid or
// not, which is for the strict reader to judge; FuzzPlainArguments holds the two
// together.
func plainArguments(input []byte) (args map[string]any, ok bool) {
	r := plainReader{text: string(input)}
	if !r.sign('{') {
		return nil, false
	}
	args = map[string]any{}
	for {
		name, ok := r.quoted()
		if !ok || !r.sign(':') {
			return nil, false
		}
		value, ok := r.quoted()
		if _, twice := args[name]; !ok || twice {
			return nil, false
		}
		args[name] = value
		if r.sign(',') {
			continue
		}
		if !r.sign('}') {
			return nil, false
		}
		r.blanks()
		return args, r.at == len(r.text)
	}
}

// plainReader stands at a place in a text.
type plainReader struct {
	text string
	at   int
}

func (r *plainReader) blanks() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// sign reads one sign, and the blanks in front of it.
func (r *plainReader) sign(c byte) bool {
	r.blanks()
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// quoted reads a text between quotes.
func (r *plainReader) quoted() (string, bool) {
	if !r.sign('"') {
		return "", false
	}
	for from := r.at; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return r.text[from : r.at-1], true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}
