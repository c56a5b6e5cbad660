package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// policyIs puts a policy in force.
func (d *logDesk) policyIs(t *testing.T, doc string) {
	t.Helper()
	js, err := bus.JetStream(d.node.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	kv, err := js.KeyValue(ctx, protocol.BucketPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctx, "fleet", []byte(doc)); err != nil {
		t.Fatal(err)
	}
}

// serve announces a link as pkg/link does.
func (d *logDesk) serve(t *testing.T, name, version, nodeName string, health ...string) {
	t.Helper()
	meta := map[string]string{"link": name, "node": nodeName, "version": version, link.MetadataHealth: link.HealthOK}
	if len(health) > 0 {
		meta[link.MetadataHealth] = health[0]
	}
	nc := d.node.Connect(t, protocol.RoleJudge, "j", node.IssueOptions{Links: []string{name}})
	s, err := micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: version, Metadata: meta})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestLinks: named ones in config order, then the others, and what does not
// fit.
func TestLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	d.policyIs(t, `{"authorizerChain": ["zulu", "absent", "alpha", "keyless"] /* in this order */ }`)
	d.serve(t, "keyless", "1.0.0", "main")
	d.serve(t, "keyless", "1.0.0", "main", "the variable KEY\x1b[2K is not set")
	d.serve(t, "alpha", "1.0.0", "main")
	d.serve(t, "alpha", "1.1.0", "main")
	d.serve(t, "zulu", "1.0.0", "main")
	d.serve(t, "zulu", "1.0.0", "main")
	d.serve(t, "stranger", "2.1.0", "main")
	d.serve(t, "stranger", "2.0.0", "main")
	d.serve(t, "absent", "1.0.0", "elsewhere")

	code, out, errs := d.typed(t, Links, "links")
	if code != ExitOK {
		t.Fatalf("exit %d, %q", code, errs)
	}
	wantLines(t, out, [][]string{
		{"PLACE", "LINK", "RUNNING", "VERSION", "PROBLEM"},
		{"1", "zulu", "2", "1.0.0"},
		{"2", "absent", "0", "does not run"},
		{"3", "alpha", "2", "1.0.0, 1.1.0", "different versions"},
		{"4", "keyless", "2", "1 of 2 cannot work: the variable KEY", "is not set"},
		{"-", "stranger", "2", "2.0.0, 2.1.0", "not named", "different versions"},
	})
	if zulu := strings.Split(out, "\n")[1]; !strings.HasSuffix(zulu, "1.0.0") {
		t.Errorf("a link that fits has a problem, or trailing blanks: %q", zulu)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("what a link says of itself can redraw the screen")
	}

	code, out, errs = d.typed(t, Links, "links", "--json")
	var got struct {
		Node  string
		Links []linkRow
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != ExitOK {
		t.Fatalf("exit %d, %v, %q, %q", code, err, out, errs)
	}
	problems := map[string]string{}
	for _, l := range got.Links {
		problems[l.Name] = l.Problem
	}
	want := map[string]string{"zulu": "", "absent": problemMissing, "alpha": problemVersions, "stranger": problemUnnamed, "keyless": problemUnable}
	for name, problem := range want {
		if p, ok := problems[name]; !ok || p != problem {
			t.Errorf("%s: problem %q, want %q", name, p, problem)
		}
	}
	if got.Node != "main" || len(got.Links) != len(want) {
		t.Errorf("got %+v", got)
	}
}

func TestLinksWithoutAny(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	if code, out, errs := d.typed(t, Links, "links"); code != ExitOK || !strings.Contains(out, "names no links") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, out, _ := d.typed(t, Links, "links", "--json"); code != ExitOK || strings.TrimSpace(out) != `{"node":"main","links":[]}` {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestLinksRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a policy that does not parse", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, protocol.RoleOperator)
		d.policyIs(t, `{"authorizerChain": [`)
		if code, out, errs := d.typed(t, Links, "links"); code != ExitFailure || out != "" || !strings.Contains(errs, "assent policy push") {
			t.Errorf("exit %d, %q, %q", code, out, errs)
		}
	})
	t.Run("a node that was never prepared", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, protocol.RoleOperator)
		js, err := bus.JetStream(d.node.Connect(t, protocol.RoleOperator, "op"))
		if err != nil {
			t.Fatal(err)
		}
		if err := js.DeleteKeyValue(t.Context(), protocol.BucketPolicy); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := d.typed(t, Links, "links"); code != ExitFailure || !strings.Contains(errs, "assent node prepare") {
			t.Errorf("exit %d, %q", code, errs)
		}
	})
	t.Run("an argument", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, protocol.RoleOperator)
		if code, _, _ := d.typed(t, Links, "links", "x"); code != ExitUsage {
			t.Errorf("exit %d, want %d", code, ExitUsage)
		}
	})
	t.Run("another role's credentials", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, protocol.RoleAuditor)
		if code, _, errs := d.typed(t, Links, "links"); code != ExitFailure || !strings.Contains(errs, "operator") {
			t.Errorf("exit %d, %q; want a word on the role", code, errs)
		}
	})
}
