package shellcommand

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// hiding is a text that hides a command, what a dishonest or careless model says
// of it, and a text of the same make that hides nothing, with what is true of it.
type hiding struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Lie     []string `json:"lie"`
	Honest  string   `json:"honest"`
	Claims  []string `json:"claims"`
}

func hidings(t testing.TB) (rows []hiding) {
	t.Helper()
	data, err := os.ReadFile("testdata/obfuscated.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var row hiding
		if err := json.Unmarshal([]byte(line), &row, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) < 60 {
		t.Fatalf("%d texts, want 60 at least", len(rows))
	}
	return rows
}

// No lie about a text makes it allowed, under a policy that allows little and
// under one that allows nearly everything; the truth about its like does.
func TestNoLieAboutATextIsBelieved(t *testing.T) {
	t.Parallel()
	policies := map[string]*policy.Snapshot{"listed": compiled(t, listed), "open": compiled(t, open)}
	for _, row := range hidings(t) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			if pieces, err := faithful(row.Command, row.Lie); err == nil {
				t.Errorf("%q passes for %q", row.Command, texts(pieces))
			}
			if _, err := faithful(row.Honest, row.Claims); err != nil {
				t.Errorf("%q does not pass for %q: %v", row.Honest, row.Claims, err)
			}
			for name, s := range policies {
				if state, r := call(t, s, row.Command); state == policy.Allow {
					t.Errorf("%s: the rules alone allow %q", name, row.Command)
				} else if v := verdictOn(t, judgeWith(claiming(t, row.Lie...)), r); state == policy.Ask && v.Verdict == protocol.ChoiceAllow {
					t.Errorf("%s: %q is allowed: %s", name, row.Command, v.Reason)
				}
				if state, r := call(t, s, row.Honest); state != policy.Ask {
					t.Errorf("%s: the rules alone say %s of %q", name, state, row.Honest)
				} else if v := verdictOn(t, judgeWith(claiming(t, row.Claims...)), r); v.Verdict != protocol.ChoiceAllow {
					t.Errorf("%s: %q is %s: %s", name, row.Honest, v.Verdict, v.Reason)
				}
			}
		})
	}
}
