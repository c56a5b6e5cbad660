package gate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// check answers a query at parity with the gate: by the policy, the project's own
// and the grants that an ask of this moment would be ruled by, for whoever asks
// and with the paths that the adapter fixed. A link that hears "ask" here knows
// that a person would be asked.
func (g *Gate) check(ctx context.Context, c *capability, q protocol.Query) (protocol.Check, error) {
	file, err := g.files.of(ctx, c.ask)
	if err != nil {
		return protocol.Check{}, err
	}
	asks := whoAsks(c.ask, file)
	if c.ask.Via() == "" { // an agent below a child node has no name here
		asks.AgentName = cmp.Or(q.AgentName, asks.AgentName)
	}
	call := grants.Call(c.ask)
	pq := policy.Query{
		Surface: q.Surface, Value: q.Value, Tool: q.Tool,
		Cwd: cmp.Or(q.Cwd, call.Cwd), Home: call.Home, Platform: call.Platform, Paths: call.Paths, WithPaths: true,
	}
	s := g.policy.of(asks)
	r := g.checkGranted(ctx, c.ask, s, pq)
	if c.ask.HumanOnly && r.State == policy.Allow {
		r.State, r.Reason = policy.Ask, leftToAPerson
	}
	if q.Surface == surfaceShell {
		r = g.checkModules(ctx, commandOf(c.ask, q, call.Cwd), trustedModules(s, asks, file), s, r)
	}
	return protocol.Check{State: wireAction(r.State), MatchedPattern: r.MatchedPattern, Origin: r.Origin, Reason: protocol.Safe(r.Reason, protocol.MaxReason, true)}, nil
}

// checkGranted answers by the rules and, where they ask about a value, by the
// grants that granted would go by. No use of a grant is spent on a question.
func (g *Gate) checkGranted(ctx context.Context, ask protocol.Ask, s *policy.Snapshot, q policy.Query) policy.Check {
	plain := s.Check(q)
	if plain.State != policy.Ask || q.Tool != "" || s.Clamped() != "" || ask.HumanOnly {
		return plain
	}
	ctx, cancel := context.WithTimeout(ctx, grantTime)
	defer cancel()
	held := g.applying(ctx, ask)
	proof := proofs{g: g, of: map[string]bool{}}
	check := func(held []grants.Stored) (answer policy.Check) {
		proof.clearing(ctx, ask, held, func(proven []policy.Grant) (used []string) {
			answer, used = s.CheckWith(q, proven)
			return used
		})
		return answer
	}
	full := check(held)
	if full.State == policy.Allow {
		return full
	}
	return check(slices.DeleteFunc(held, limited))
}

const surfaceShell = "bash"

// checkModules is what a query on a command is answered where the permission
// modules are stricter than the rules: they would be asked about the call, too.
func (g *Gate) checkModules(ctx context.Context, ask protocol.Ask, project brought, s *policy.Snapshot, r policy.Check) policy.Check {
	said := g.moduled(ctx, ask, project, ruled{snapshot: s, ruling: policy.Ruling{Action: r.State}}).checked.entry
	if said.Surface != "" && said.Action < r.State {
		r.State, r.MatchedPattern, r.Origin, r.Reason = said.Action, said.MatchedPattern, said.Origin, said.Reason
	}
	return r
}

// commandOf is an ask as it would be of the command that a query names.
func commandOf(ask protocol.Ask, q protocol.Query, cwd string) protocol.Ask {
	input, err := json.Marshal(map[string]string{"command": q.Value})
	if err != nil { // text that no JSON holds was refused when the query was read
		input = []byte(`{}`)
	}
	if !strings.EqualFold(ask.Tool.Name, surfaceShell) {
		ask.Tool.Name = surfaceShell
	}
	ask.Tool.Input, ask.Cwd = input, cmp.Or(q.Cwd, cwd)
	return ask
}
