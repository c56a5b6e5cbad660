package shell

import (
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Variables whose value the text itself says are read as that value: X=rm; $X y
// is "rm y". That holds where the text names the variable only once without a
// dollar, in front of all its uses and where nothing can pass it by.

// Bounds of what is done for values: how many variables are looked for, and how
// many bytes of loops' bodies are walked again.
const (
	maxBound = 32
	maxAgain = 8 << 10
)

// value is the value of a variable where it is known.
func (w *walker) value(p *syntax.ParamExp) (string, bool) {
	if len(w.values) == 0 || p.Param == nil || !bare(p) {
		return "", false
	}
	v, ok := w.values[p.Param.Value]
	return v, ok
}

// bind notes the value of a variable, if it is the only one.
func (w *walker) bind(name, value string) bool {
	if w.bound++; w.bound > maxBound || !plainWordText(value) || changes(name) || !w.namedOnce(name) {
		return false
	}
	if w.values == nil {
		w.values, w.valued = map[string]string{}, map[string]bool{}
	}
	w.values[name], w.valued[name] = value, true
	return true
}

// plainWordText says whether s is one word to a shell that expands it, and
// stands for itself.
func plainWordText(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("_./:=@%+,-", c) < 0 {
			return false
		}
	}
	return s != ""
}

// shellSets says whether a variable changes by itself, is set by commands that
// do not name it, or cannot be set: "REPLY=1; read; echo $((REPLY))" computes
// what was read.
func shellSets(name string) bool {
	return strings.Contains(shellVariables, " "+name+" ") || slices.ContainsFunc([]string{"COMP_", "BASH_", "READLINE_", "COPROC", "EPOCH"},
		func(front string) bool { return strings.HasPrefix(name, front) })
}

const shellVariables = " _ RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS EPOCHREALTIME UID EUID PPID GROUPS DIRSTACK FUNCNAME PIPESTATUS REPLY OPTARG OPTIND " +
	"HISTCMD MAPFILE COMPREPLY OPTERR SHLVL reply match "

// namedOnce says whether the text holds the name once without a dollar in
// front, wherever it stands: what cannot be an assignment counts too.
func (w *walker) namedOnce(name string) bool {
	if shellSets(name) {
		return false
	}
	times := 0
	for at := 0; ; {
		i := strings.Index(w.text[at:], name)
		if i < 0 {
			return times == 1
		}
		at += i
		before, after := byte(' '), byte(' ')
		if at > 0 {
			before = w.text[at-1]
		}
		if at += len(name); at < len(w.text) {
			after = w.text[at]
		}
		switch {
		case nameByte(before) || nameByte(after):
		case before == '$' || before == '{' && at-len(name) > 1 && w.text[at-len(name)-2] == '$':
		default:
			times++
		}
	}
}

func nameByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// each walks the body of a loop once for every item, with the variable bound to
// it. size is that of the body in bytes. ok is false where the values are not known, or too many.
func (w *walker) each(name string, items []word, size int, body func()) (ok bool) {
	cost := size * len(items)
	if len(items) == 0 || w.again+cost > maxAgain {
		return false
	}
	for _, item := range items {
		if !item.fixed() || item.pipe || !plainWordText(item.text) {
			return false
		}
	}
	if !w.bind(name, items[0].text) {
		return false
	}
	w.again += cost
	from, seen := len(w.units), w.seen
	for i, item := range items {
		w.values[name] = item.text
		w.seen = map[syntax.Node]bool{}
		first := len(w.units)
		body()
		if i > 0 {
			w.unique(from, first)
		}
	}
	w.seen = seen
	delete(w.values, name)
	return true
}

// unique drops of the units behind first what stands between from and first
// already.
func (w *walker) unique(from, first int) {
	kept := w.units[:first]
	for _, u := range w.units[first:] {
		if !slices.ContainsFunc(w.units[from:first], func(have Unit) bool { return have.Text == u.Text && reflect.DeepEqual(have, u) }) {
			kept = append(kept, u)
		}
	}
	w.units = kept
}
