package project

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// tree writes files below a new folder, links followed, and returns it. A name
// that ends in a slash is a folder, a text that begins with "->" a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(text, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const origin = "[core]\n\tbare = false\n[remote \"upstream\"]\n\turl = https://github.com/other/shop\n" +
	"[remote \"origin\"]\n\turl = git@github.com:acme/shop.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"

func TestFind(t *testing.T) {
	t.Parallel()
	const shop = "github.com/acme/shop"
	for name, row := range map[string]struct {
		files          map[string]string
		dir            string
		id, root, text string // id and root below the tree; "" for none
	}{
		"a repository":                      {map[string]string{"r/.git/config": origin, "r/.assent/policy.jsonc": "{}"}, "r", shop, "r", "{}"},
		"from deep within it":               {map[string]string{"r/.git/config": origin, "r/.assent/policy.jsonc": "{}", "r/a/b/c/": ""}, "r/a/b/c", shop, "r", "{}"},
		"without a policy":                  {map[string]string{"r/.git/config": origin}, "r", shop, "r", ""},
		"without a remote, it is its root":  {map[string]string{"r/.git/config": "[core]\n"}, "r", "r", "r", ""},
		"without a configuration":           {map[string]string{"r/.git/HEAD": "x"}, "r", "r", "r", ""},
		"a policy without a repository":     {map[string]string{"r/.assent/policy.jsonc": "{}", "r/a/": ""}, "r/a", "r", "r", "{}"},
		"modules without a repository":      {map[string]string{"r/.assent/permissions/a.ts": "x", "r/a/": ""}, "r/a", "r", "r", ""},
		"neither":                           {map[string]string{"r/a/": ""}, "r/a", "", "", ""},
		"a policy further in does not hide": {map[string]string{"r/.git/config": origin, "r/.assent/policy.jsonc": "{}", "r/a/.assent/policy.jsonc": "[]"}, "r/a", shop, "r", "{}"},
		"a repository further in does":      {map[string]string{"r/.git/config": origin, "r/a/.git/HEAD": "x"}, "r/a", "r/a", "r/a", ""},
		"by a link to a folder in it":       {map[string]string{"r/.git/config": origin, "r/a/": "", "l": "->r/a"}, "l", shop, "r", ""},
		"a folder that is not there":        {map[string]string{"r/.git/config": origin}, "r/gone/too", shop, "r", ""},
		"a worktree":                        {map[string]string{"r/.git/config": origin, "r/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../r/.git/worktrees/w\n"}, "w", shop, "w", ""},
		"a submodule":                       {map[string]string{"r/.git/modules/s/config": origin, "r/s/.git": "gitdir: ../.git/modules/s\n"}, "r/s", shop, "r/s", ""},
		"a policy that is a link within":    {map[string]string{"r/.git/config": origin, "r/conf/p": "{}", "r/.assent/policy.jsonc": "->../conf/p"}, "r", shop, "r", "{}"},
		"an empty policy":                   {map[string]string{"r/.git/config": origin, "r/.assent/policy.jsonc": ""}, "r", shop, "r", "empty"},
		"a file where the folder would be":  {map[string]string{"r/.git/config": origin, "r/.assent": "x"}, "r", shop, "r", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := tree(t, row.files)
			want := Project{ID: row.id, HasPolicy: row.text != "", Policy: strings.TrimPrefix(row.text, "empty")}
			if row.root != "" {
				want.Root = filepath.Join(at, row.root)
			}
			if row.id == row.root && row.id != "" {
				want.ID = want.Root
			}
			got, err := Find(filepath.Join(at, row.dir))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v %v, want %+v", got, err, want)
			}
			digest := ""
			if want.HasPolicy {
				digest = protocol.ProjectDigest(want.Policy)
			}
			got.Modules = []protocol.ProjectModule{{Name: "a", Code: "x"}}
			with := protocol.ProjectDigest(policyOr(want.Policy, want.HasPolicy), got.Modules...)
			if f := got.Facts(); f.Digest != with {
				t.Errorf("with a module: %+v, want %s", f, with)
			}
			got.Modules = nil
			if f := got.Facts(); f.ID != want.ID || f.Root != want.Root || f.Digest != digest {
				t.Errorf("facts %+v", f)
			}
		})
	}
}

// TestAPolicyThatCannotBeUsedIsNeverIgnored: an agent could have made it so.
func TestAPolicyThatCannotBeUsedIsNeverIgnored(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links and pipes are made otherwise there")
	}
	outside := tree(t, map[string]string{"secret": `{"password":"hunter2"}`})
	for name, files := range map[string]map[string]string{
		"too large":                  {".assent/policy.jsonc": strings.Repeat(" ", protocol.MaxProjectPolicy+1)},
		"not UTF-8":                  {".assent/policy.jsonc": "{\xff}"},
		"a folder":                   {".assent/policy.jsonc/": ""},
		"a link out of the project":  {".assent/policy.jsonc": "->" + filepath.Join(outside, "secret")},
		"a folder that leads out":    {".assent": "->" + outside, "x/": ""},
		"a link to nothing":          {".assent/policy.jsonc": "->gone"},
		"a link to itself":           {".assent/policy.jsonc": "->policy.jsonc"},
		"a link out and in by names": {".assent/policy.jsonc": "->../../" + filepath.Base(outside) + "/secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files[".git/config"] = origin
			root := tree(t, files)
			if name == "a folder that leads out" {
				if err := os.WriteFile(filepath.Join(outside, "policy.jsonc"), []byte(`{}`), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Find(root)
			if !errors.Is(err, ErrPolicy) || !reflect.DeepEqual(got, Project{}) {
				t.Errorf("got %+v %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells what stands in it: %v", err)
			}
		})
	}
	t.Run("one that may not be read", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() == 0 {
			t.Skip("root reads everything")
		}
		root := tree(t, map[string]string{".git/config": origin, ".assent/policy.jsonc": "{}"})
		if err := os.Chmod(filepath.Join(root, PolicyFile), 0); err != nil {
			t.Fatal(err)
		}
		if got, err := Find(root); !errors.Is(err, ErrPolicy) {
			t.Errorf("got %+v %v", got, err)
		}
	})
}

func TestTheIDOfARemote(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"git@github.com:acme/shop.git":                     "github.com/acme/shop",
		"github.com:acme/shop":                             "github.com/acme/shop",
		"https://github.com/acme/shop.git":                 "github.com/acme/shop",
		"https://github.com/acme/shop/":                    "github.com/acme/shop",
		"https://dev:hunter2@GitHub.com/acme/shop.git":     "github.com/acme/shop",
		"ssh://git@github.com:2222/acme/shop.git":          "github.com/acme/shop",
		"git://gitlab.example/a/b/c.git":                   "gitlab.example/a/b/c",
		"https://github.com/acme/shop.git?token=hunter2#x": "github.com/acme/shop",
		"/srv/git/shop.git":                                "",
		"../shop.git":                                      "",
		"file:///srv/git/shop.git":                         "",
		"C:\\git\\shop":                                    "",
		"https://github.com/":                              "",
		"https://":                                         "",
		"":                                                 "",
		"https://github.com/acme/%00":                      "",
		"git@github.com:acme/a b":                          "",
		"git@github.com:" + strings.Repeat("x", 300):       "",
	} {
		if got := idOf(remote); got != want {
			t.Errorf("%q is %q, want %q", remote, got, want)
		}
	}
}

func TestTheOriginInAConfiguration(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		origin: "git@github.com:acme/shop.git",
		"[remote \"origin\"]\r\n\tURL=\"https://x/y\"\r\n": "https://x/y",
		"[remote \"origin\"]\n; url = a\n\turl = b\n":      "b",
		"[remote \"origin2\"]\n\turl = a\n":                "",
		"[core]\n\turl = a\n":                              "",
		"url = a\n":                                        "",
		"":                                                 "",
		"[remote \"origin\"]\n\tpushurl = a\n":             "",
	} {
		if got := originURL(config); got != want {
			t.Errorf("%q: %q, want %q", config, got, want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	for name, text := range map[string]string{".git/config": origin, ".assent/policy.jsonc": `{"permission":{}}`, "a/b/c/x": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if p, err := Find(filepath.Join(root, "a/b/c")); err != nil || !p.HasPolicy {
			b.Fatal(p, err)
		}
	}
}

// policyOr is the policy of a project that brings modules.
func policyOr(policy string, there bool) string {
	if there {
		return policy
	}
	return protocol.NoProjectPolicy
}
