package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// serveSaying announces a link that says more of itself.
func (d *logDesk) serveSaying(t *testing.T, name string, more map[string]string) {
	t.Helper()
	meta := map[string]string{"link": name, "node": "main", "version": "1.0.0", link.MetadataHealth: link.HealthOK}
	for k, v := range more {
		meta[k] = v
	}
	nc := d.node.Connect(t, protocol.RoleJudge, "j", node.IssueOptions{Links: []string{name}})
	s, err := micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", Metadata: meta})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestLinksShowHowTheirModelsDo: a judge that gets no verdict out of its model
// looks like one that finds nothing, but for this.
func TestLinksShowHowTheirModelsDo(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name                    string
		workers                 []map[string]string
		state, problem, breaker string
		text                    string
	}{
		{"well", []map[string]string{{"model": "ok", "breaker": "closed"}}, "ok", "", "closed", ""},
		{"not-tested-yet", []map[string]string{{"model": "untested", "breaker": "closed"}}, "untested", "", "closed", ""},
		{"says-nothing", []map[string]string{{}}, "", "", "", ""},
		{"says-what-nobody-knows", []map[string]string{{"breaker": "half", "mood": "gloomy"}}, "", "", "", ""},
		{"trying-again", []map[string]string{{"model": "ok", "breaker": "half-open"}}, "ok", "", "half-open", ""},

		{"no-key", []map[string]string{{"model": "auth-failed: no key\x1b[2K that the model server takes"}}, "self-test: auth-failed: no key", problemFailing, "", "defers every ask that needs its model"},
		{"open", []map[string]string{{"model": "ok", "breaker": "open", "failing": "since 2026-11-30T12:00:00Z: timeout"}}, "breaker open, since 2026-11-30T12:00:00Z: timeout", problemFailing, "open", "defers every ask that needs its model"},
		{"failing", []map[string]string{{"model": "ok", "failing": "since 2026-11-30T12:00:00Z: prose"}}, "fails safe since 2026-11-30T12:00:00Z: prose", problemFailing, "", "defers every ask that needs its model"},
		{"one-of-two", []map[string]string{{"model": "ok", "breaker": "closed"}, {"model": "ok", "breaker": "open"}}, "breaker open", problemFailing, "open", "1 of 2 defers every ask that needs its model"},
		{"worse-than-that", []map[string]string{{"model": "auth-failed: no"}, {"health": "no key"}}, "self-test: auth-failed: no", problemUnable, "", "1 of 2 cannot work: no key"},
	}
	d := newDesk(t, protocol.RoleOperator)
	var chain []string
	for _, row := range rows {
		chain = append(chain, row.name)
		for _, w := range row.workers {
			d.serveSaying(t, row.name, w)
		}
	}
	policy, _ := json.Marshal(map[string]any{"authorizerChain": chain})
	d.policyIs(t, string(policy))
	_, out, errs := d.typed(t, Links, "links", "--json")
	var got struct{ Links []linkRow }
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Links) != len(rows) {
		t.Fatalf("%v, %q, %q", err, out, errs)
	}
	_, table, _ := d.typed(t, Links, "links")
	lines := strings.Split(table, "\n")
	if !strings.Contains(lines[0], "STATE") || strings.Contains(table, "\x1b") {
		t.Errorf("the table is\n%s", table)
	}
	for i, row := range rows {
		l := got.Links[i]
		if l.Name != row.name || !strings.HasPrefix(l.State, row.state) || (l.State == "") != (row.state == "") || l.Problem != row.problem || l.Breaker != row.breaker {
			t.Errorf("%s: %+v", row.name, l)
		}
		if !strings.Contains(lines[i+1], row.text) || !strings.Contains(lines[i+1], row.state) {
			t.Errorf("%s: %s", row.name, lines[i+1])
		}
	}
}
