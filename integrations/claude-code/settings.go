package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// ErrSettings: settings that cannot be changed without guessing.
var ErrSettings = errors.New("unreadable settings")

// HookTimeout is written into the settings, in seconds: what Claude Code takes
// by itself too, said aloud. The hook's own deadline lies below it.
const HookTimeout = 600

// Settings is one of Claude Code's settings files. Everything in it that is not
// ours stays as it is, byte for byte.
type Settings struct {
	root  hujson.Value
	style style
}

// ParseSettings reads a settings file. Empty text is a file without settings.
// Errors wrap ErrSettings and name line and column. It takes strict JSON alone:
// where there is a comment or a trailing comma, Claude Code drops the whole file
// with the hook in it, and runs every call.
func ParseSettings(text []byte) (*Settings, error) {
	s := &Settings{style: styleOf(text)}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + s.style.newline)
	}
	if err := strict(text); err != nil {
		return nil, err
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	s.root = root
	top, err := s.object(&s.root, "the settings")
	if err != nil {
		return nil, err
	}
	hooks, err := s.member(top, "hooks")
	if err != nil || hooks == nil {
		return s, err
	}
	events, err := s.object(hooks, `"hooks"`)
	if err != nil {
		return nil, err
	}
	groups, err := s.member(events, EventPreToolUse)
	if err != nil || groups == nil {
		return s, err
	}
	if _, ok := groups.Value.(*hujson.Array); !ok {
		return nil, s.at(groups, `"hooks.PreToolUse" is no list`)
	}
	return s, nil
}

// HooksDisabled says whether these settings switch all hooks off, so that every
// call runs unasked.
func (s *Settings) HooksDisabled() bool {
	top, _ := s.root.Value.(*hujson.Object)
	v, err := s.member(top, "disableAllHooks")
	if err != nil {
		return true
	}
	if v == nil {
		return false
	}
	lit, ok := v.Value.(hujson.Literal)
	return !ok || string(lit) != "false"
}

// Text is the whole file.
func (s *Settings) Text() []byte { return s.root.Pack() }

// Install makes command the one hook of ours: before every tool call, and
// blocking when it fails. It says false, and changes nothing, if it is so
// already.
func (s *Settings) Install(command string) (changed bool) {
	if s.installed(command) {
		return false
	}
	s.remove()
	top := s.root.Value.(*hujson.Object)
	hooks := s.ensure(top, 1, "hooks", &hujson.Object{})
	groups := s.ensure(hooks.Value.(*hujson.Object), 2, EventPreToolUse, &hujson.Array{})
	s.append(groups.Value.(*hujson.Array), 3, entry(command))
	return true
}

// Uninstall takes our hooks out, and what is empty without them. It says false
// if there are none.
func (s *Settings) Uninstall() (changed bool) {
	if !s.remove() {
		return false
	}
	top := s.root.Value.(*hujson.Object)
	hooks, _ := s.member(top, "hooks")
	if hooks == nil {
		return true
	}
	events := hooks.Value.(*hujson.Object)
	if groups, _ := s.member(events, EventPreToolUse); groups != nil && len(groups.Value.(*hujson.Array).Elements) == 0 {
		dropMember(events, EventPreToolUse)
	}
	if len(events.Members) == 0 {
		dropMember(top, "hooks")
	}
	return true
}

// Installed says whether there is any hook of ours.
func (s *Settings) Installed() bool { return s.Command() != "" }

// Command is what our hook calls; "" without one.
func (s *Settings) Command() string {
	for _, e := range s.groups() {
		g, _ := readGroup(e)
		for _, h := range g.Hooks {
			if h.ours() {
				return h.Command
			}
		}
	}
	return ""
}

// group is one entry of hooks.PreToolUse.
type group struct {
	Matcher *string `json:"matcher"`
	Hooks   []hook  `json:"hooks"`
}

type hook struct {
	Type      string         `json:"type"`
	Command   string         `json:"command"`
	Timeout   jsontext.Value `json:"timeout"`
	OnFailure string         `json:"onFailure"`
	If        jsontext.Value `json:"if"`
	Async     jsontext.Value `json:"async"`
}

func entry(command string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, command)
	return fmt.Appendf(nil, `{"matcher":"*","hooks":[{"type":"command","command":%s,"timeout":%d,"onFailure":"block"}]}`, quoted, HookTimeout)
}

// ourCommand knows a hook of ours by what it calls, wherever the binary lies.
var ourCommand = regexp.MustCompile(`\shook claude-code(\s|$)`)

func (h hook) ours() bool { return h.Type == "command" && ourCommand.MatchString(h.Command) }

// installed: exactly one hook of ours, alone in its group and as Install writes
// it. A condition ("if") or "async" would let calls pass.
func (s *Settings) installed(command string) bool {
	right, ours := 0, 0
	for _, e := range s.groups() {
		g, ok := readGroup(e)
		if !ok {
			continue
		}
		for _, h := range g.Hooks {
			if !h.ours() {
				continue
			}
			ours++
			if len(g.Hooks) == 1 && g.Matcher != nil && *g.Matcher == "*" && h.Command == command && string(h.Timeout) == fmt.Sprint(HookTimeout) &&
				h.OnFailure == "block" && len(h.If) == 0 && len(h.Async) == 0 {
				right++
			}
		}
	}
	return ours == 1 && right == 1
}

// remove takes every hook of ours out of its group, and groups that are empty
// then.
func (s *Settings) remove() (found bool) {
	groups := s.array()
	if groups == nil {
		return false
	}
	for i := len(groups.Elements) - 1; i >= 0; i-- {
		g, ok := readGroup(groups.Elements[i])
		if !ok || !slices.ContainsFunc(g.Hooks, hook.ours) {
			continue
		}
		found = true
		list := hooksOf(groups.Elements[i])
		for j := len(g.Hooks) - 1; j >= 0; j-- {
			if g.Hooks[j].ours() {
				dropElement(list, j)
			}
		}
		if len(list.Elements) == 0 {
			dropElement(groups, i)
		}
	}
	return found
}

// readGroup reads what Claude Code would; what it cannot read is not ours.
func readGroup(e hujson.Value) (group, bool) {
	c := e.Clone()
	c.Standardize()
	var g group
	return g, json.Unmarshal(c.Pack(), &g) == nil
}

func hooksOf(groupValue hujson.Value) *hujson.Array {
	for _, m := range groupValue.Value.(*hujson.Object).Members {
		if nameOf(m) == "hooks" {
			return m.Value.Value.(*hujson.Array)
		}
	}
	return &hujson.Array{}
}

func (s *Settings) groups() []hujson.Value {
	if a := s.array(); a != nil {
		return a.Elements
	}
	return nil
}

// array is hooks.PreToolUse, nil if there is none.
func (s *Settings) array() *hujson.Array {
	hooks, _ := s.member(s.root.Value.(*hujson.Object), "hooks")
	if hooks == nil {
		return nil
	}
	groups, _ := s.member(hooks.Value.(*hujson.Object), EventPreToolUse)
	if groups == nil {
		return nil
	}
	return groups.Value.(*hujson.Array)
}

// member finds a key. A key that stands twice is an error: which of them counts
// is not ours to guess.
func (s *Settings) member(o *hujson.Object, key string) (found *hujson.Value, err error) {
	for i := range o.Members {
		if nameOf(o.Members[i]) != key {
			continue
		}
		if found != nil {
			return nil, s.at(&o.Members[i].Name, fmt.Sprintf("%q stands there twice", key))
		}
		found = &o.Members[i].Value
	}
	return found, nil
}

func nameOf(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

func (s *Settings) object(v *hujson.Value, what string) (*hujson.Object, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, s.at(v, what+" is no object")
	}
	return o, nil
}

// at is an error at v's place.
func (s *Settings) at(v *hujson.Value, what string) error {
	return placed(s.root.Pack(), v.StartOffset, what)
}

// strict is JSON as Claude Code reads it: a key that stands twice is taken, a
// comment is not.
func strict(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := dec.SkipValue()
	if err == nil {
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("a second value")
		}
	}
	offset := int(dec.InputOffset())
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		offset, err = int(syntax.ByteOffset), syntax.Err
	}
	return placed(text, offset, err.Error()+": Claude Code reads strict JSON, without comments or trailing commas, and drops the whole file otherwise")
}

func placed(text []byte, offset int, what string) error {
	before := text[:min(offset, len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Errorf("%w: line %d, column %d: %s", ErrSettings, line, column, what)
}
