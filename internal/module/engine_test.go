package module

import (
	"testing"
)

// The first block or request in the order of modules and checks decides; what
// fails before it does not, and what would decide after it is not heard.
func TestTheFirstBlockOrRequestDecides(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	block := func(n string) checkJS { return checkJS{name: n, body: `return {block: "no " + input.tool.detail}`} }
	request := func(n string) checkJS { return checkJS{name: n, body: `return {request: {guidance: "look"}}`} }
	pass := func(n string) checkJS { return checkJS{name: n} }
	throws := func(n string) checkJS { return checkJS{name: n, body: `throw new Error("boom")`} }
	for _, row := range []struct {
		does     string
		modules  []Source
		decision Decision
		check    string
		failed   bool
	}{
		{"nothing is registered: the call passes", nil, Pass, "", false},
		{"nobody objects: the call passes", []Source{module("a", pass("1"), pass("2")), module("b", pass("1"))}, Pass, "", false},
		{"a block decides", []Source{module("a", pass("1"), block("2"))}, Block, "fleet:a/2", false},
		{"a request decides", []Source{module("a", pass("1")), module("b", request("1"))}, Request, "fleet:b/1", false},
		{"a request before a block stands", []Source{module("a", request("1")), module("b", block("1"))}, Request, "fleet:a/1", false},
		{"a block before a request stands", []Source{module("a", block("1"), request("2"))}, Block, "fleet:a/1", false},
		{"a failure is a request with its cause", []Source{module("a", pass("1"), throws("2")), module("b", pass("1"))}, Request, "fleet:a/2", true},
		{"a block after a failure wins over it", []Source{module("a", throws("1")), module("b", block("1"))}, Block, "fleet:b/1", false},
		{"a request after a failure in one module wins over it", []Source{module("a", throws("1"), request("2"))}, Request, "fleet:a/2", false},
		{"of two failures the first is told", []Source{module("a", throws("1"), throws("2")), module("b", throws("1"))}, Request, "fleet:a/1", true},
	} {
		t.Run(row.does, func(t *testing.T) {
			v := set(t, e, row.modules...).Check(t.Context(), bash("git push"))
			id := ""
			if v.Decision != Pass {
				id = v.Check.ID()
			}
			if v.Decision != row.decision || id != row.check || (v.Failure != "") != row.failed {
				t.Errorf("got %+v, want %s by %q, failed %v", v, row.decision, row.check, row.failed)
			}
		})
	}
}
