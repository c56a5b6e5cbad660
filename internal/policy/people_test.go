package policy

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestLeftToPeople: whatever lets a call pass, a person is asked; what denies it
// denies it still.
func TestLeftToPeople(t *testing.T) {
	t.Parallel()
	const rules = `{"permission":{"*":"ask","bash":{"*":"ask","git *":"allow","rm *":"deny","deploy *":{"action":"ask","humanOnly":true}}}`
	for name, row := range map[string]struct {
		policy, command string
		want            Action
	}{
		"a rule's allow":          {rules + `}`, "git status", Ask},
		"yolo":                    {rules + `,"yoloMode":true}`, "make", Ask},
		"a rule's ask":            {rules + `}`, "make", Ask},
		"two that ask":            {rules + `}`, "make && make install", Ask},
		"one allowed, one asking": {rules + `}`, "git status && make", Ask},
		"asks a person already":   {rules + `}`, "deploy x", Ask},
		"a floor":                 {rules + `}`, `git "$X"`, Ask},
		"a rule's deny":           {rules + `}`, "rm x", Deny},
		"one allowed, one denied": {rules + `}`, "git status && rm x", Deny},
		"a deny beside yolo":      {rules + `,"yoloMode":true}`, "make && rm x", Deny},
	} {
		doc, err := Read(Fleet(), "fleet", []byte(row.policy))
		if err != nil {
			t.Fatal(err)
		}
		input, _ := jsontext.AppendQuote([]byte(`{"command":`), row.command)
		s, call := Layered(false, doc), Call{Tool: "bash", Input: append(input, '}'), Cwd: "/repo", Home: "/home/dev"}
		plain := s.Rule(call)
		before := slices.Clone(plain.Entries)
		r := plain.LeftToPeople("why")
		if r.Action != row.want {
			t.Errorf("%s: %v, want %v", name, r.Action, row.want)
		}
		if !slices.Equal(plain.Entries, before) {
			t.Errorf("%s: the ruling that it was made of has changed", name)
		}
		open := r.Open()
		if len(open) == 0 != (row.want == Deny) || slices.ContainsFunc(open, func(e Entry) bool { return !e.HumanOnly }) {
			t.Errorf("%s: open %+v", name, open)
		}
		if row.want == Ask && (len(r.Suggest) > 0 || r.Decisive.Action != Ask) {
			t.Errorf("%s: suggests %v, reports %+v", name, r.Suggest, r.Decisive)
		}
		if row.want == Deny && !slices.Equal(r.Entries, plain.Entries) {
			t.Errorf("%s: a ruling that denies has changed", name)
		}
	}
	if r := (Ruling{}).LeftToPeople("why"); r.Action != None || len(r.Open()) > 0 {
		t.Errorf("of no ruling it makes %+v", r)
	}
}
