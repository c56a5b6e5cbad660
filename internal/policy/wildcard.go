package policy

import (
	"strings"
	"unicode/utf8"
)

// MaxPattern is the longest a pattern may be, in bytes.
const MaxPattern = 1024

// wildcard is a compiled pattern: '*' is any run of characters, slashes and
// newlines included, '?' is one character, a trailing " *" also matches with
// nothing behind the word, everything else is itself. A pattern matches the
// whole value, and letters count as written.
//
// Matching takes time linear in the value (times the pattern's words of 64
// characters where it holds '?'): a value is an attacker's to choose, and a
// backtracking matcher would be his to stall.
type wildcard struct {
	text string
	// bare is the value without the trailing " *"; hasBare says there is one.
	bare    *wildcard
	hasBare bool
	// parts are the texts between the stars. One part: no star, the pattern is
	// matched whole. The first part is anchored at the start, the last at the
	// end.
	parts []part
}

// compileWildcard compiles pattern. Every text is a pattern.
func compileWildcard(pattern string) wildcard {
	w := wildcard{text: pattern, parts: compileParts(pattern)}
	if rest, ok := strings.CutSuffix(pattern, " *"); ok {
		w.hasBare, w.bare = true, &wildcard{text: rest, parts: compileParts(rest)}
	}
	return w
}

func compileParts(pattern string) []part {
	texts := strings.Split(pattern, "*")
	parts := make([]part, len(texts))
	for i, t := range texts {
		parts[i] = compilePart(t)
	}
	return parts
}

// any says whether the pattern is nothing but stars.
func (w wildcard) any() bool { return w.text != "" && strings.Trim(w.text, "*") == "" }

// literal says whether the pattern matches only its own text.
func (w wildcard) literal() bool { return !strings.ContainsAny(w.text, "*?") }

// match says whether the pattern matches the whole of value.
func (w wildcard) match(value string) bool {
	if matchParts(w.parts, value) {
		return true
	}
	return w.hasBare && matchParts(w.bare.parts, value)
}

func matchParts(parts []part, value string) bool {
	n, ok := parts[0].prefix(value)
	if !ok {
		return false
	}
	if len(parts) == 1 {
		return n == len(value)
	}
	value = value[n:]
	last := &parts[len(parts)-1]
	if !last.suffix(value) {
		return false // sooner told than what stands in between
	}
	for i := 1; i < len(parts)-1; i++ {
		// The earliest end is always the best choice: what follows can only
		// gain from more text.
		end := parts[i].find(value)
		if end < 0 {
			return false
		}
		value = value[end:]
	}
	return last.suffix(value)
}

// part is a run of a pattern without stars.
type part struct {
	text string
	// chars is the number of characters; masks is set where the part holds
	// '?': bit i of masks[r] says that r may stand at i.
	chars int
	// run is the longest text in it without '?'.
	run   string
	wild  []uint64
	masks map[rune][]uint64
	// ascii is masks for the characters of ASCII, where one word holds them.
	ascii *[utf8.RuneSelf]uint64
}

func compilePart(text string) part {
	p := part{text: text}
	if !strings.Contains(text, "?") {
		return p
	}
	for run := range strings.SplitSeq(text, "?") {
		if len(run) > len(p.run) {
			p.run = run
		}
	}
	p.chars = utf8.RuneCountInString(text)
	words := (p.chars + 63) / 64
	p.wild, p.masks = make([]uint64, words), map[rune][]uint64{}
	i := 0
	for _, r := range text {
		if r == '?' {
			p.wild[i/64] |= 1 << (i % 64)
		} else {
			if p.masks[r] == nil {
				p.masks[r] = make([]uint64, words)
			}
			p.masks[r][i/64] |= 1 << (i % 64)
		}
		i++
	}
	for _, m := range p.masks {
		for i := range m {
			m[i] |= p.wild[i]
		}
	}
	if words == 1 {
		p.ascii = new([utf8.RuneSelf]uint64)
		for c := range p.ascii {
			if p.ascii[c] = p.wild[0]; p.masks[rune(c)] != nil {
				p.ascii[c] = p.masks[rune(c)][0]
			}
		}
	}
	return p
}

// prefix says whether value starts with the part, and how many bytes it took.
func (p *part) prefix(value string) (int, bool) {
	if p.masks == nil {
		return len(p.text), strings.HasPrefix(value, p.text)
	}
	n := 0
	for _, want := range p.text {
		if n == len(value) {
			return 0, false
		}
		got, size := utf8.DecodeRuneInString(value[n:])
		if want != '?' && want != got {
			return 0, false
		}
		n += size
	}
	return n, true
}

// suffix says whether value ends with the part.
func (p *part) suffix(value string) bool {
	if p.masks == nil {
		return strings.HasSuffix(value, p.text)
	}
	n := len(value)
	for range p.chars {
		if n == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(value[:n])
		n -= size
	}
	_, ok := p.prefix(value[n:])
	return ok
}

// find returns where the first occurrence of the part in value ends, -1 if
// there is none.
func (p *part) find(value string) int {
	if p.masks == nil {
		i := strings.Index(value, p.text)
		if i < 0 {
			return -1
		}
		return i + len(p.text)
	}
	if !strings.Contains(value, p.run) {
		return -1 // the scan takes a hundred times as long
	}
	return p.scan(value)
}

// scan is the bit-parallel search: bit i of state says that the last i+1
// characters read match the first i+1 of the part.
func (p *part) scan(value string) int {
	if p.ascii != nil {
		return p.scanShort(value)
	}
	state := make([]uint64, len(p.wild))
	top, bit := (p.chars-1)/64, uint64(1)<<((p.chars-1)%64)
	for i := 0; i < len(value); {
		r, size := utf8.DecodeRuneInString(value[i:])
		i += size
		mask, ok := p.masks[r]
		if !ok {
			mask = p.wild
		}
		carry := uint64(1)
		for w := range state {
			out := state[w] >> 63
			state[w] = (state[w]<<1 | carry) & mask[w]
			carry = out
		}
		if state[top]&bit != 0 {
			return i
		}
	}
	return -1
}

// scanShort is scan for a part of at most 64 characters.
func (p *part) scanShort(value string) int {
	state, bit := uint64(0), uint64(1)<<(p.chars-1)
	for i := 0; i < len(value); {
		mask := p.wild[0]
		if c := value[i]; c < utf8.RuneSelf {
			mask = p.ascii[c]
			i++
		} else {
			r, size := utf8.DecodeRuneInString(value[i:])
			if m := p.masks[r]; m != nil {
				mask = m[0]
			}
			i += size
		}
		if state = (state<<1 | 1) & mask; state&bit != 0 {
			return i
		}
	}
	return -1
}
