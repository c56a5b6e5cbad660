package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// simpleEscapes are the escapes of $'…' that stand for one byte.
var simpleEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': '\n', 'r': '\r', 't': '\t', 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiC decodes the inside of $'…'.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		i += 1 + escape(&b, s[i+1:])
	}
	// bash ends the quoted text at an encoded NUL.
	text, _, _ := strings.Cut(b.String(), "\x00")
	return text
}

// escape writes what the escape at the start of s (behind its backslash) stands
// for and returns how many bytes of s it takes.
func escape(b *strings.Builder, s string) int {
	if c, ok := simpleEscapes[s[0]]; ok {
		b.WriteByte(c)
		return 1
	}
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		return number(b, s, 0, 3, 8)
	case c == 'x':
		return number(b, s, 1, 2, 16)
	case c == 'u':
		return number(b, s, 1, 4, 16)
	case c == 'U':
		return number(b, s, 1, 8, 16)
	case c == 'c' && len(s) > 1:
		b.WriteByte(s[1] & 0x1f)
		return 2
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1
}

// number decodes up to most digits of s behind skip bytes.
func number(b *strings.Builder, s string, skip, most, base int) int {
	n := skip
	for n < len(s) && n-skip < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(s[skip:n], base, 32)
	switch {
	case err != nil: // no digits: bash keeps the text
		b.WriteString(`\` + s[:n])
	case base == 16 && s[0] != 'x':
		b.WriteString(string(utf8.AppendRune(nil, rune(v))))
	default:
		b.WriteByte(byte(v))
	}
	return n
}
