//go:build unix

package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

func saved(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "assent", FileName)
	d := Default{NATS: "nats://127.0.0.1:4222", Node: "main", Store: "/s", Creds: map[protocol.Role]string{protocol.RoleAgent: "/s/agent.creds"}}
	if err := d.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASavedDefaultIsFound(t *testing.T) {
	path := saved(t)
	d, err := Load(path)
	if err != nil || d.Node != "main" || d.Creds[protocol.RoleAgent] != "/s/agent.creds" {
		t.Fatalf("got %+v, %v", d, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", info.Mode(), err)
	}
	d.Node = "other"
	if err := d.Save(path); err != nil {
		t.Fatal(err)
	}
	if d, err = Load(path); err != nil || d.Node != "other" {
		t.Errorf("the newer default is not found: %+v, %v", d, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".local-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("saving leaves %v behind", left)
	}
}

func TestADefaultThatMayLeadToAFalseGateIsRefused(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(t *testing.T, path string)
		want error
		text string
	}{
		{"none is there", func(t *testing.T, p string) { must(t, os.Remove(p)) }, ErrNone, "assent up"},
		{"others may read it", func(t *testing.T, p string) { must(t, os.Chmod(p, 0o644)) }, ErrUntrusted, "chmod 600"},
		{"others may write it", func(t *testing.T, p string) { must(t, os.Chmod(p, 0o602)) }, ErrUntrusted, "chmod 600"},
		{"others may put another in its place", func(t *testing.T, p string) { must(t, os.Chmod(filepath.Dir(p), 0o777)) }, ErrUntrusted, "chmod go-w"},
		{"it is a link", func(t *testing.T, p string) {
			must(t, os.Rename(p, p+".real"))
			must(t, os.Symlink(p+".real", p))
		}, nil, "reading local default"},
		{"it is a folder", func(t *testing.T, p string) { must(t, os.Remove(p)); must(t, os.Mkdir(p, 0o700)) }, ErrUntrusted, "no regular file"},
		{"it is no JSON", func(t *testing.T, p string) { must(t, os.WriteFile(p, []byte("nats:"), 0o600)) }, nil, "reading local default"},
		{"it names no server", func(t *testing.T, p string) { must(t, os.WriteFile(p, []byte(`{"node":"main"}`), 0o600)) }, nil, "assent up"},
		{"its node is no token", func(t *testing.T, p string) { must(t, os.WriteFile(p, []byte(`{"nats":"n","node":"a.b"}`), 0o600)) }, nil, "assent up"},
		{"it says one thing twice", func(t *testing.T, p string) {
			must(t, os.WriteFile(p, []byte(`{"nats":"good","node":"main","nats":"evil"}`), 0o600))
		}, nil, "stands twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := saved(t)
			row.do(t, path)
			_, err := Load(path)
			if err == nil || row.want != nil && !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
				t.Errorf("got %v, want %v with %q", err, row.want, row.text)
			}
		})
	}
}

func TestTheHooksPathDoesNotFollowTheEnvironment(t *testing.T) {
	before, err := TrustedPath()
	if err != nil {
		t.Skipf("this user has no home folder: %v", err)
	}
	t.Setenv("HOME", "/evil")
	t.Setenv("XDG_CONFIG_HOME", "/evil")
	t.Setenv("USER", "evil")
	after, err := TrustedPath()
	if runtime.GOOS == "linux" && (err != nil || after != before) {
		t.Errorf("the environment moved the hook from %s to %s (%v)", before, after, err)
	}
}

func TestAPersonsPathFollowsTheEnvironment(t *testing.T) {
	for _, row := range []struct {
		name, home, xdg, want string
	}{
		{"the home folder", "/home/dev", "", "/home/dev/.config/assent/local.json"},
		{"the configuration folder", "/home/dev", "/cfg", "/cfg/assent/local.json"},
		{"a relative configuration folder is none", "/home/dev", "cfg", "/home/dev/.config/assent/local.json"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Path(func(name string) string { return map[string]string{"HOME": row.home, "XDG_CONFIG_HOME": row.xdg}[name] })
			if err != nil || got != row.want {
				t.Errorf("got %s, %v, want %s", got, err, row.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
