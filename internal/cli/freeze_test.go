package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
)

func TestFreezeAndThawAreConfirmedByTheGates(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	w.gate(t)
	for _, who := range [][]string{{"--all"}, {"--agent", "ci-42"}, {"--session", "s 1/ü"}} {
		code, out, errs := w.typed(t, Freeze, append([]string{"freeze", "--reason", "incident 7"}, who...)...)
		if code != ExitOK || !strings.Contains(out, "incident 7") || !strings.Contains(out, "in force at 1 gate: g-1") {
			t.Fatalf("freeze %q: exit %d, %s%s", who, code, out, errs)
		}
		code, out, _ = w.typed(t, Freeze, "freeze", "list")
		if code != ExitOK || !strings.Contains(out, "incident 7") || !strings.Contains(out, strings.TrimPrefix(who[len(who)-1], "--")) {
			t.Errorf("list after %q: exit %d, %s", who, code, out)
		}
		_, found := w.examines(t)
		wantFinding(t, found, "freeze", stateWarn, "incident 7")
		code, out, errs = w.typed(t, Thaw, append([]string{"thaw", "--json"}, who...)...)
		var c changedFreeze
		if err := json.Unmarshal([]byte(out), &c); code != ExitOK || err != nil || !c.Thawed || len(c.Gates) != 1 || !c.Gates[0].Confirmed {
			t.Errorf("thaw %q: exit %d, %s%s, %v", who, code, out, errs, err)
		}
		if code, _, errs = w.typed(t, Thaw, append([]string{"thaw"}, who...)...); code != ExitFailure || !strings.Contains(errs, "is not frozen") {
			t.Errorf("thawed twice: exit %d, %s", code, errs)
		}
	}
	if _, out, _ := w.typed(t, Freeze, "freeze", "list"); !strings.Contains(out, "nothing is frozen") {
		t.Errorf("at last: %s", out)
	}
	_, out, _ := w.typed(t, Freeze, "freeze", "list", "--history", "--json")
	var rows []listedFreeze
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 6 || rows[0].State != "thawed" || rows[0].At.Before(rows[1].At) || rows[1].State != "replaced" {
		t.Errorf("history: %s, %v", out, err)
	}
	if _, found := w.examines(t); found["freeze"].Check != "" {
		t.Errorf("the doctor still finds %+v", found["freeze"])
	}
}

func TestFreezeIsToldWhomAndWhy(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	for _, args := range [][]string{
		{"freeze", "--reason", "x"}, {"freeze", "--all"}, {"freeze", "--all", "--reason", "  "}, {"freeze", "--all", "--agent", "ci", "--reason", "x"},
		{"freeze", "--agent", "c i", "--reason", "x"}, {"freeze", "ci", "--reason", "x"}, {"freeze", "--session", strings.Repeat("s", 300), "--reason", "x"},
	} {
		if code, out, errs := w.typed(t, Freeze, args...); code != ExitUsage || errs == "" || out != "" {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errs)
		}
	}
	for _, args := range [][]string{{"thaw"}, {"thaw", "--all", "--session", "s"}, {"thaw", "--key", "fleet"}, {"thaw", "--all", "now"}} {
		if code, out, errs := w.typed(t, Thaw, args...); code != ExitUsage || errs == "" || out != "" {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errs)
		}
	}
}

// TestAFreezeWithoutAGateStands and says that nobody confirmed it.
func TestAFreezeWithoutAGateStands(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	code, out, errs := w.typed(t, Freeze, "freeze", "--all", "--reason", "incident 7")
	if code != ExitOK || !strings.Contains(out, "no gate answers: each that starts, or comes back to NATS, reads it") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if _, out, _ := w.typed(t, Freeze, "freeze", "list"); !strings.Contains(out, "incident 7") {
		t.Errorf("list: %s", out)
	}
}

// TestABrokenFreezeIsShownAndCanBeLifted, also one whose key does not read.
func TestABrokenFreezeIsShownAndCanBeLifted(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	w.gate(t)
	for key, lift := range map[string][]string{"freeze.agent.ci": {"--agent", "ci"}, "freeze.team.x": {"--key", "freeze.team.x"}} {
		w.put(t, key, "{")
		_, found := w.examines(t)
		wantFinding(t, found, "freeze", stateFail, "does not read")
		if code, out, errs := w.typed(t, Thaw, append([]string{"thaw"}, lift...)...); code != ExitOK || !strings.Contains(out, "thawed") {
			t.Errorf("%s: exit %d, %s%s", key, code, out, errs)
		}
	}
}

// TestWhatConfirmsNothing: answers that are not about the question.
func TestWhatConfirmsNothing(t *testing.T) {
	t.Parallel()
	asked := protocol.Confirm{Key: "freeze.all", Revision: 7}
	for name, row := range map[string]struct {
		data string
		ok   bool
	}{
		"that very revision":  {`{"v":1,"gate":"g1","key":"freeze.all","revision":7}`, true},
		"a later field":       {`{"v":1,"gate":"g1","key":"freeze.all","revision":7,"x":1}`, true},
		"an older revision":   {`{"v":1,"gate":"g1","key":"freeze.all","revision":6}`, false},
		"a newer revision":    {`{"v":1,"gate":"g1","key":"freeze.all","revision":8}`, false},
		"another gate":        {`{"v":1,"gate":"g2","key":"freeze.all","revision":7}`, false},
		"another key":         {`{"v":1,"gate":"g1","key":"freeze.agent.a","revision":7}`, false},
		"nothing":             {``, false},
		"no message":          {`{}`, false},
		"the question itself": {`{"v":1,"key":"freeze.all","revision":7}`, false},
	} {
		if err := confirms([]byte(row.data), "g1", asked); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEachPromptSaysWhatIsFrozen, and the list below.
func TestEachPromptSaysWhatIsFrozen(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	js, err := bus.JetStream(d.node.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := layers.Open(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	who, err := layers.Agent("other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Freeze(t.Context(), who, protocol.Freeze{Reason: "incident \x1b[31m7", By: "op", At: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	decided := d.asks(t, "make")
	d.waitFor(t, "FROZEN  agent other, by op: incident ·[31m7")
	d.types(t, "a 1")
	if got := <-decided; got.Outcome != protocol.AllowedByHuman {
		t.Errorf("decided %s", got.Outcome)
	}
}

// TestAnApproverIsToldThatTheAnswerFellToAFreeze rather than that it stands.
func TestAnApproverIsToldThatTheAnswerFellToAFreeze(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	decided := d.asks(t, "make")
	d.waitFor(t, "a 1 · d 1")
	js, err := bus.JetStream(d.node.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := layers.Open(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Freeze(t.Context(), layers.Fleet(), protocol.Freeze{Reason: "incident 7", By: "op", At: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	if got := <-decided; got.Outcome != protocol.Frozen || got.Reason != "incident 7" {
		t.Errorf("decided %s, %q", got.Outcome, got.Reason)
	}
	d.waitFor(t, "ask 1 is over")
	d.types(t, "a 1")
	d.waitFor(t, "which one?")
}

// TestAGateThatDoesNotConfirmIsNamed: the freeze stands, and the exit code says
// that it may not be in force everywhere.
func TestAGateThatDoesNotConfirmIsNamed(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	w.gate(t)
	silent := w.node.Connect(t, protocol.RoleGate, "g-2") // answers discovery, and nothing else
	service, err := micro.AddService(silent, micro.Config{Name: gate.ServiceName, Version: "1.0.0", Metadata: map[string]string{"node": "main", "gate": "g-2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop() })
	code, out, errs := w.typed(t, Freeze, "freeze", "--all", "--reason", "incident 7")
	if code != ExitFailure || !strings.Contains(out, "in force at 1 gate: g-1") || !strings.Contains(errs, "not confirmed by g-2") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if _, out, _ := w.typed(t, Freeze, "freeze", "list"); !strings.Contains(out, "incident 7") {
		t.Errorf("list: %s", out)
	}
}

// TestAFreezeOfANameThatNeverAskedSaysSo: it may be mistyped, and the one who is
// meant goes on.
func TestAFreezeOfANameThatNeverAskedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	w.record(t, func(d *protocol.Decision) { d.Agent = "ci-42" })
	for name, doubt := range map[string]bool{"ci-42": false, "ci-4": true, "ci42": true} {
		code, out, errs := w.typed(t, Freeze, "freeze", "--agent", name, "--reason", "incident 7")
		if code != ExitOK || !strings.Contains(out, "frozen: agent "+name) || strings.Contains(errs, "is the name right") != doubt {
			t.Errorf("%s: exit %d, %s%s", name, code, out, errs)
		}
	}
	if _, _, errs := w.typed(t, Freeze, "freeze", "--all", "--reason", "incident 7"); errs != "" {
		t.Errorf("the fleet has no name: %s", errs)
	}
}
