package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// keyHolder is somebody who holds the keys of a node.
type keyHolder struct {
	*person
	store string
}

func newKeyHolder(t *testing.T, store string) *keyHolder {
	p := &person{t: t, home: t.TempDir()}
	p.vars = map[string]string{"HOME": p.home, "ASSENT_STORE": store}
	return &keyHolder{p, store}
}

func (k *keyHolder) revokes(args ...string) (code int, stdout, stderr string) {
	return k.runs(append([]string{"creds", "revoke", "--role", "agent", "--name", "ci-42"}, args...), Creds)
}

func refused(t *testing.T, url string, creds []byte) error {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.Config{URL: url, CredsBytes: creds, Logger: quietLog()})
	if err == nil {
		nc.Close()
		return errors.New("the server still takes them")
	}
	if !errors.Is(err, bus.ErrRefused) {
		return err
	}
	return nil
}

// A server that runs elsewhere is not on the store: the keys are copied to the
// side, as one who keeps them off the servers does.
func TestRevokeSaysRevokedOnlyWhenTheServerWasTold(t *testing.T) {
	t.Parallel()
	served := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Store(served), nodetest.Quiet())
	kept := nodetest.Dir(t)
	copyKeys(t, served, kept)
	k := newKeyHolder(t, kept)
	a, err := node.OpenAuthority(kept, "")
	if err != nil {
		t.Fatal(err)
	}
	creds, err := a.Issue(protocol.RoleAgent, "ci-42", node.IssueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		args []string
		env  string
		want string
	}{
		{"nobody is named", nil, "", "--nats"},
		{"again nobody", nil, "", "no server was told"},
		{"a wrong address", []string{"--nats", "nats://127.0.0.1:1"}, "", "127.0.0.1:1"},
		{"a wrong address in the environment", nil, "nats://127.0.0.1:1", "127.0.0.1:1"},
	} {
		k.vars["ASSENT_NATS"] = row.env
		code, stdout, stderr := k.revokes(row.args...)
		if code != ExitFailure || stdout != "" || !strings.Contains(stderr, "recorded, but no server was told") || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: exit %d, %q, %q", row.name, code, stdout, stderr)
		}
		if err := refused(t, n.ClientURL(), creds); err == nil {
			t.Fatalf("%s: the server was told after all", row.name)
		}
	}
	k.vars["ASSENT_NATS"] = n.ClientURL()
	if code, stdout, stderr := k.revokes(); code != ExitOK || !strings.Contains(stdout, "revoked already") || !strings.Contains(stdout, "told "+n.ClientURL()) {
		t.Errorf("with the right address: exit %d, %q, %q", code, stdout, stderr)
	}
	if err := refused(t, n.ClientURL(), creds); err != nil {
		t.Error(err)
	}
}

func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(to, "auth"), os.DirFS(filepath.Join(from, "auth"))); err != nil {
		t.Fatal(err)
	}
	// CopyFS widens modes by the umask; keys must be private.
	err := filepath.WalkDir(filepath.Join(to, "auth"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRevokeTellsTheNodeOnTheStore(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
	creds := n.Creds(t, protocol.RoleAgent, "ci-42")
	k := newKeyHolder(t, store)
	if code, stdout, stderr := k.revokes(); code != ExitOK || !strings.Contains(stdout, "revoked agent ci-42") || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if err := refused(t, n.ClientURL(), creds); err != nil {
		t.Error(err)
	}
	if code, stdout, _ := k.revokes(); code != ExitOK || !strings.Contains(stdout, "revoked already") {
		t.Errorf("a second time: exit %d, %q", code, stdout)
	}
	if code, stdout, stderr := k.runs([]string{"creds", "revoke", "--role", "agent", "--name", "nobody"}, Creds); code != ExitFailure || stdout != "" || !strings.Contains(stderr, "agent nobody") {
		t.Errorf("what was never issued: exit %d, %q, %q", code, stdout, stderr)
	}
	// One server confirms and another does not: that is no success.
	code, stdout, stderr := k.revokes("--nats", "nats://127.0.0.1:1")
	if code != ExitFailure || stdout != "" || !strings.Contains(stderr, "not every server") || !strings.Contains(stderr, n.ClientURL()) {
		t.Errorf("one of two: exit %d, %q, %q", code, stdout, stderr)
	}
}

func TestCredsFindTheStoreThatInitMakes(t *testing.T) {
	t.Parallel()
	k := newKeyHolder(t, "")
	k.vars["XDG_DATA_HOME"] = k.at("data")
	if code, _, stderr := k.runs([]string{"creds", "list"}, Creds); code != ExitFailure || !strings.Contains(stderr, "assent creds init") || !strings.Contains(stderr, k.at("data/assent/main")) {
		t.Errorf("before anything: exit %d, %q", code, stderr)
	}
	if code, _, stderr := k.runs([]string{"creds", "init"}, Creds); code != ExitOK {
		t.Fatal(stderr)
	}
	if code, stdout, stderr := k.runs([]string{"creds", "list"}, Creds); code != ExitOK || !strings.HasPrefix(stdout, "ROLE") {
		t.Errorf("after it: exit %d, %q, %q", code, stdout, stderr)
	}
}

func TestIssueSaysTheWayOut(t *testing.T) {
	t.Parallel()
	k := newKeyHolder(t, nodetest.Dir(t))
	if code, _, stderr := k.runs([]string{"creds", "init"}, Creds); code != ExitOK {
		t.Fatal(stderr)
	}
	issue := func(args ...string) (int, string, string) {
		return k.runs(append([]string{"creds", "issue", "--role", "agent", "--name", "ci-42", "--out", filepath.Join(k.home, protocol.NewAskID())}, args...), Creds)
	}
	if code, _, stderr := issue("--expires", "24h"); code != ExitOK {
		t.Fatal(stderr)
	}
	code, _, stderr := issue()
	if code != ExitFailure || !strings.Contains(stderr, "--again") || !strings.Contains(stderr, "assent creds revoke --role agent --name ci-42") {
		t.Errorf("a name twice: exit %d, %q", code, stderr)
	}
	if code, _, stderr = issue("--again"); code != ExitOK {
		t.Errorf("with --again: exit %d, %q", code, stderr)
	}
	for _, text := range []string{"1d", "-1h", "soon"} {
		if code, _, stderr = issue("--again", "--expires", text); code != ExitUsage || !strings.Contains(stderr, "--expires") {
			t.Errorf("--expires %s: exit %d, %q", text, code, stderr)
		}
	}
	if _, _, stderr = issue("--expires", "1d"); !strings.Contains(stderr, "24h") {
		t.Errorf("a day: %q", stderr)
	}
}

func TestSpanReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	var d time.Duration
	v := (*spanValue)(&d)
	if err := v.Set("1h30m"); err != nil || d != 90*time.Minute || v.String() != "1h30m0s" {
		t.Errorf("%v, %s, %s", err, d, v)
	}
}
