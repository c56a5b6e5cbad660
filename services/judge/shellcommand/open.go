package shellcommand

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
)

// Why an ask is not looked into; the words of the record.
const (
	missHumanOnly = "human-only"
	missFloor     = "other-floor"
	missNoCommand = "no-command"
	missReading   = "other-reading"
)

// opaque are the kinds of floor that say that the commands in a text could not
// be proven. A floor of another kind is about more than the text, as an argument
// that changes what runs, and no decomposition answers it.
var opaque = []string{
	shell.WhyInterpreter, shell.WhyWrapper, shell.WhyRuns, shell.WhyNotSimple, shell.WhyExpansion, shell.WhyAssignment, shell.WhyRedirect, shell.WhyOption,
	shell.WhyContinuation, shell.WhyUnparseable, shell.WhyTooDeep, shell.WhyTooLarge, shell.WhyControl,
}

func onBash(e protocol.Entry) bool { return e.Surface == surfaceBash }

// speaksOfShell says whether an ask is this link's business: a shell text that
// is open because its reading proves too little.
func speaksOfShell(asks []protocol.Entry) bool {
	return slices.ContainsFunc(asks, func(e protocol.Entry) bool { return onBash(e) && e.Floor && opaqueFloor(e) })
}

func opaqueFloor(e protocol.Entry) bool {
	kind, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(e.MatchedPattern, "<"), ">"), ":")
	return strings.HasPrefix(e.MatchedPattern, "<") && slices.Contains(opaque, kind)
}

// command is the text of a call that may be looked into; miss says why it may
// not be.
func command(r link.Request) (text, miss string) {
	for _, e := range r.Asks {
		switch {
		case e.HumanOnly:
			return "", missHumanOnly // the gate would cap an allow: spare the model
		case e.Floor && !(onBash(e) && opaqueFloor(e)):
			return "", missFloor
		}
	}
	text = brief.Command(r.Ask.Tool)
	if text == "" {
		text = argv(r.Ask.Tool)
	}
	if strings.TrimSpace(text) == "" {
		return "", missNoCommand
	}
	// The entries speak of the text that the gate read. If that is not this one,
	// they say nothing about what is judged here.
	units := shell.Read(text).Units
	if !slices.EqualFunc(units, r.Units, func(a shell.Unit, b protocol.Unit) bool { return a.Text == b.Text }) {
		return "", missReading
	}
	return text, ""
}

// argv is a list of words as one text, as the gate makes it; "" if the input
// holds none.
func argv(t protocol.Tool) string {
	var in struct {
		Command any `json:"command"`
		Cmd     any `json:"cmd"`
	}
	if json.Unmarshal(t.Input, &in) != nil {
		return ""
	}
	list, ok := in.Command.([]any)
	if other, both := in.Cmd.([]any); both {
		if ok {
			return ""
		}
		list = other
	}
	words := make([]string, 0, len(list))
	for _, item := range list {
		word, ok := item.(string)
		if !ok {
			return ""
		}
		words = append(words, quoted(word))
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell reads it, and as the gate writes it.
func quoted(word string) string {
	if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+") != "" {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// harmless are arguments of shell tools that say nothing of where a command
// runs.
var harmless = []string{"command", "cmd", "description", "justification", "explanation", "reason"}

// maxBases bounds the directories that a call may begin in.
const maxBases = 3

// bases are the directories in which a call may begin: its own, and whatever an
// argument of its tool may say, since a policy may name any argument for that.
// Nil where there are too many.
func bases(ask protocol.Ask) []string {
	out := []string{""}
	var args map[string]jsontext.Value
	if json.Unmarshal(ask.Tool.Input, &args) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		var dir string
		if slices.Contains(harmless, name) || args[name].Kind() != '"' || json.Unmarshal(args[name], &dir) != nil {
			continue
		}
		if dir == "." || dir != "" && path.Clean(dir) == path.Clean(ask.Cwd) {
			continue
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if len(out) > maxBases {
		return nil
	}
	return out
}

// others are the open entries that no decomposition speaks about: those on other
// surfaces. A path is open in its own right, whatever command names it.
func others(asks []protocol.Entry) []protocol.Entry {
	return slices.DeleteFunc(slices.Clone(asks), onBash)
}

// carrierNamed says whether a rule speaks by name of what carries the pieces, as
// "bash -c *": whoever wrote it wants to be asked about that, whatever is in it.
func carrierNamed(asks []protocol.Entry, pieces []piece) bool {
	return slices.ContainsFunc(asks, func(e protocol.Entry) bool {
		return onBash(e) && !e.Floor && e.MatchedPattern != "*" && !slices.ContainsFunc(pieces, func(p piece) bool {
			return slices.ContainsFunc(shell.Read(p.text).Units, func(u shell.Unit) bool { return u.Text == e.Value })
		})
	})
}
