package policy

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestWith: what is said beside the rules tightens a ruling and never loosens it.
func TestWith(t *testing.T) {
	t.Parallel()
	const rules = `{"permission":{"*":"ask","bash":{"*":"ask","git *":"allow","rm *":"deny"}}`
	entry := func(a Action) Entry {
		return Entry{Surface: "module", Value: "user:m/c", Origin: "module:user:m@1", Action: a}
	}
	for name, row := range map[string]struct {
		policy, command string
		add             Action
		want            Action
		decisive        string // surface
	}{
		"a request of what a rule allows": {rules + `}`, "git status", Ask, Ask, "module"},
		"a request under yolo":            {rules + `,"yoloMode":true}`, "make", Ask, Ask, "module"},
		"a request beside a rule's ask":   {rules + `}`, "make", Ask, Ask, "bash"},
		"a request of what a rule denies": {rules + `}`, "rm x", Ask, Deny, "bash"},
		"a block of what a rule allows":   {rules + `}`, "git status", Deny, Deny, "module"},
		"a block of what a rule asks":     {rules + `}`, "make", Deny, Deny, "module"},
		"a block under yolo":              {rules + `,"yoloMode":true}`, "make", Deny, Deny, "module"},
		"a word that nobody set":          {rules + `}`, "git status", None, None, "module"},
		"an allow of what a rule asks":    {rules + `}`, "make", Allow, Ask, "bash"},
		"an allow of what a rule denies":  {rules + `}`, "rm x", Allow, Deny, "bash"},
		"an allow of what a rule allows":  {rules + `}`, "git status", Allow, Allow, "bash"},
	} {
		doc, err := Read(Fleet(), "fleet", []byte(row.policy))
		if err != nil {
			t.Fatal(err)
		}
		input, _ := jsontext.AppendQuote([]byte(`{"command":`), row.command)
		plain := Layered(false, doc).Rule(Call{Tool: "bash", Input: append(input, '}'), Cwd: "/repo", Home: "/home/dev"})
		before := slices.Clone(plain.Entries)
		r := plain.With(entry(row.add))
		if r.Action != row.want || r.Decisive.Surface != row.decisive {
			t.Errorf("%s: %v by %s, want %v by %s", name, r.Action, r.Decisive.Surface, row.want, row.decisive)
		}
		if !slices.Equal(before, plain.Entries) {
			t.Errorf("%s: the ruling it was made from has changed", name)
		}
	}
	if r := (Ruling{}).With(entry(Ask)); r.Action != None || len(r.Entries) != 0 {
		t.Errorf("a ruling of nothing became %+v", r)
	}
}

// TestTrustInAProjectIsTheOperators: by id, root and agent together.
func TestTrustInAProjectIsTheOperators(t *testing.T) {
	t.Parallel()
	fleet, err := Read(Fleet(), "fleet", []byte(`{"trustedProjects":[{"id":"shop","root":"/repo","agents":["ci-*"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	file, err := Read(ProjectLayer("shop"), "f", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet(1, fleet)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		who  Who
		want bool
	}{
		"the project, its root and agent":  {Who{Agent: "ci-1", Project: "shop", Root: "/repo"}, true},
		"with a file of its own":           {Who{Agent: "ci-1", Project: "shop", Root: "/repo", File: file}, true},
		"whose file does not read":         {Who{Agent: "ci-1", Project: "shop", Root: "/repo", FileBroken: "x"}, true},
		"another project":                  {Who{Agent: "ci-1", Project: "shop2", Root: "/repo"}, false},
		"the project at another root":      {Who{Agent: "ci-1", Project: "shop", Root: "/tmp"}, false},
		"another agent":                    {Who{Agent: "dev", Project: "shop", Root: "/repo"}, false},
		"an agent that wears a name":       {Who{Agent: "dev", AgentName: "ci-1", Project: "shop", Root: "/repo"}, false},
		"nobody":                           {Who{Project: "shop", Root: "/repo"}, false},
		"an agent of the node's, anywhere": {Who{Agent: "ci-1"}, false},
	} {
		if got := set.For(row.who).TrustsProject(row.who); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if got := set.Clamp("broken").For(row.who).TrustsProject(row.who); got != row.want {
			t.Errorf("%s, clamped: %v, want %v", name, got, row.want)
		}
	}
}
