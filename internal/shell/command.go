// Package shell reads the text that an agent wants to hand to a shell, for
// rules to be matched against: every command found anywhere in it, and whether
// the whole is one plain command that does nothing but what its words say.
//
// It reads bash syntax, runs nothing and touches neither files nor environment.
package shell

import (
	"path"
	"slices"
	"strings"
)

// Limits of what a parser is let near: its recursion is an attacker's to
// drive, and a stack overflow cannot be recovered from.
const (
	// MaxText is the longest text that is parsed, in bytes.
	MaxText = 64 << 10
	// MaxNesting is how deep a text may nest.
	MaxNesting = 200
	// maxOpeners bounds everything in a text that opens a level, closed or not.
	maxOpeners = 4096
	// maxPayloads is how deep payloads (bash -c 'bash -c …') are followed.
	maxPayloads = 8
	// maxUnits bounds the commands taken from one text.
	maxUnits = 4096
)

// The reasons that stand in Command.Why. Some are followed by ":" and the
// program they are about.
const (
	WhyNoCommand   = "no-command"
	WhyTooLarge    = "too-large"
	WhyTooDeep     = "too-deep"
	WhyUnparseable = "unparseable"
	WhyControl     = "control-character"
	WhyNotSimple   = "not-a-simple-command"
	WhyExpansion   = "expansion"
	WhyAssignment  = "assignment"
	WhyRedirect    = "redirect"
	WhyWrapper     = "wrapper"
	WhyInterpreter = "interpreter"
	WhyOption      = "option"
	WhyRuns        = "runs-other"

	// WhyContinuation: a backslash before a line's end. Shells and parsers differ
	// over where that joins two lines and where it does not.
	WhyContinuation = "line-continuation"
)

// Command is one shell text, read.
type Command struct {
	// Text is the text as it was given.
	Text string
	// Simple is the proof: the structure of the text is one that is understood,
	// and all of its commands are proven to do nothing but what their words and
	// redirections say.
	Simple bool
	// Why names what is missing for Simple; "" if nothing is. For a program it
	// is "wrapper:sudo", "interpreter:python3", "option:git -c" or
	// "runs-other:sed": no option of it that runs others is known to be used, and
	// none is known not to be.
	Why string
	// Structure is Why without regard to the proof of single commands.
	Structure string
	// Opaque: the text was not parsed. Units then come from a rough cut at
	// everything that might separate commands, and prove nothing.
	Opaque bool
	// Units are all commands found anywhere in the text, in its order, with
	// those that a known wrapper or payload carries behind their carrier.
	Units []Unit
	// Loose are words outside of any command that may name a file: the items
	// of a loop, assigned values, operands of [[ ]].
	Loose []string
	// Handed are the texts of here-strings and of here-documents of one line:
	// what a command may read into a variable.
	Handed []string
}

// Unit is one command found in a text.
type Unit struct {
	// Text is the words joined by single blanks; for a unit without words, as
	// a lone redirection, the text as written.
	Text string
	// Words are the words with quotes and escapes removed and braces expanded.
	// What cannot be known, as $x or $(y), stands as written.
	Words []string
	// Shape is Text with Hole for all that the shell computes: what an allow has
	// to match. Without holes it is Text.
	Shape string
	// Kinds says what is known of each word; a word without one is Unknown.
	Kinds []Kind
	// Prose are the indexes, in order, of words that are no paths by the grammar of the
	// program: the pattern of grep, a script of sed, the message of a commit.
	Prose []int
	// Literal says that every word stands for itself.
	Literal bool
	// Why is what is missing for the proof that the command does nothing but
	// what its words and redirections say; "" for a proven one. See Command.Why.
	Why string
	// Modifier says that the command only passes on the one it carries, which
	// follows among the units with Via set, and does nothing of its own: timeout
	// and nice with a literal command behind them. The carried one decides.
	Modifier bool
	// Dir is the directory in which the command runs, as the literal "cd"s in
	// front of it say: absolute or relative to the call's; "" for the call's own.
	Dir string
	// Elsewhere are further directories in which it may run, where a "cd" in
	// front may have failed or not been reached.
	Elsewhere []string
	// Lost says that nobody can tell in which directory the command runs.
	Lost bool
	// Assigns are the assignments in front, as "NAME=value".
	Assigns []string
	// Redirects in the order of the text.
	Redirects []Redirect
	// Via says what carries the unit: "" for a command of the text itself,
	// else the wrapper or shell that would run it.
	Via string
	// Fed: its input is what another command or the text itself says.
	Fed bool
	// Decides: the unit is carried by a Modifier, and stands for it.
	Decides bool
	// Idle: no program runs, as for an assignment or a test. Beside other
	// commands it needs no rule of its own.
	Idle bool
	// Place is where the unit stands; only Locate says so, and not of units
	// without words.
	Place *Place
}

// Program is the first word; "" if the unit has none.
func (u *Unit) Program() string {
	if len(u.Words) == 0 {
		return ""
	}
	return u.Words[0]
}

// Readings are other texts under which a rule may speak of the command: its
// program by its base name, and git without the options in front of its
// subcommand.
func (u *Unit) Readings() []string {
	if len(u.Words) == 0 {
		return nil
	}
	var out []string
	base, args := path.Base(u.Words[0]), u.Words[1:]
	if base != u.Words[0] {
		out = append(out, join(base, args))
	}
	if name := strings.TrimPrefix(base, "="); name != base && name != "" {
		out = append(out, join(name, args)) // zsh: the path of a command
	}
	if base == "git" {
		if _, rest := cut(args, gitValued); len(rest) > 0 && len(rest) < len(args) {
			out = append(out, join(base, rest))
		}
	}
	return out
}

// Subcommand is the words of the unit, for git without the options in front of
// its subcommand.
func (u *Unit) Subcommand() []string {
	if len(u.Words) == 0 || programName(u.Words[0]) != "git" {
		return u.Words
	}
	_, rest := cut(u.Words[1:], gitValued)
	if len(rest) == len(u.Words)-1 && u.Words[0] == "git" {
		return u.Words
	}
	return append([]string{"git"}, rest...)
}

// gitQuiet are options in front of git's subcommand that change nothing of what
// it does.
var gitQuiet = []string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}

// Plain is the text of a proven command of git without the options in front of
// its subcommand that only say where it runs and how it shows what it found; ""
// for every other command.
func (u Unit) Plain() string {
	if u.Why != "" || len(u.Words) < 3 || u.Words[0] != "git" || u.Shape != u.Text {
		return ""
	}
	i := 1
	for i < len(u.Words) && u.Kind(i) == Fixed {
		switch w := u.Words[i]; {
		case slices.Contains(gitQuiet, w):
			i++
			continue
		case w == "-C" && i+1 < len(u.Words) && u.Kind(i+1) == Fixed:
			i += 2
			continue
		}
		break
	}
	if i == 1 || i >= len(u.Words) || strings.HasPrefix(u.Words[i], "-") {
		return ""
	}
	return join("git", u.Words[i:])
}

func join(program string, args []string) string {
	return strings.Join(append([]string{program}, args...), " ")
}

// Kind is what is known of a word. Its zero value is the strictest.
type Kind uint8

// The kinds of words.
const (
	// Unknown: the shell computes it, and it may be anything, also several words
	// or none.
	Unknown Kind = iota
	// Glob: the shell replaces it by the names of files that it matches.
	Glob
	// Fixed: it stands for itself.
	Fixed
)

// Kind of word i; Unknown where none is recorded.
func (u *Unit) Kind(i int) Kind {
	if i < len(u.Kinds) {
		return u.Kinds[i]
	}
	return Unknown
}

// IsProse says whether word i is no path.
func (u *Unit) IsProse(i int) bool {
	_, found := slices.BinarySearch(u.Prose, i)
	return found
}

// Redirect is one redirection to or from a file; duplicated descriptors and
// here-documents are not listed.
type Redirect struct {
	// Target is the file, unquoted as Unit.Words are.
	Target string
	// Literal says that the target stands for itself.
	Literal bool
	// Read and Write say which way the data goes; both for <>.
	Read, Write bool
}
