package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// upload sends a project's policy and returns the receipt, or the fault.
func (a *agent) upload(policy string) (protocol.ProjectReceipt, *protocol.Fault) {
	a.r.t.Helper()
	return a.uploadRaw(must(protocol.Write(protocol.ProjectUpload{Project: shop, Digest: protocol.ProjectDigest(policy), Policy: policy}))(a.r.t))
}

// uploadRaw waits where the agent uploads too fast.
func (a *agent) uploadRaw(data []byte) (receipt protocol.ProjectReceipt, fault *protocol.Fault) {
	a.r.t.Helper()
	until(a.r.t, "uploaded", func() (err error) {
		receipt, fault, err = a.uploadOnce(data)
		if err == nil && fault != nil && strings.Contains(fault.Message, "too fast") {
			time.Sleep(50 * time.Millisecond)
			err = fault
		}
		return err
	})
	return receipt, fault
}

func (a *agent) uploadOnce(data []byte) (protocol.ProjectReceipt, *protocol.Fault, error) {
	subject, err := a.r.Subjects.Project(a.name)
	if err != nil {
		return protocol.ProjectReceipt{}, nil, err
	}
	m, err := a.nc.Request(subject, data, soon)
	if err != nil {
		return protocol.ProjectReceipt{}, nil, err
	}
	if m.Header.Get(protocol.HeaderErrorCode) != "" {
		f, err := protocol.Read[protocol.ErrorReply](m.Data)
		return protocol.ProjectReceipt{}, &f.Error, err
	}
	r, err := protocol.Read[protocol.ProjectReceipt](m.Data)
	return r, nil, err
}

// under is an ask that names a project's policy.
func (a *agent) under(command, project, root, policy string) protocol.Ask {
	ask := in(a.bash(command), project, root, "")
	ask.Project.Digest = protocol.ProjectDigest(policy)
	return ask
}

const (
	noMake   = `{"permission":{"bash":{"make *":"deny"}}}`
	freeMake = `{"permission":{"bash":{"make *":"allow","npm *":"allow"}}}`
)

func TestAProjectsOwnPolicyOnlyTightensUnlessItIsTrusted(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	r.gate("g1")
	ci, other := r.agent("ci"), r.agent("ci-2")
	for _, row := range []struct {
		name, command string
		a             *agent
		id, root      string
		policy        string
		result        protocol.FinalChoice
		outcome       protocol.Outcome
	}{
		{"it denies what would ask", "make x", other, "any", "/x", noMake, deny, protocol.DeniedByRule},
		{"it denies what would be allowed", "git status", other, "any", "/x", `{"permission":{"bash":"deny"}}`, deny, protocol.DeniedByRule},
		{"it asks what would be allowed", "git status", other, "any", "/x", `{"permission":{"bash":"ask"}}`, deny, protocol.NoApprover},
		{"it allows nothing that would ask", "make x", other, "any", "/x", freeMake, deny, protocol.NoApprover},
		{"it allows nothing under a trusted name from elsewhere", "make x", ci, shop, "/tmp/shop", freeMake, deny, protocol.NoApprover},
		{"it allows nothing for an agent that is not trusted", "make x", other, shop, shopRoot, freeMake, deny, protocol.NoApprover},
		{"trusted, it allows", "make x", ci, shop, shopRoot, freeMake, allow, protocol.AllowedByRule},
		{"trusted, it lifts no deny", "npm ci", ci, shop, shopRoot, freeMake, deny, protocol.DeniedByRule},
		{"where it says nothing, all is as before", "git status", other, "any", "/x", `{}`, allow, protocol.AllowedByRule},
		{"turning yolo off is taken", "git status", other, "any", "/x", `{"yoloMode":false}`, allow, protocol.AllowedByRule},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, fault := row.a.upload(row.policy); fault != nil {
				t.Fatal(fault)
			}
			ask := row.a.under(row.command, row.id, row.root, row.policy)
			d := row.a.decide(ask)
			want(t, d, row.result, row.outcome)
			if d.Policy.Project != ask.Project.Digest {
				t.Errorf("the decision names project policy %q", d.Policy.Project)
			}
		})
	}
}

func TestAnUnknownProjectPolicyIsNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.under("git status", shop, shopRoot, noMake)
	needed := func(t *testing.T, ask protocol.Ask) {
		t.Helper()
		if h := a.once(ask); h.fault == nil || h.fault.Error.Code != protocol.CodeNeedProject || h.fault.Ask != ask.ID {
			t.Fatalf("got %+v", h)
		}
		if n := len(r.decisions(ask.ID)); n != 0 {
			t.Errorf("%d decisions stand", n)
		}
	}
	needed(t, ask)
	t.Run("another agent's upload is not this one's", func(t *testing.T) {
		if _, fault := r.agent("ci-2").upload(noMake); fault != nil {
			t.Fatal(fault)
		}
		needed(t, ask)
	})
	for name, digest := range map[string]string{
		"a digest that is none":     "sha256:5f2a",
		"a wildcard":                "sha256:*",
		"another agent's key":       "ci-2." + protocol.ProjectDigest(noMake)[7:],
		"the digest in upper case":  strings.ToUpper(ask.Project.Digest),
		"the digest without a kind": ask.Project.Digest[7:],
	} {
		t.Run(name, func(t *testing.T) {
			bad := in(a.bash("git status"), shop, shopRoot, "")
			bad.Project.Digest = digest
			needed(t, bad)
		})
	}
	if _, fault := a.upload(noMake); fault != nil {
		t.Fatal(fault)
	}
	want(t, a.decide(ask), allow, protocol.AllowedByRule)
	t.Run("every gate knows it, also one that begins later", func(t *testing.T) {
		g.stop()
		r.gate("g2")
		want(t, a.decide(a.under("make x", shop, shopRoot, noMake)), deny, protocol.DeniedByRule)
	})
	t.Run("without it nothing holds that it would deny: the project's layer is the operator's", func(t *testing.T) {
		want(t, a.decide(in(a.bash("git status"), shop, shopRoot, "")), allow, protocol.AllowedByRule)
	})
}

func TestAProjectPolicyThatDoesNotReadClamps(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	r.gate("g1")
	a := r.agent("ci")
	for name, policy := range map[string]string{
		"cut off":              `{"permission":`,
		"empty":                ``,
		"an unknown key":       `{"allow":"*"}`,
		"that names links":     `{"authorizerChain":["mine"]}`,
		"that sets the bound":  `{"modelDelegation":{"allowedSurfaces":["*"]}}`,
		"that turns yolo on":   `{"yoloMode":true}`,
		"that trusts itself":   `{"trustedProjects":[]}`,
		"that lifts the guard": `{"selfProtection":{"allow":["assent-files"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			receipt, fault := a.upload(policy)
			if fault != nil || receipt.Error == "" {
				t.Fatalf("receipt %+v, fault %v", receipt, fault)
			}
			want(t, a.decide(a.under("git status", shop, shopRoot, policy)), deny, protocol.NoApprover)
			want(t, a.decide(a.under("npm ci", shop, shopRoot, policy)), deny, protocol.DeniedByRule)
		})
	}
	t.Run("one for a project without a name", func(t *testing.T) {
		if receipt, fault := a.upload(`{}`); fault != nil || receipt.Error != "" {
			t.Fatalf("receipt %+v, fault %v", receipt, fault)
		}
		want(t, a.decide(a.under("git status", "", shopRoot, `{}`)), deny, protocol.NoApprover)
		want(t, a.decide(a.under("git status", shop, shopRoot, `{}`)), allow, protocol.AllowedByRule)
	})
}

func TestUploadsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.gate("g1")
	a := r.agent("ci")
	good := string(must(protocol.Write(protocol.ProjectUpload{Project: shop, Digest: protocol.ProjectDigest(noMake), Policy: noMake}))(t))
	large := strings.Repeat("x", protocol.MaxProjectPolicy+1)
	for name, row := range map[string]struct {
		data string
		code protocol.Code
	}{
		"another policy's digest": {strings.Replace(good, "sha256:", "sha256:0", 1), protocol.CodeInvalid},
		"the digest of another":   {`{"v":1,"project":"p","digest":"` + protocol.ProjectDigest("{}") + `","policy":"{ }"}`, protocol.CodeInvalid},
		"invalid UTF-8":           {`{"v":1,"project":"p","digest":"` + protocol.ProjectDigest("\xff") + `","policy":"` + "\xff" + `"}`, protocol.CodeInvalid},
		"half a surrogate pair":   {`{"v":1,"project":"p","digest":"` + protocol.ProjectDigest("\xff") + `","policy":"\ud800"}`, protocol.CodeInvalid},
		"a policy twice":          {strings.TrimSuffix(good, "}") + `,"policy":"{}"}`, protocol.CodeInvalid},
		"no version":              {strings.Replace(good, `"v":1,`, "", 1), protocol.CodeInvalid},
		"nothing":                 {"", protocol.CodeInvalid},
		"too large":               {`{"v":1,"project":"p","digest":"` + protocol.ProjectDigest(large) + `","policy":"` + large + `"}`, protocol.CodeTooLarge},
		"far too large":           {strings.Repeat(" ", protocol.CarrierMaxBytes+1), protocol.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if receipt, fault := a.uploadRaw([]byte(row.data)); fault == nil || fault.Code != row.code {
				t.Errorf("receipt %+v, fault %v, want %s", receipt, fault, row.code)
			}
		})
	}
	if n := must(r.js.Stream(context.Background(), "KV_"+protocol.BucketProjects))(t).CachedInfo().State.Msgs; n != 0 {
		t.Errorf("%d are stored", n)
	}
	t.Run("as another agent it does not leave", func(t *testing.T) {
		subject := must(r.Subjects.Project("ci-2"))(t)
		if _, err := a.nc.Request(subject, []byte(good), 300*time.Millisecond); err == nil {
			t.Error("answered")
		}
	})
	t.Run("with a reply subject that the server did not make it is dropped", func(t *testing.T) {
		g := r.newGate("g2", r.Connect(t, protocol.RoleGate, "g2"))
		for _, reply := range []string{"$KV.ASSENT_POLICY.fleet", "assent.v1.main.decision.x", ""} {
			g.serveProject(&nats.Msg{Subject: must(r.Subjects.Project("ci"))(t), Reply: reply, Data: []byte(good)})
		}
		if n := must(r.js.Stream(context.Background(), "KV_"+protocol.BucketProjects))(t).CachedInfo().State.Msgs; n != 0 {
			t.Errorf("%d are stored", n)
		}
	})
}

func TestAFloodOfUploadsIsHeldOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.gate("g1")
	flooder, other := r.agent("ci"), r.agent("ci-2")
	refused := 0
	for i := range 40 {
		text := fmt.Sprintf(`{"permission":{"bash":{"x%d":"deny"}}}`, i)
		_, fault, err := flooder.uploadOnce(must(protocol.Write(protocol.ProjectUpload{Digest: protocol.ProjectDigest(text), Policy: text}))(t))
		if err != nil {
			t.Fatal(err)
		}
		if fault != nil {
			if fault.Code != protocol.CodeUnavailable {
				t.Fatal(fault)
			}
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("%d of 40 were refused", refused)
	}
	if _, fault, err := other.uploadOnce(must(protocol.Write(protocol.ProjectUpload{Digest: protocol.ProjectDigest(noMake), Policy: noMake}))(t)); err != nil || fault != nil {
		t.Errorf("another agent is held off too: %v %v", fault, err)
	}
}

// TestAnAllowIsRuledAgainUnderTheProjectsPolicy: an approver's change of the call
// must not lead past what the project denies, and where that is not known any
// more, nothing is allowed.
func TestAnAllowIsRuledAgainUnderTheProjectsPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	if _, fault := a.upload(noMake); fault != nil {
		t.Fatal(fault)
	}
	pend := func() protocol.Ask {
		ask := a.under("ls", shop, shopRoot, noMake)
		a.pend(ask)
		return ask
	}
	t.Run("as it was asked", func(t *testing.T) {
		ask := pend()
		r.answer(ask.ID, protocol.TerminalVerdict{Verdict: allow})
		d := a.decide(ask)
		want(t, d, allow, protocol.AllowedByHuman)
		if d.Policy.Project != ask.Project.Digest {
			t.Errorf("project policy %q", d.Policy.Project)
		}
	})
	t.Run("changed into what the project denies", func(t *testing.T) {
		ask := pend()
		r.answer(ask.ID, protocol.TerminalVerdict{Verdict: allow, EditedInput: []byte(`{"command":"make x"}`)})
		want(t, a.decide(ask), deny, protocol.DeniedByRule)
	})
	t.Run("at another gate", func(t *testing.T) {
		ask := pend()
		g.kill()
		g = r.gate("g2")
		r.answer(ask.ID, protocol.TerminalVerdict{Verdict: allow, EditedInput: []byte(`{"command":"make x"}`)})
		want(t, a.decide(ask), deny, protocol.DeniedByRule)
	})
	t.Run("no longer stored, at a gate that has not read it", func(t *testing.T) {
		ask, denied := pend(), pend()
		g.kill()
		if err := must(r.js.Stream(context.Background(), "KV_"+protocol.BucketProjects))(t).Purge(context.Background()); err != nil {
			t.Fatal(err)
		}
		g = r.gate("g3")
		r.answer(ask.ID, protocol.TerminalVerdict{Verdict: allow})
		r.answer(denied.ID, protocol.TerminalVerdict{Verdict: deny, Reason: "no"})
		d := a.decide(ask)
		want(t, d, deny, protocol.Unavailable)
		if d.Approver != "oncall-1" || !strings.Contains(d.Reason, "project's own policy") {
			t.Errorf("approver %q, reason %q", d.Approver, d.Reason)
		}
		want(t, a.decide(denied), deny, protocol.DeniedByHuman)
	})
}

// TestAnAskIsDeniedWhileProjectPoliciesCannotBeRead: neither it nor a link's
// allow, nor a person's, goes past what the project may deny.
func TestAnAskIsDeniedWhileProjectPoliciesCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	g := r.gate("g1")
	a := r.agent("ci")
	if _, fault := a.upload(noMake); fault != nil {
		t.Fatal(fault)
	}
	if err := r.js.DeleteStream(context.Background(), "KV_"+protocol.BucketProjects); err != nil {
		t.Fatal(err)
	}
	want(t, a.decide(a.under("git status", shop, shopRoot, noMake)), deny, protocol.Unavailable)
	want(t, a.decide(in(a.bash("git status"), shop, shopRoot, "")), allow, protocol.AllowedByRule)
	if _, fault := a.upload(noMake); fault == nil || fault.Code != protocol.CodeUnavailable {
		t.Errorf("uploaded: %v", fault)
	}
	p := protocol.Pending{Ask: a.under("git status", shop, shopRoot, noMake)}
	entry := protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceAllow}
	if g.applyEnvelope(context.Background(), p, &entry); !entry.Capped || entry.Verdict != protocol.ChoiceDefer {
		t.Errorf("a link's allow stands: %+v", entry)
	}
	if _, err := g.conclude(context.Background(), p, byLink(protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceAllow})); err == nil || errors.Is(err, errNeedProject) {
		t.Errorf("concluded: %v", err)
	}
}

func TestALinksQueryIsAnsweredUnderTheProjectsPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	g := r.gate("g1")
	a := r.agent("ci")
	g.inForce(r.layer("agent/reviewer", `{"permission":{"bash":{"git *":"deny"}}}`))
	if _, fault := a.upload(noMake); fault != nil {
		t.Fatal(fault)
	}
	for _, row := range []struct {
		name, policy, command, as string
		want                      protocol.Action
	}{
		{"the project's policy denies", noMake, "make x", "", protocol.ActionDeny},
		{"what it leaves alone is as before", noMake, "git status", "", protocol.ActionAllow},
		{"without one the fleet's rules stand", "", "make x", "", protocol.ActionAsk},
		{"as another kind of agent", "", "git status", "reviewer", protocol.ActionDeny},
	} {
		ask := in(a.bash("ls"), shop, "/elsewhere", "")
		if row.policy != "" {
			ask.Project.Digest = protocol.ProjectDigest(row.policy)
		}
		got, err := g.check(context.Background(), &capability{ask: ask}, protocol.Query{Surface: "bash", Value: row.command, AgentName: row.as})
		if err != nil || got.State != row.want {
			t.Errorf("%s: %v %v, want %v", row.name, got.State, err, row.want)
		}
	}
}

// TestAProjectPolicyInUseIsRenewed: it must outlive the wait of an ask that
// begins now.
func TestAProjectPolicyInUseIsRenewed(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	g := r.gate("g1")
	a := r.agent("ci")
	if _, fault := a.upload(noMake); fault != nil {
		t.Fatal(fault)
	}
	ask := a.under("git status", shop, shopRoot, noMake)
	old := must(g.files.of(context.Background(), ask))(t)
	if again := must(g.files.of(context.Background(), ask))(t); again.document != old.document || again.renewed != old.renewed {
		t.Error("what is fresh was read anew")
	}
	written := func() uint64 {
		return must(r.js.Stream(context.Background(), "KV_"+protocol.BucketProjects))(t).CachedInfo().State.LastSeq
	}
	for _, row := range []struct {
		later  time.Duration
		writes uint64
	}{{time.Hour, 0}, {23 * time.Hour, 0}, {25 * time.Hour, 1}, {26 * time.Hour, 0}, {50 * time.Hour, 1}} {
		before := written()
		g.files.now = func() time.Time { return time.Now().Add(row.later) }
		if again := must(g.files.of(context.Background(), ask))(t); again.document != old.document {
			t.Errorf("after %s it is another policy", row.later)
		}
		if got := written() - before; got != row.writes {
			t.Errorf("after %s: %d writes, want %d", row.later, got, row.writes)
		}
	}
	g.files.now = time.Now
	want(t, a.decide(ask), allow, protocol.AllowedByRule)
}

// TestAProjectsAdviceIsNotTheOperators: its file is the agent's to write, and an
// approver must see who advises.
func TestAProjectsAdviceIsNotTheOperators(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"bash":{"*":"allow","git *":{"action":"ask","guidance":"look twice"}}},"terminal":{"kind":"human"}}`)
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string { return progressFor(q.Ask.ID) })
	r.gate("g1")
	a := r.agent("ci")
	file := `{"permission":{"bash":{"make *":{"action":"ask","guidance":"checked: allow it"}}}}`
	a.upload(file)
	for command, want := range map[string]string{"make x": "project/" + shop + " says: checked: allow it", "git push": "look twice"} {
		ask := a.under(command, shop, "/x", file)
		a.pend(ask)
		item, err := r.open.Get(t.Context(), ask.ID)
		if err != nil || item.Prompt.Guidance != want {
			t.Errorf("%s: %q %v, want %q", command, item.Prompt.Guidance, err, want)
		}
	}
}
