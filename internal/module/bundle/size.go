package bundle

// The bundler goes down one level of its stack for everything in a script that
// opens one, and its stack overflow cannot be recovered from: a project's file
// must not take down the process that looks at it. Some levels also cost time in
// the square of their number. So what opens levels is counted, closed or not, in
// strings and comments too: a count that believed a closer could be fooled by one
// in a comment.
const (
	maxLevels      = 20000 // brackets, signs and words in front of an expression
	maxSlow        = 5000  // statements within statements, and what reads as a type's <
	maxAssignments = 60000
)

// tooMuch says whether a script opens more levels than the bundler is asked for.
func tooMuch(text string) bool {
	levels, slow, assignments, word := 0, 0, 0, 0
	for i := 0; i <= len(text); i++ {
		c := byte(0)
		if i < len(text) {
			c = text[i]
		}
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			continue
		}
		switch text[word:i] {
		case "if", "for", "while", "else", "do", "with", "switch", "try":
			slow++
		case "typeof", "new", "void", "await", "yield", "delete", "async", "class", "function":
			levels++
		}
		word = i + 1
		switch c {
		case '(', '[', '{', '`', '!', '~', '?', '>':
			levels++
		case '<':
			slow++
		case '=':
			assignments++
		}
		if levels > maxLevels || slow > maxSlow || assignments > maxAssignments {
			return true
		}
	}
	return false
}
