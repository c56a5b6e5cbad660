package gate

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// moduleScript is a scripted set of permission modules: what each check says of a
// command. Safe for concurrent use; state swaps whole, as the real ones do.
type moduleScript struct {
	state   atomic.Pointer[moduleState]
	calls   atomic.Int64
	mu      sync.Mutex
	changed func()
	loaded  []module.Source // what projects brought, as it came
	asked   []protocol.Ask
}

// moduleState is one moment of the modules.
type moduleState struct {
	digest   string
	checks   []scriptedCheck
	problems []module.Problem
	say      func(module.Call) module.Verdict // in place of the checks
	script   *moduleScript
}

// scriptedCheck speaks of the commands it names. Level is of the user without one.
type scriptedCheck struct {
	name   string
	level  module.Level
	says   map[string]string // command → block, request, fail
	labels bool
}

func newModules(checks ...scriptedCheck) *moduleScript {
	m := &moduleScript{}
	m.set(moduleState{digest: "sha256:one", checks: checks})
	return m
}

// set puts another state in force.
func (m *moduleScript) set(s moduleState) {
	s.script = m
	m.state.Store(&s)
	m.mu.Lock()
	changed := m.changed
	m.mu.Unlock()
	if changed != nil {
		changed()
	}
}

func (m *moduleScript) Changed(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = f
}

func (m *moduleScript) In(_ context.Context, project []module.Source) Checks {
	m.mu.Lock()
	m.loaded = append(m.loaded, project...)
	m.mu.Unlock()
	if s := m.state.Load(); s.digest != "" {
		return s
	}
	return nil
}

func (s *moduleState) Digest() string             { return s.digest }
func (s *moduleState) Problems() []module.Problem { return s.problems }

const scriptedVersion = "sha256:0123456789abcdef0123"

func (c scriptedCheck) check() module.Check {
	level := c.level
	if level == "" {
		level = module.LevelUser
	}
	return module.Check{Level: level, Module: "m", Version: scriptedVersion, Name: c.name, Description: "About " + c.name + "."}
}

// Check walks as an engine does: the first block or request, and else what failed.
func (s *moduleState) Check(_ context.Context, call module.Call) module.Verdict {
	s.script.calls.Add(1)
	s.script.mu.Lock()
	s.script.asked = append(s.script.asked, call.Ask)
	s.script.mu.Unlock()
	if s.say != nil {
		return s.say(call)
	}
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(call.Ask.Tool.Input, &in)
	out := module.Verdict{Decision: module.Pass}
	for _, c := range s.checks {
		if call.Off != nil && call.Off(c.check()) {
			continue
		}
		switch c.says[in.Command] {
		case "block":
			return module.Verdict{Decision: module.Block, Check: c.check(), Reason: "Not like this."}
		case "request":
			p := protocol.Prompt{Guidance: "Look at the tag.", Highlight: []protocol.Span{{Start: 0, End: 4}}}
			if c.labels {
				p.ApproveLabel, p.EditLabel, p.RejectLabel = "Release", "Change", "Hold"
			}
			return module.Verdict{Decision: module.Request, Check: c.check(), Prompt: p}
		case "fail":
			if out.Decision == module.Pass {
				out = module.Verdict{Decision: module.Request, Check: c.check(), Failure: "it threw: x is not a function"}
			}
		}
	}
	return out
}

// checking is a gate with modules.
func (r *rig) checking(name string, m Modules) *served {
	r.t.Helper()
	r.modules = m
	return r.gate(name)
}
