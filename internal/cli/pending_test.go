package cli

import (
	"strings"
	"testing"

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
		"":                         {floor},
		" [--grant agent]":         {floor, alone},
		" [--grant session|agent]": {alone, within},
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
