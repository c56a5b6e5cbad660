package policy

import (
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// Warning is something in a valid document that hardly was meant so.
type Warning struct {
	File         string
	Line, Column int
	Message      string
}

// String returns "file:line:column: message".
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
}

// Lint compiles the fleet layer's document and returns what a reader should be
// warned of, in the order of the document: rules that can never match or never
// win, names that look like slips of the pen, and what leaves more open than it
// seems. It returns Compile's error for a document with errors.
func Lint(file string, doc []byte) ([]Warning, error) { return LintLayer(Fleet(), file, doc) }

// LintLayer is Lint for the document of any layer.
func LintLayer(layer Layer, file string, doc []byte) ([]Warning, error) {
	d, err := Read(layer, file, doc)
	if err != nil {
		return nil, err
	}
	l := linter{places: newProblems(file, doc), s: composed(d)}
	l.tree, _ = parse(l.places)
	l.surfaces()
	l.commands()
	l.values()
	l.spellings()
	l.flags()
	l.shadowed()
	for _, at := range d.idle {
		l.warn(at, "an allow under \"*\" grants nothing: a pattern says nothing without the surface that it is on; write it there, as \"bash\": {\"git *\": \"allow\"}")
	}
	if layer.IsFleet() {
		l.openShell()
		l.envelope()
		l.ending()
		l.trusting()
	} else {
		l.loosening(layer)
	}
	if l.s.Yolo() {
		l.warn(l.key("yoloMode"), "yoloMode is on: whatever a rule asks is allowed without asking")
	}
	slices.SortStableFunc(l.out, func(a, b Warning) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return l.out, nil
}

type linter struct {
	places *problems
	tree   hujson.Value
	s      *Snapshot
	out    []Warning
}

func (l *linter) warn(at int, format string, args ...any) {
	line, column := l.places.position(at)
	l.out = append(l.out, Warning{l.places.file, line, column, fmt.Sprintf(format, args...)})
}

// shadowed warns of rules that do not win: a later rule on the same surface
// matches everything that they match. (A deny is still found under spellings
// that an allow does not match, as a program's full path, which is hardly what
// its author wants it for.)
func (l *linter) shadowed() {
	rules := l.s.rules.rules
	for i := range rules {
		for j := i + 1; j < len(rules); j++ {
			a, b := &rules[i], &rules[j]
			if covers(b.surface, a.surface) && covers(b.pattern.w, a.pattern.w) && !fallback(b) && !partly(b, a) {
				l.warn(a.at, "%s %q is overridden: %s %q on line %d matches all of it and stands later",
					a.surface.text, a.pattern.text, b.surface.text, b.pattern.text, l.line(b))
				break
			}
		}
	}
}

// line is the line on which a rule stands.
func (l *linter) line(r *rule) int {
	line, _ := l.places.position(r.at)
	return line
}

// fallback says whether a rule only counts where no other does.
func fallback(r *rule) bool { return r.surface.any() }

// partly says whether b may leave some values to a: a home pattern matches by
// the directory that it stands for, not by its text.
func partly(b, a *rule) bool {
	return a.pattern.home != nil && a.pattern.text != b.pattern.text && !b.pattern.w.any()
}

// covers says for certain that outer matches whatever inner matches; false
// where that is not certain.
func covers(outer, inner wildcard) bool {
	switch {
	case outer.text == inner.text, outer.any():
		return true
	case inner.literal():
		return outer.match(inner.text)
	case outer.hasBare && len(outer.parts) == 2 && outer.parts[0].masks == nil:
		// "git *" covers what starts with "git " and the bare "git".
		return len(inner.parts[0].text) >= len(outer.parts[0].text) && inner.parts[0].masks == nil &&
			inner.parts[0].text[:len(outer.parts[0].text)] == outer.parts[0].text && (!inner.hasBare || outer.match(inner.bare.text))
	}
	return false
}

// openShell warns where any command runs unless another rule speaks of it.
func (l *linter) openShell() {
	bash := l.s.rules.of(surfaceBash)
	for i := len(bash) - 1; i >= 0; i-- {
		if bash[i].pattern.w.any() {
			if bash[i].action == Allow {
				l.warn(bash[i].at, "bash is open: every command that no other rule speaks of is allowed, also in lists and pipes")
			}
			return
		}
	}
	if f := l.s.rules.fallback; f != nil && f.action == Allow {
		l.warn(f.at, "\"*\": \"allow\" leaves bash open: every command that no rule speaks of is allowed; write \"bash\": {\"*\": \"ask\"}")
	}
}
