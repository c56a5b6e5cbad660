package shell

import "strings"

// speech is how a program takes words that are no paths. Where an option is not
// known, the operands behind it are not told apart: a file that is taken for a
// pattern would be a file that no rule sees.
type speech struct {
	// flags are short options without a value, valued those that take the rest
	// of their word or the next one.
	flags, valued string
	// said are those of valued whose value is no path.
	said string
	// long are long options without a value, longValued those that take the
	// next word, longSaid those of them whose value is no path.
	long, longValued, longSaid string
	// operands is how many of the first operands are no paths; instead are the
	// options, short and long, with which none is.
	operands int
	instead  string
}

var (
	grepSpeech = speech{
		flags: "acEFGHhIiLlnoPqRrsTUVvwxyZz0123456789", valued: "efABCDdm", said: "eABCDdm", operands: 1,
		long: ` extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp line-regexp null-data no-messages
			invert-match version help byte-offset line-number line-buffered with-filename no-filename only-matching quiet silent text recursive
			dereference-recursive files-without-match files-with-matches count initial-tab null color colour `,
		longValued: " regexp file max-count after-context before-context context include exclude exclude-dir exclude-from label binary-files ",
		longSaid:   " regexp max-count after-context before-context context include exclude exclude-dir ", instead: "ef regexp file",
	}
	rgSpeech = speech{
		flags: "acFHhiIlLnNopPqsSuUvVwxz0", valued: "efABCmgtTjMErd", said: "eABCmgtTjMErd", operands: 1,
		long: ` ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp invert-match count count-matches files-with-matches
			files-without-match line-number no-line-number hidden no-ignore no-ignore-vcs no-heading heading json multiline pcre2 only-matching quiet
			text stats follow column vimgrep pretty color version help no-filename with-filename trim null binary passthru no-messages `,
		longValued: " regexp file glob iglob type type-not max-count after-context before-context context max-depth replace sort threads max-columns ",
		longSaid:   " regexp glob iglob type type-not max-count after-context before-context context max-depth replace sort threads max-columns ",
		instead:    "ef regexp file",
	}
	sedSpeech = speech{
		flags: "nErszui", valued: "efl", said: "el", operands: 1, long: " quiet silent regexp-extended separate null-data unbuffered in-place posix debug ",
		longValued: " expression file line-length ", longSaid: " expression ", instead: "ef expression file",
	}
	awkSpeech = speech{valued: "Fvf", said: "Fv", operands: 1, long: " posix csv ", instead: "f"}
)

// speeches by program.
var speeches = map[string]speech{
	"grep": grepSpeech, "egrep": grepSpeech, "fgrep": grepSpeech, "zgrep": grepSpeech, "rg": rgSpeech, "sed": sedSpeech,
	"awk": awkSpeech, "gawk": awkSpeech, "mawk": awkSpeech, "nawk": awkSpeech,
	"sd": {flags: "Fspi", valued: "nf", said: "nf", operands: 2},
	"jq": {flags: "nrRscCSaej", operands: 1, long: " raw-output null-input slurp compact-output exit-status sort-keys raw-input join-output "},
	"tr": {flags: "cCdst", operands: 2, long: " complement delete squeeze-repeats truncate-set1 "},
	"cut": {flags: "snz", valued: "dfbc", said: "dfbc", longValued: " delimiter fields bytes characters output-delimiter ",
		longSaid: " delimiter fields bytes characters output-delimiter "},
}

// messages are the options whose value is a message, by program and
// subcommand.
var messages = map[string]string{
	"git commit": " -m -am --message --author ", "git tag": " -m -am --message ", "git merge": " -m --message ", "git stash": " -m --message ",
	"git notes": " -m --message ", "git log": " --grep --author -S -G ",
	"gh pr": " -t --title -b --body ", "gh issue": " -t --title -b --body ", "gh release": " -t --title -n --notes ",
}

// pathless are programs none of whose words is a path.
var pathless = set("sleep kill pkill pgrep wait seq exit return break continue shift expr nproc id whoami ps true false : umask jobs yes")

// references are git's subcommands whose operands are revisions and branches,
// with the number of the first operands that may be more than that.
var references = map[string]int{
	"branch": 0, "tag": 0, "switch": 0, "merge": 0, "rebase": 0, "cherry-pick": 0, "revert": 0, "rev-parse": 0, "merge-base": 0, "describe": 0,
	"push": 1, "fetch": 1, "pull": 1,
}

// prose returns the indexes of the words that are no paths.
func prose(words []word) []int {
	name := programName(words[0].text)
	out := spoken(name, words)
	for i, r := range words[1:] {
		if r.front == someFront && strings.HasPrefix(r.shape, Hole) && strings.Trim(r.shape, Hole) == "" {
			out = append(out, i+1) // a number or a revision
		}
	}
	return out
}

// spoken are the words that are no paths by the grammar of the program.
func spoken(name string, words []word) []int {
	if s, ok := speeches[name]; ok {
		return s.read(words)
	}
	if pathless[name] {
		out := make([]int, 0, len(words)-1)
		for i := range words[1:] {
			out = append(out, i+1)
		}
		return out
	}
	if name == "git" && len(words) > 2 {
		if first, ok := references[words[1].text]; ok && words[1].fixed() {
			return referred(words, first)
		}
	}
	if name != "git" && name != "gh" || len(words) < 3 {
		return nil
	}
	return messagesOf(words, nil)
}

// messagesOf adds the messages of git and gh.
func messagesOf(words []word, out []int) []int {
	valued, ok := messages[programName(words[0].text)+" "+words[1].text]
	if !ok {
		return out
	}
	for i := 2; i < len(words); i++ {
		switch a := words[i].text; {
		case a == "--":
			return out
		case !words[i].fixed() && !words[i].one:
			return out // it may be an option that takes the next word
		case strings.HasPrefix(a, "--message="), strings.HasPrefix(a, "--grep="), strings.HasPrefix(a, "--title="), strings.HasPrefix(a, "--body="):
			out = append(out, i)
		case strings.Contains(valued, " "+a+" ") && i+1 < len(words):
			i++
			out = append(out, i)
		}
	}
	return out
}

// referred are the operands behind the first ones of a git command.
func referred(words []word, skip int) (out []int) {
	for i := 2; i < len(words); i++ {
		switch r := words[i]; {
		case !r.one || r.fixed() && strings.HasPrefix(r.text, "-") && r.text != "-u" && r.text != "-d" && r.text != "-D" && r.text != "-f" && r.text != "--force" && r.text != "--tags":
			return messagesOf(words, out)
		case r.fixed() && strings.HasPrefix(r.text, "-"):
		case skip > 0:
			skip--
		default:
			out = append(out, i)
		}
	}
	return out
}

// read tells the words apart as far as the options are known.
func (s speech) read(words []word) (out []int) {
	operands, seen := s.operands, 0
	var early []int // operands found before an option that stands in for them
	for i := 1; i < len(words); i++ {
		r, a := words[i], words[i].text
		switch {
		case !r.fixed() && (!r.one || r.front == ""):
			return append(out, early...) // an option, or more words than one
		case a == "--":
			for i++; i < len(words) && seen < operands; i++ {
				early, seen = append(early, i), seen+1
			}
			return append(out, early...)
		case len(a) < 2 || a[0] != '-':
			if seen < operands {
				early, seen = append(early, i), seen+1
			}
			continue
		}
		takes, said, instead, ok := s.option(a)
		if !ok {
			return out
		}
		if instead {
			operands, early = 0, nil
		}
		if said {
			out = append(out, i)
		}
		if takes && i+1 < len(words) {
			if i++; said {
				out[len(out)-1] = i
			}
		}
	}
	return append(out, early...)
}

// option reads one option: whether it takes the next word, whether its value is
// no path, whether it stands in for the operands.
func (s speech) option(a string) (takes, said, instead, ok bool) {
	if name, isLong := strings.CutPrefix(a, "--"); isLong {
		name, _, inline := strings.Cut(name, "=")
		key := " " + name + " "
		instead = strings.Contains(" "+s.instead+" ", key)
		if strings.Contains(s.longValued, key) {
			return !inline, strings.Contains(s.longSaid, key), instead, true
		}
		return false, false, instead, strings.Contains(strings.Join(strings.Fields(" "+s.long+" "), " ")+" ", name+" ")
	}
	short, _, _ := strings.Cut(s.instead, " ")
	for i := 1; i < len(a); i++ {
		c := a[i : i+1]
		switch {
		case strings.Contains(s.valued, c):
			return i+1 == len(a), strings.Contains(s.said, c), strings.Contains(short, c), true
		case c == "i" && strings.Contains(s.longValued, "line-length"):
			return false, false, false, true // sed's -i takes the rest of its word
		case !strings.Contains(s.flags, c):
			return false, false, false, false
		}
	}
	return false, false, false, true
}
