package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestPendingOffersWhatCanBeGranted: a scope is named only where an ask of the
// list can be granted in it, and who names another is told which one fits.
func TestPendingOffersWhatCanBeGranted(t *testing.T) {
	t.Parallel()
	item := func(session string, suggest ...string) pending.Item {
		p := protocol.Pending{Node: "main", Suggest: suggest, Asks: []protocol.Entry{{Surface: "bash", Value: "make all", Floor: len(suggest) == 0}}}
		p.Ask = protocol.Ask{ID: protocol.NewAskID(), Agent: "ci", Session: protocol.Session{ID: session}, Cwd: "/repo", Platform: "linux",
			Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make all"}`)}}
		return pending.Item{Pending: p}
	}
	alone, within, floor := item("", "make *"), item("s1", "make *"), item("s1")
	for want, items := range map[string][]pending.Item{
		"":                              {floor},
		" [--grant agent]":              {floor, alone},
		" [--grant session|tree|agent]": {alone, within},
	} {
		if got := offered(items); got != want {
			t.Errorf("offered %q, want %q", got, want)
		}
	}
	f := grantFlags{scope: string(protocol.ScopeSession)}
	if _, err := f.grant(within); err != nil {
		t.Errorf("in a session: %v", err)
	}
	if _, err := f.grant(alone); err == nil || !strings.Contains(err.Error(), "--grant agent") {
		t.Errorf("without a session: %v", err)
	}
}

func TestPendingTellsSubagentsApart(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]protocol.Session{
		"-":                       {},
		"s1":                      {ID: "s1", Root: "s1"},
		"s2 of s1":                {ID: "s2", Parent: "s1", Root: "s0"},
		"s2 of s0":                {ID: "s2", Root: "s0"},
		"s·1":                     {ID: "s\u202e1"},
		"0123456789abcdefg…":      {ID: "0123456789abcdefghijklmnop"},
		"0123456789abcdefg… of s": {ID: "0123456789abcdefghijklmnop", Parent: "s"},
	} {
		if got := inSession(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// TestPendingSaysWhereAnAskIsAnswered: nobody at a child node answers what its
// parent decides.
func TestPendingSaysWhereAnAskIsAnswered(t *testing.T) {
	t.Parallel()
	item := func(role protocol.TerminalKind) pending.Item {
		p := protocol.Pending{Node: "main", Role: role, Stage: "terminal:" + string(role), Suggest: []string{"make *"}, Asks: []protocol.Entry{{Surface: "bash", Value: "make all"}}}
		p.Ask = protocol.Ask{ID: protocol.NewAskID(), Agent: "ci", Cwd: "/repo", Platform: "linux", Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make all"}`)}}
		return pending.Item{Pending: p}
	}
	const here, above, grant = "assent answer ASK allow|deny [--grant agent]", "answered at the parent node", "bash: make *"
	for _, row := range []struct {
		name  string
		items []pending.Item
		want  []string
		never []string
	}{
		{"by a person of this node", []pending.Item{item(protocol.TerminalHuman)}, []string{here, grant}, []string{above}},
		{"at the parent", []pending.Item{item(protocol.TerminalParent)}, []string{above, "terminal:parent"}, []string{"assent answer", grant}},
		{"some here, some there", []pending.Item{item(protocol.TerminalParent), item(protocol.TerminalHuman)}, []string{here, above, grant}, nil},
	} {
		env, out, _ := testEnv()
		if err := printPending(env, row.items, time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, text := range row.want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: %q is missing in:\n%s", row.name, text, out)
			}
		}
		for _, text := range row.never {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: %q stands in:\n%s", row.name, text, out)
			}
		}
	}
}
