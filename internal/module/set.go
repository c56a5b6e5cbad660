package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Set is the checks of some modules in order. It is immutable, safe for
// concurrent use and cheap to keep; a nil Set has no checks.
type Set struct {
	engine *Engine
	digest string
	checks []Check
	// places are, beside checks, where each one is asked.
	places []place
	// named are the checks of a tool's name, every those that are about every
	// call or decide by a function; both hold indices of checks, rising.
	named map[string][]int
	every []int
}

// place is a check in its module.
type place struct {
	module *loaded
	number int
}

func newSet(e *Engine, modules []*loaded) *Set {
	s := &Set{engine: e, digest: digestOf(modules), named: map[string][]int{}}
	for _, m := range modules {
		for n, c := range m.checks {
			s.index(len(s.checks), c.Tools)
			s.checks = append(s.checks, c)
			s.places = append(s.places, place{m, n})
		}
	}
	return s
}

// index notes for which tools a check is asked. A tool's name in another letter
// case is that tool's: "Bash" is what "bash" is.
func (s *Set) index(check int, tools []string) {
	if tools == nil {
		s.every = append(s.every, check)
		return
	}
	for _, t := range tools {
		for _, name := range []string{t, policy.ToolName(t)} {
			if list := s.named[name]; len(list) == 0 || list[len(list)-1] != check {
				s.named[name] = append(list, check)
			}
		}
	}
}

// digestOf is over what decides how a set behaves. No part holds a line end, so
// that no two lists read alike.
func digestOf(modules []*loaded) string {
	if len(modules) == 0 {
		return ""
	}
	h := sha256.New()
	for _, m := range modules {
		fmt.Fprintf(h, "%s %s %s\n", m.level, m.name, m.version)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Checks are all checks in the order in which they are asked.
func (s *Set) Checks() []Check {
	if s == nil {
		return nil
	}
	return slices.Clone(s.checks)
}

// Len is how many checks there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.checks)
}

// Digest identifies names, levels and versions of the modules in order; "" for
// a set without modules.
func (s *Set) Digest() string {
	if s == nil {
		return ""
	}
	return s.digest
}

// Check asks the checks that are about call, in order. The first that blocks or
// requests decides. One that fails does not end the walk; where none after it
// blocks or requests, the verdict is a request with the failure. Whatever keeps
// the checks from being asked, the end of ctx included, is a failure.
func (s *Set) Check(ctx context.Context, call Call) Verdict {
	if s == nil || len(s.checks) == 0 {
		return Verdict{Decision: Pass}
	}
	began := time.Now()
	fields := call.fields()
	v := Verdict{Decision: Pass}
	if steps := s.plan(&call, fields); len(steps) > 0 {
		v = s.walks(ctx, &call, fields, steps, began)
	}
	v.Took = time.Since(began)
	s.engine.metrics.verdict(&v)
	return v
}

// plan is which checks are asked about a call, grouped by module, in order.
func (s *Set) plan(call *Call, f policy.ToolFields) []planned {
	var steps []planned
	for _, i := range s.about(&call.Ask, f.Kind) {
		if call.Off != nil && call.Off(s.checks[i]) {
			continue
		}
		at := s.places[i]
		if n := len(steps); n > 0 && steps[n-1].module == at.module && len(steps[n-1].checks) < maxStep {
			steps[n-1].checks = append(steps[n-1].checks, at.number)
			continue
		}
		steps = append(steps, planned{at.module, []int{at.number}})
	}
	return steps
}

// about are the checks for a call's tool, by all names that it is known under. An
// MCP tool is known by its server and its own name, and as "mcp".
func (s *Set) about(ask *protocol.Ask, kind string) []int {
	all := s.every
	names := policy.ToolNames(ask.Tool.Name)
	if kind != "" && !slices.Contains(names, kind) {
		names = append(names, kind)
	}
	if name, _, ok := policy.JoinedMCP(ask.Tool.Name, ask.Tool.Input); ok {
		names = append(names, name)
	} else if policy.JoinsMCP(ask.Tool.Name) {
		names = append(names, "mcp")
	}
	for _, name := range names {
		if list := s.named[name]; len(list) > 0 {
			all = merge(all, list)
		}
	}
	return all
}

// merge is two rising lists as one, each number once.
func merge(a, b []int) []int {
	if len(a) == 0 {
		return b
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
