package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestAnAgentIsNamedWithItsNode: whoever looks at what is pending, decided or
// granted sees of which of two agents of one name it speaks.
func TestAnAgentIsNamedWithItsNode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hops []string
		want string
		not  string
	}{
		"this node's":     {nil, "ci-42", " at "},
		"a child's":       {[]string{"child1"}, "ci-42 at child1", "via"},
		"a grandchild's":  {[]string{"low", "child1"}, "ci-42 at low, via child1", "mid"},
		"from far below":  {[]string{"low", "mid", "child1"}, "ci-42 at low, via child1", "mid"},
		"a namesake node": {[]string{"ci-42"}, "ci-42 at ci-42", "via"},
	} {
		t.Run(name, func(t *testing.T) {
			for view, text := range views(t, row.hops) {
				if !strings.Contains(text, row.want) || strings.Contains(text, row.not) {
					t.Errorf("%s says %q, want %q without %q", view, text, row.want, row.not)
				}
			}
		})
	}
}

// views is what each view of one ask, its decision and its grant says.
func views(t *testing.T, hops []string) map[string]string {
	t.Helper()
	ask := protocol.Ask{ID: protocol.NewAskID(), Agent: "ci-42", Hops: hops, Session: protocol.Session{ID: "s1"}, Cwd: "/repo",
		Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make all"}`)}}
	item := pending.Item{Pending: protocol.Pending{Node: "main", Ask: ask, Via: ask.Via()}}
	said := map[string]string{"the name": whose(ask.Agent, hops)}
	write := func(view string, print func(*Env) error) {
		var out strings.Builder
		if err := print(&Env{Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		said[view] = out.String()
	}
	write("the list of pending asks", func(env *Env) error { return printPending(env, []pending.Item{item}, time.Now()) })
	write("the list of grants", func(env *Env) error {
		return printGrants(env, []grants.Stored{{Grant: protocol.Grant{Agent: ask.Agent, Hops: hops, Ask: ask.ID}}}, false)
	})
	said["the whole record"] = details(protocol.Decision{Agent: ask.Agent, Via: ask.Via(), Hops: hops})
	return said
}
