package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

const tightening = `{"permission":{"bash":{"make *":"deny"}}}`

// put stores a text under a key, whatever it is.
func (d *logDesk) put(t *testing.T, key, text string) {
	t.Helper()
	store := d.layers(t)
	if _, err := store.Bucket().Put(context.Background(), key, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func (d *logDesk) layers(t *testing.T) *layers.Store {
	t.Helper()
	js, err := bus.JetStream(d.node.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := layers.Open(context.Background(), js)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestLayersArePushedAndRemoved(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	clean, tight, links := policyAt(t, cleanPolicy), policyAt(t, tightening), policyAt(t, `{"authorizerChain":["x"]}`)
	for _, r := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"push " + clean, ExitOK, "layer fleet is revision 1, sha256:", ""},
		{"push " + clean, ExitOK, "layer fleet is unchanged, still revision 1, sha256:", ""},
		{"push --json " + clean, ExitOK, `"unchanged":true`, ""},
		{"push --layer project/github.com/acme/shop " + tight, ExitOK, "layer project/github.com/acme/shop is revision 2, sha256:", ""},
		{"push --layer agent/reviewer --json " + tight, ExitOK, `"layer":"agent/reviewer","revision":3,"digest":"sha256:`, ""},
		{"push --layer agent/reviewer " + tight, ExitOK, "layer agent/reviewer is unchanged, still revision 3, sha256:", ""},
		{"push --layer project-agent/shop/reviewer " + tight, ExitOK, "is revision 4, sha256:", ""},
		{"push --layer agent/reviewer " + links, exitBadPolicy, "", "authorizerChain belongs to the fleet layer alone"},
		{"push --layer team/x " + tight, ExitUsage, "", "expected fleet, project/<id>"},
		{"push --layer agent/a/b " + tight, ExitUsage, "", "expected fleet, project/<id>"},
		{"push", ExitUsage, "", "takes FILE"},
		{"remove agent/reviewer", ExitOK, "layer agent/reviewer is removed; it was revision 3\n", ""},
		{"remove agent/reviewer", ExitFailure, "", "no such layer is stored: agent/reviewer"},
		{"remove project-agent/shop/reviewer --json", ExitOK, `"layer":"project-agent/shop/reviewer","revision":4,"digest":""`, ""},
		{"remove nonsense", ExitUsage, "", "expected fleet, project/<id>"},
		{"remove", ExitUsage, "", "takes LAYER"},
		{"show a b", ExitUsage, "", "takes at most LAYER"},
		{"show builtin --json", ExitOK, `"group":"assent-files"`, ""},
		{"show agent/reviewer", ExitFailure, "", "no such layer is stored"},
		{"show agent/reviewer --revision 3", ExitOK, tightening, ""},
		{"show fleet --revision 99", ExitFailure, "", "no such revision"},
		{"history agent/reviewer", ExitOK, "removed\nagent/reviewer", ""},
		{"history agent/reviewer", ExitOK, " replaced\n", ""},
		{"diff team/x", ExitUsage, "", "expected fleet, project/<id>"},
	} {
		code, out, errs := d.typed(t, Policy, append([]string{"policy"}, strings.Fields(r.args)...)...)
		if code != r.code || !strings.Contains(out, r.out) || !strings.Contains(errs, r.errs) || r.out == "" && out != "" || r.errs == "" && errs != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", r.args, code, out, errs)
		}
	}
}

func TestPolicyShowSaysWhatStandsAndWhatIsBroken(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	if _, out, _ := d.typed(t, Policy, "policy", "show"); !strings.HasPrefix(out, "no policy is stored: everything asks") {
		t.Errorf("nothing stored: %q", out)
	}
	d.put(t, "project.shop", tightening)
	d.put(t, "fleet", cleanPolicy)
	d.put(t, "agent.b", "{\xff\x1b[2J")
	d.put(t, "stray", `{}`)
	_, out, _ := d.typed(t, Policy, "policy", "show")
	lines := strings.Split(out, "\n")
	for i, want := range []string{"LAYER", "fleet", "project/shop", "agent/b"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %s", i, lines[i], want)
		}
	}
	for _, want := range []string{"broken: every allow is clamped to ask", "agent/b:1:2", `key "stray"`, "built-in rules: assent policy show builtin"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	_, out, _ = d.typed(t, Policy, "policy", "show", "--json")
	var rows []storedLayer
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 4 || rows[2].Error == "" || rows[2].Digest != "" || rows[0].Digest == "" {
		t.Errorf("%v: %s", err, out)
	}
	code, out, errs := d.typed(t, Policy, "policy", "show", "agent/b", "--json")
	if code != ExitOK || !strings.Contains(out, `[2J`) || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
}

func TestPolicyDiffComparesTheRightTexts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	for i, text := range []string{"{} // one\n", "{} // two\n", "{} // three\n"} {
		if code, _, errs := d.typed(t, Policy, "policy", "push", "--layer", "agent/a", policyAt(t, text)); code != ExitOK {
			t.Fatalf("push %d: %s", i, errs)
		}
	}
	file := policyAt(t, "{} // four\n")
	for _, r := range []struct{ args, minus, plus string }{
		{"agent/a", "two", "three"},
		{"agent/a --from 1", "one", "three"},
		{"agent/a --to 2", "one", "two"},
		{"agent/a --from 1 --to 2", "one", "two"},
		{"agent/a --to 1", "", "one"},
		{"agent/a --file " + file, "three", "four"},
		{"agent/a --from 2 --file " + file, "two", "four"},
		{"agent/a --from 3 --to 3", "", ""},
		{"fleet --file " + file, "", "four"},
	} {
		code, out, errs := d.typed(t, Policy, append([]string{"policy", "diff"}, strings.Fields(r.args)...)...)
		minus, plus := "", ""
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, "-{} // "); ok {
				minus = strings.TrimSpace(rest)
			}
			if rest, ok := strings.CutPrefix(line, "+{} // "); ok {
				plus = strings.TrimSpace(rest)
			}
		}
		if code != ExitOK || errs != "" || minus != r.minus || plus != r.plus {
			t.Errorf("%s: exit %d, %q to %q\n%s%s", r.args, code, minus, plus, out, errs)
		}
	}
	_, out, _ := d.typed(t, Policy, "policy", "diff", "agent/a", "--json")
	var got comparison
	if err := json.Unmarshal([]byte(out), &got); err != nil || !got.Changed || got.From != "agent/a revision 2" || got.To != "agent/a revision 3" || !strings.Contains(got.Diff, "+{} // three") {
		t.Errorf("%v: %s", err, out)
	}
	if code, _, errs := d.typed(t, Policy, "policy", "diff", "agent/a", "--from", "77"); code != ExitFailure || !strings.Contains(errs, "no such revision") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestAPolicyFileIsFollowedAsLongAsNobodyElseSpeaks: what a push stored is not
// undone by whoever saves the file next.
func TestAPolicyFileIsFollowedAsLongAsNobodyElseSpeaks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	ctx, store, path := context.Background(), d.layers(t), filepath.Join(t.TempDir(), "policy.jsonc")
	var said bytes.Buffer
	first := []byte("{} // first\n")
	f := &follower{path: path, log: slog.New(slog.NewTextHandler(&said, nil)), seen: first, put: first, remember: filePutIn(t.TempDir()).remember}
	if _, err := store.Put(ctx, policy.Fleet(), first, layers.Entry{}); err != nil {
		t.Fatal(err)
	}
	save := func(text string) func(*testing.T) {
		return func(t *testing.T) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	push := func(text string) func(*testing.T) {
		return func(t *testing.T) { d.put(t, "fleet", text) }
	}
	for _, step := range []struct {
		name   string
		do     func(*testing.T)
		stored string
		said   string
	}{
		{"a change is in force", save("{} // a\n"), "{} // a\n", "is in force"},
		{"no change, no word", func(*testing.T) {}, "{} // a\n", ""},
		{"one with errors is not", save("{"), "{} // a\n", "THE POLICY FILE HAS ERRORS"},
		{"and is said once", func(*testing.T) {}, "{} // a\n", ""},
		{"mended, it is in force", save("{} // b\n"), "{} // b\n", "is in force"},
		{"one that is gone is said", func(t *testing.T) { os.Remove(path) }, "{} // b\n", "cannot be read"},
		{"back, it is in force", save("{} // c\n"), "{} // c\n", "is in force"},
		{"a push stands", push("{} // pushed\n"), "{} // pushed\n", ""},
		{"against the next change of the file", save("{} // d\n"), "{} // pushed\n", "somebody else has stored another policy"},
		{"and the one after that", save("{} // e\n"), "{} // pushed\n", "somebody else has stored another policy"},
		{"until the file itself is pushed", push("{} // e\n"), "{} // e\n", ""},
		{"from then on it is followed again", save("{} // f\n"), "{} // f\n", "is in force"},
		{"or until the file says what was pushed", push("{} // pushed\n"), "{} // pushed\n", ""},
		{"which it does now", save("{} // pushed\n"), "{} // pushed\n", "is in force"},
		{"and so it is followed", save("{} // g\n"), "{} // g\n", "is in force"},
		{"a removal stands too", func(t *testing.T) {
			e, err := store.Get(ctx, policy.Fleet())
			if err == nil {
				err = store.Remove(ctx, e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "", ""},
		{"against a change", save("{} // h\n"), "", "somebody else has stored another policy"},
	} {
		said.Reset()
		step.do(t)
		f.look(ctx, store)
		e, err := store.Get(ctx, policy.Fleet())
		if err != nil && !errors.Is(err, layers.ErrNone) {
			t.Fatal(err)
		}
		if string(e.Text) != step.stored || !strings.Contains(said.String(), step.said) || step.said == "" && said.Len() > 0 {
			t.Errorf("%s: stored %q, want %q; said %q", step.name, e.Text, step.stored, said.String())
		}
	}
}

func TestDoctorLooksAtEveryLayer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stored      map[string]string
		state, text string
	}{
		"nothing":                 {nil, stateWarn, "no policy is stored: everything asks"},
		"all well":                {map[string]string{"fleet": cleanPolicy, "project.shop": tightening, "agent.a": `{}`}, stateOK, "layers fleet, project/shop, agent/a, terminal"},
		"no fleet layer":          {map[string]string{"agent.a": tightening}, stateWarn, "no fleet layer is stored: everything asks; there is agent/a"},
		"a broken fleet layer":    {map[string]string{"fleet": `{`}, stateFail, "the stored layer fleet is broken: fleet:1:"},
		"a broken project's":      {map[string]string{"fleet": cleanPolicy, "project.shop": `{"yoloMode":true}`}, stateFail, "the stored layer project/shop is broken"},
		"a key that is no layer":  {map[string]string{"fleet": cleanPolicy, "fleet2": `{}`}, stateFail, "the stored layer fleet2 is broken"},
		"yolo, with layers about": {map[string]string{"fleet": `{"yoloMode":true}`, "agent.a": `{}`}, stateWarn, "has yoloMode on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			for key, text := range row.stored {
				w.put(t, key, text)
			}
			_, found := w.examines(t)
			wantFinding(t, found, "policy", row.state, row.text)
		})
	}
}
