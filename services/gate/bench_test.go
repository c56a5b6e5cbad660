package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// BenchmarkAskThatARuleDecides is one ask from an agent over the account border
// to the gate, onto the stream and back, beside a bare request and reply of the
// same size over the same server.
func BenchmarkAskThatARuleDecides(b *testing.B) {
	r := newRig(b, `{"permission":{"bash":{"*":"ask","git status":"allow"}},"limits":{"asksPerSecond":100000}}`)
	g := r.newGate("g1", r.Connect(b, protocol.RoleGate, "g1"))
	g.times = standardTimes
	g.start()
	a := r.agent("ci")
	subject := must(r.Subjects.Ask("ci"))(b)
	body := func() []byte { return must(protocol.Write(a.bash("git status")))(b) }
	bare := bareRoundTrip(b, r, body())
	for b.Loop() {
		m, err := a.nc.Request(subject, body(), soon)
		if err != nil {
			b.Fatal(err)
		}
		if d, err := protocol.Read[protocol.Decision](m.Data); err != nil || !d.Allowed() {
			b.Fatalf("%s: %v", m.Data, err)
		}
	}
	each := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(each.Nanoseconds()), "ns/ask")
	b.ReportMetric(float64(bare.Nanoseconds()), "ns/bare")
	b.ReportMetric(float64(each)/float64(bare), "ratio")
}

// bareRoundTrip is how long NATS alone takes for a request and a reply between
// two connections within the process.
func bareRoundTrip(b *testing.B, r *rig, body []byte) time.Duration {
	b.Helper()
	judge := r.Connect(b, protocol.RoleJudge, "bare")
	subject := must(r.Subjects.Link("bare"))(b)
	must(judge.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(m.Data) }))(b)
	flush(b, judge)
	gate := r.Connect(b, protocol.RoleGate, "bare")
	const rounds = 3000
	began := time.Now()
	for range rounds {
		if _, err := gate.Request(subject, body, soon); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began) / rounds
}

// BenchmarkRuling is the part of it that is not NATS.
func BenchmarkRuling(b *testing.B) {
	r := newRig(b, plainPolicy)
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("git status")
	digest := must(ask.Digest(nodetest.Name))(b)
	for b.Loop() {
		ruled := must(g.rule(b.Context(), ask))(b)
		if d := ruled.decision(g.Gate, call{ask: ask, digest: digest}); !d.Allowed() {
			b.Fatal("not allowed")
		}
	}
}

// BenchmarkRulingUnderModules is the same under permission modules: none, a
// thousand checks of other tools, ten modules that look at the call.
func BenchmarkRulingUnderModules(b *testing.B) {
	elsewhere, looking := map[string]string{}, map[string]string{}
	for i := range 10 {
		elsewhere[fmt.Sprintf("m%d.js", i)] = `export default (api) => { for (let i = 0; i < 100; i++) api.onToolUse({ name: "c" + i, description: "d", matcher: "deploy", handler: () => undefined }); };`
		looking[fmt.Sprintf("m%d.js", i)] = `export default (api) => api.onToolUse({ name: "c", description: "d", matcher: "bash", handler: ({ tool }) => { if (tool.command.includes("never")) throw new Error("x"); } });`
	}
	for _, row := range []struct {
		name  string
		files map[string]string
	}{{"none", nil}, {"a thousand of other tools", elsewhere}, {"ten that look", looking}} {
		b.Run(row.name, func(b *testing.B) {
			r := newRig(b, strings.Replace(plainPolicy, `"terminal"`, `"modules": { "callTime": "1s" }, "terminal"`, 1))
			if row.files != nil {
				m, _ := r.typescript(row.files)
				r.modules = m
			}
			g := r.gate("g1")
			ask := r.agent("ci").bash("git status")
			for b.Loop() {
				if ruled := must(g.rule(b.Context(), ask))(b); ruled.ruling.Action != policy.Allow {
					b.Fatalf("%+v", ruled.checked)
				}
			}
		})
	}
}
