package client

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

const projectPolicy = `{"permission":{"bash":{"npm *":"deny"}}}`

// under is a call in a project with a policy of its own.
func under(policy string) protocol.Ask {
	a := call()
	a.Project = protocol.Project{ID: "github.com/acme/shop", Root: "/repo", Digest: protocol.ProjectDigest(policy)}
	return a
}

// receipt answers an upload as a gate does.
func (g *gate) receipt(data []byte) *nats.Msg {
	up, err := protocol.Read[protocol.ProjectUpload](data)
	if err != nil {
		g.t.Errorf("the client's upload is refused: %v", err)
		return nil
	}
	return body(g.t, protocol.ProjectReceipt{Digest: up.Digest})
}

func TestAskUploadsThePolicyThatTheGateLacks(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	var uploads atomic.Int32
	g.on(protocol.KindProject, func(data []byte) *nats.Msg {
		uploads.Add(1)
		return g.receipt(data)
	})
	var ids []string
	g.asks(func(a protocol.Ask) *nats.Msg {
		ids = append(ids, a.ID)
		if uploads.Load() == 0 {
			return g.fault(a.ID, protocol.CodeNeedProject)
		}
		return g.decision(allow(a.ID))
	})
	c := newClient(t, n, ProjectPolicy("{}"), ProjectPolicy(projectPolicy))
	d, err := c.Ask(within(t, 10*time.Second), under(projectPolicy))
	if err != nil || !d.Allowed() {
		t.Fatalf("%+v %v", d, err)
	}
	if uploads.Load() != 1 || len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("%d uploads, asked as %q", uploads.Load(), ids)
	}
}

// TestModulesAreUploadedWithThePolicy, as much of them as may be.
func TestModulesAreUploadedWithThePolicy(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	modules := []protocol.ProjectModule{{Name: "a", Code: strings.Repeat("\n\"", protocol.MaxProjectCode/4)}, {Name: "b", Error: "b.ts:1:1"}}
	uploads := make(chan protocol.ProjectUpload, 1)
	g.on(protocol.KindProject, func(data []byte) *nats.Msg {
		up, err := protocol.Read[protocol.ProjectUpload](data)
		if err != nil {
			t.Error(err)
		}
		uploads <- up
		return g.receipt(data)
	})
	var asked atomic.Int32
	g.asks(func(a protocol.Ask) *nats.Msg {
		if asked.Add(1) == 1 {
			return g.fault(a.ID, protocol.CodeNeedProject)
		}
		return g.decision(allow(a.ID))
	})
	a := call()
	a.Project = protocol.Project{ID: "github.com/acme/shop", Root: "/repo", Digest: protocol.ProjectDigest(projectPolicy, modules...)}
	c := newClient(t, n, ProjectPolicy(projectPolicy), ProjectOwn(projectPolicy, modules...))
	if d, err := c.Ask(within(t, 10*time.Second), a); err != nil || !d.Allowed() {
		t.Fatalf("%+v %v", d, err)
	}
	if up := <-uploads; up.Policy != projectPolicy || len(up.Modules) != 2 || up.Modules[0] != modules[0] || up.Modules[1] != modules[1] {
		t.Errorf("uploaded %d modules", len(up.Modules))
	}
}

// TestAPolicyThatTheGateGoesOnLackingEndsTheAsk: with the gate's own refusal, and
// never with a yes.
func TestAPolicyThatTheGateGoesOnLackingEndsTheAsk(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		opts    []Option
		uploads int32
	}{
		"the client has it, and uploads it twice": {[]Option{ProjectPolicy(projectPolicy)}, maxUploads},
		"the client has none":                     {nil, 0},
		"the client has another":                  {[]Option{ProjectPolicy("{}")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, n := startGate(t)
			var uploads atomic.Int32
			g.on(protocol.KindProject, func(data []byte) *nats.Msg {
				uploads.Add(1)
				return g.receipt(data)
			})
			g.asks(func(a protocol.Ask) *nats.Msg { return g.fault(a.ID, protocol.CodeNeedProject) })
			d, err := newClient(t, n, row.opts...).Ask(within(t, 10*time.Second), under(projectPolicy))
			var fault *protocol.Fault
			if !errors.As(err, &fault) || fault.Code != protocol.CodeNeedProject || d.Allowed() {
				t.Errorf("%+v %v", d, err)
			}
			if uploads.Load() != row.uploads {
				t.Errorf("%d uploads, want %d", uploads.Load(), row.uploads)
			}
		})
	}
}

// TestAnUploadTakesNothingElseForItsReceipt: a gate that has not stored the
// policy is not asked as if it had.
func TestAnUploadTakesNothingElseForItsReceipt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer func(g *gate) *nats.Msg
		want   error
	}{
		"an empty body": {func(*gate) *nats.Msg { return &nats.Msg{} }, ErrReply},
		"plain text":    {func(*gate) *nats.Msg { return &nats.Msg{Data: []byte("ok")} }, ErrReply},
		"another upload's": {func(g *gate) *nats.Msg {
			return body(g.t, protocol.ProjectReceipt{Digest: protocol.ProjectDigest("{}")})
		}, ErrReply},
		"a stream's receipt":     {func(*gate) *nats.Msg { return &nats.Msg{Data: []byte(`{"stream":"KV_ASSENT_PROJECTS","seq":1}`)} }, ErrReply},
		"a refusal":              {func(g *gate) *nats.Msg { return g.fault("", protocol.CodeTooLarge) }, &protocol.Fault{}},
		"a gate that cannot now": {func(g *gate) *nats.Msg { return g.fault("", protocol.CodeUnavailable) }, ErrUnavailable},
		"silence":                {func(*gate) *nats.Msg { return nil }, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, n := startGate(t)
			g.on(protocol.KindProject, func([]byte) *nats.Msg { return row.answer(g) })
			g.asks(func(a protocol.Ask) *nats.Msg { return g.fault(a.ID, protocol.CodeNeedProject) })
			c := newClient(t, n, ProjectPolicy(projectPolicy), Round(200*time.Millisecond))
			d, err := c.Ask(within(t, 10*time.Second), under(projectPolicy))
			var fault *protocol.Fault
			if _, wantFault := row.want.(*protocol.Fault); wantFault && !errors.As(err, &fault) || !wantFault && !errors.Is(err, row.want) || d.Allowed() {
				t.Errorf("%+v %v", d, err)
			}
		})
	}
}

func TestAPolicyThatCannotBeSentEndsTheAsk(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	g.on(protocol.KindProject, func([]byte) *nats.Msg { t.Error("uploaded"); return nil })
	g.asks(func(a protocol.Ask) *nats.Msg { return g.fault(a.ID, protocol.CodeNeedProject) })
	for name, policy := range map[string]string{"too large": strings.Repeat("x", protocol.MaxProjectPolicy+1), "not UTF-8": "{\xff}"} {
		c := newClient(t, n, ProjectPolicy(policy))
		if d, err := c.Ask(within(t, 10*time.Second), under(policy)); !errors.Is(err, ErrAsk) || d.Allowed() {
			t.Errorf("%s: %+v %v", name, d, err)
		}
	}
}
