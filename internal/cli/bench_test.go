package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/bench"
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// benched reads what `assent bench --json` printed, by work.
func benched(t *testing.T, out string) (rows map[string]bench.Row, bars []bench.Bar) {
	t.Helper()
	var r struct {
		Rows []bench.Row `json:"rows"`
		Bars []bench.Bar `json:"bars"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rows = map[string]bench.Row{}
	for _, row := range r.Rows {
		rows[row.Work] = row
	}
	return rows, r.Bars
}

func TestBenchMeasuresOnANodeOfItsOwnAndLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	env, out, errs := testEnv()
	// Whatever node the environment names, it is left alone.
	env.Getenv = func(string) string { return "nats://192.0.2.1:1" }
	if code := Main(env, []string{"bench", "--rounds", "1", "--sample", "20ms", "--callers", "2", "--json"}, Bench); code != ExitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	rows, bars := benched(t, out.String())
	for _, work := range []string{bench.Raw, bench.Bare, bench.Ask, bench.Chain(1), bench.Chain(5)} {
		if row := rows[work]; row.Operations < 2 || row.P50 <= 0 || row.Raw <= 0 {
			t.Errorf("%s: %+v", work, row)
		}
	}
	if len(bars) != 1+len(bench.Chains) {
		t.Errorf("bars %+v", bars)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchAtANodeAsksWhatItsRulesDecide(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{"permission":{"bash":{"*":"ask","git status":"allow","rm *":"deny"}},"terminal":{"kind":"human"}}`)
	w.gate(t)
	creds := filepath.Join(t.TempDir(), "agent.creds")
	if err := os.WriteFile(creds, w.node.Creds(t, protocol.RoleAgent, "ci"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(more ...string) (int, string, string) {
		return w.typed(t, Bench, append([]string{"bench", "--nats", w.node.ClientURL(), "--creds", creds, "--rounds", "1", "--sample", "300ms", "--callers", "2", "--json"}, more...)...)
	}
	code, out, errs := at()
	if code != ExitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	rows, bars := benched(t, out)
	// 40 a second in 300 ms, and one that each caller had begun to wait for.
	if ask := rows[bench.Ask]; ask.Operations < 1 || ask.Operations > 20 || ask.P50 <= 0 {
		t.Errorf("%+v", ask)
	}
	if rows[bench.Ping].Operations < 1 || len(bars) > 0 {
		t.Errorf("ping %+v, bars %v", rows[bench.Ping], bars)
	}
	if code, _, errs = at("--input", `{"command":"rm x"}`); code != ExitFailure || !strings.Contains(errs, "name a call that the rules allow") {
		t.Errorf("a call that is denied: exit %d, %s", code, errs)
	}
	if code, _, errs = at("--input", `{"command":"make"}`); code != ExitFailure || !strings.Contains(errs, "the rules leave it open (it was at terminal:human): name a call that the rules allow") {
		t.Errorf("a call that is open: exit %d, %s", code, errs)
	}
	looks := w.node.Connect(t, protocol.RoleGate, "looks")
	nodetest.CheckFor(t, 10*time.Second, 10*time.Millisecond, func() error {
		open, err := bus.LastPerKey(t.Context(), looks, protocol.BucketPending)
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d asks are left for a person", len(open))
		}
		return err
	})
}

func TestBenchRefusesWhatMeasuresNothing(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no round":         {"--rounds", "0"},
		"no callers":       {"--callers", "0"},
		"a rate below 0":   {"--rate", "-1"},
		"an input that is": {"--store", "x", "--input", "nothing"},
		"arguments":        {"fast"},
	} {
		env, out, errs := testEnv()
		if code := Main(env, append([]string{"bench"}, args...), Bench); code != ExitUsage || out.Len() > 0 {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}
