package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// authorization is an ask that a permission module, here or at a node below, puts
// to a person, as that is shown. All words are the module's or the agent's: they
// go through Safe, and what an answer does is said in the face's own.
type authorization struct {
	p      protocol.Pending
	styled bool // the terminal shows parts of a line in bold
}

// Bounds of what is shown of a prompt, in bytes.
const (
	shownWords  = 2000
	shownDetail = 4000
	shownPart   = 200
	shownParts  = 8
)

// byModule says whether a permission module asks for a person, and returns the
// entry of the one that does; the zero entry where it runs at a node below.
func byModule(p protocol.Pending) (protocol.Entry, bool) {
	i := slices.IndexFunc(p.Asks, protocol.Entry.ByModule)
	if i < 0 {
		return protocol.Entry{}, p.Ask.Prompt != nil
	}
	return p.Asks[i], true
}

// lines are the prompt: name, description, guidance, the call with the part to
// look at, and who asks.
func (a authorization) lines() []string {
	p := a.p.Prompt
	out := []string{"Authorization required: " + protocol.Safe(p.Name, shownPart, false)}
	for _, words := range []string{p.Description, p.Guidance} {
		for line := range strings.SplitSeq(protocol.Safe(words, shownWords, true), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	call, looks := a.call()
	return append(append(append(out, call), looks...), a.asker())
}

// asker says whose check it is.
func (a authorization) asker() string {
	e, _ := byModule(a.p)
	if e.Surface == "" {
		return "asked for by a permission module of node " + protocol.Safe(a.p.Ask.Via(), protocol.MaxToken, false)
	}
	level, rest, _ := strings.Cut(strings.TrimPrefix(e.Origin, protocol.OriginModule), ":")
	name, version, _ := strings.Cut(rest, "@")
	text := fmt.Sprintf("asked for by the %s's permission module %q", level, name)
	if version != "" {
		text += ", version " + version
	}
	return protocol.Safe(text, shownPart, false)
}

// call is "tool: detail" with the highlighted parts in bold; where the terminal
// shows none, or they lie beyond what is shown, they stand below by themselves. A
// mark in the line would be the agent's to imitate.
func (a authorization) call() (line string, looks []string) {
	detail := module.Detail(&a.p.Ask)
	var b strings.Builder
	b.WriteString(protocol.Safe(a.p.Ask.Tool.Name, shownPart, false) + ": ")
	at := 0
	write := func(end int, bold bool) {
		text := detail[at:end]
		at = end
		room := shownDetail - b.Len()
		switch {
		case text == "" || room <= 0:
		case bold && a.styled:
			b.WriteString("\x1b[1;4m" + protocol.Safe(text, room, false) + "\x1b[0m")
		default:
			b.WriteString(protocol.Safe(text, room, false))
		}
	}
	for _, s := range partsOf(a.p.Prompt.Highlight, len(detail)) {
		write(s.Start, false)
		if (!a.styled || b.Len()+s.End-s.Start > shownDetail) && len(looks) < shownParts {
			looks = append(looks, "look at "+protocol.Safe(detail[s.Start:s.End], shownPart, false))
		}
		write(s.End, true)
	}
	write(len(detail), false)
	if b.Len() > shownDetail {
		b.WriteString(" …")
	}
	return b.String(), looks
}

// partsOf are the parts that lie within a detail of so many bytes, in order and
// one at a time: they are a module's word, perhaps of a node below.
func partsOf(spans []protocol.Span, size int) (out []protocol.Span) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b protocol.Span) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	at := 0
	for _, s := range spans {
		s.Start, s.End = max(s.Start, at), min(s.End, size)
		if s.Start < s.End {
			out = append(out, s)
			at = s.End
		}
	}
	return out
}

// labelled is a key, or an answer as it is typed, with the module's word for it:
// that changes no key and no default.
func labelled(key, label string) string {
	if label == "" {
		return key
	}
	return key + " = " + protocol.Safe(label, protocol.MaxLabel, false)
}

// editedInput is the input of a call with text in the place of what the call is
// about: of its command, say. Text may be the whole input, too.
func editedInput(ask protocol.Ask, text string) (jsontext.Value, error) {
	if whole := jsontext.Value(text); whole.IsValid() && whole.Kind() == '{' {
		return whole, nil
	}
	var args map[string]jsontext.Value
	if err := json.Unmarshal(ask.Tool.Input, &args); err != nil {
		return nil, fmt.Errorf("the call's input cannot be read: %w", err)
	}
	detail, key := module.Detail(&ask), ""
	for name, value := range args {
		var have string
		if value.Kind() != '"' || json.Unmarshal(value, &have) != nil || have != detail {
			continue
		}
		if key != "" {
			return nil, errors.New("two fields of the call say the same: give its whole input, a JSON object")
		}
		key = name
	}
	if text == "" || key == "" {
		return nil, errors.New("say what to allow in its place, as in `e N make test`; for a call that is not about one command or path, its whole input, a JSON object")
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("that is no text: %w", err)
	}
	args[key] = quoted
	return json.Marshal(args, json.Deterministic(true))
}

// muteOf is the grant by which an approver turns the check off that asks: for the
// session, and like every grant not without an end unasked.
func muteOf(item pending.Item) (protocol.Grant, error) {
	return desk.Mute(item, time.Now().Add(desk.GrantLife))
}
