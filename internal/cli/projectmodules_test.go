package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

const goodModule = `export default (api) => api.onToolUse({ name: "x", description: "d", handler: () => undefined });`

// TestModulesThatAProjectBrings: what bundles goes along as code, what does not as
// the reason why, and nothing outside of the project is read.
func TestModulesThatAProjectBrings(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, row := range map[string]struct {
		files map[string]string // below the project; "->" begins a link
		want  string            // names with "=code", or "~" and what their error holds
	}{
		"none":                       {nil, ""},
		"an empty folder":            {map[string]string{"permissions/README.md": "x"}, ""},
		"two":                        {map[string]string{"permissions/b.ts": goodModule, "permissions/a.js": goodModule}, "a=code|b=code"},
		"one with a mistake":         {map[string]string{"permissions/a.ts": "export default (", "permissions/b.ts": goodModule}, "b=code|a~a.ts:1"},
		"a folder that leads out":    {map[string]string{"permissions": "->../../outside"}, "permissions~leads out"},
		"a folder that leads within": {map[string]string{"real/a.ts": goodModule, "permissions": "->real"}, "a=code"},
		"a link to nowhere":          {map[string]string{"permissions": "->gone"}, "permissions~leads nowhere"},
		"a file that leads out":      {map[string]string{"permissions/a.ts": "->../../../outside/secret.ts"}, "a~"},
		"a file for a folder":        {map[string]string{"permissions": "x"}, "permissions~"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(base, "repo")
			writeTree(t, base, map[string]string{"outside/secret.ts": "export default (" + secret, "repo/.git/HEAD": "x"})
			for file, text := range row.files {
				writeTree(t, root, map[string]string{".assent/" + file: text})
			}
			p, err := project.Find(root)
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			bringModules(&p, &said)
			var have []string
			for _, m := range p.Modules {
				if m.Code != "" {
					have = append(have, m.Name+"=code")
					continue
				}
				have = append(have, m.Name+"~"+m.Error)
				if !strings.Contains(said.String(), m.Error) {
					t.Errorf("%s is not told: %q", m.Name, said.String())
				}
			}
			var want []string
			if row.want != "" {
				want = strings.Split(row.want, "|")
			}
			if len(have) != len(want) {
				t.Fatalf("%q, want %q", have, want)
			}
			for i := range want {
				if !strings.HasPrefix(have[i], want[i]) && !holds(have[i], want[i]) {
					t.Errorf("%q, want %q", have, want)
				}
			}
			if strings.Contains(said.String()+strings.Join(have, ""), secret) {
				t.Errorf("what stands outside is told: %s", said.String())
			}
			up := uploadFor(p)
			if _, err := protocol.Write(up); len(p.Modules) > 0 && err != nil {
				t.Errorf("no upload: %v", err)
			}
		})
	}
}

// holds says whether "name~error" holds the text of "name~text".
func holds(have, want string) bool {
	name, text, _ := strings.Cut(want, "~")
	n, e, _ := strings.Cut(have, "~")
	return n == name && strings.Contains(e, text)
}

func uploadFor(p project.Project) protocol.ProjectUpload {
	policy, modules, _ := p.Own()
	return protocol.ProjectUpload{Project: p.ID, Digest: p.Facts().Digest, Policy: policy, Modules: modules}
}

func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(text, "->")
		var err error
		if link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnUploadHoldsWhatFits: however many modules there are and however large,
// the upload is one that a gate takes, and what was left out is told.
func TestAnUploadHoldsWhatFits(t *testing.T) {
	t.Parallel()
	many := func(n, size int, text string) (out []module.Source) {
		for i := range n {
			out = append(out, module.Source{Name: fmt.Sprintf("m%02d", i), Code: strings.Repeat(text, size)})
		}
		return out
	}
	problem := []module.Problem{{Module: "my \x1b check", Message: strings.Repeat("long ", 2000)}, {}}
	full := strings.Repeat("\"", protocol.MaxProjectPolicy)
	for name, row := range map[string]struct {
		policy       string
		sources      []module.Source
		problems     []module.Problem
		code, errors int
	}{
		"nothing":                         {"{}", nil, nil, 0, 0},
		"as many as may be":               {"{}", many(16, 1, "x"), nil, 16, 0},
		"one too many":                    {"{}", many(17, 1, "x"), nil, 15, 1},
		"many too many":                   {"{}", many(200, 1, "x"), problem, 15, 1},
		"with two that failed":            {"{}", many(14, 1, "x"), problem, 14, 2},
		"with one failed beyond":          {"{}", many(15, 1, "x"), problem, 15, 1},
		"as much as may be":               {"{}", many(2, protocol.MaxProjectCode/2, "x"), nil, 2, 0},
		"one byte too much":               {"{}", many(2, protocol.MaxProjectCode/2+1, "x"), nil, 1, 1},
		"much that is escaped":            {full, many(4, protocol.MaxProjectCode/4, "\x01"), problem, 1, 5},
		"quotes under a policy of quotes": {full, many(1, protocol.MaxProjectCode, "\""), nil, 0, 1},
		"a module that is no text":        {"{}", []module.Source{{Name: "a", Code: "\xff"}, {Name: "b", Code: "x"}}, nil, 1, 1},
	} {
		modules := whatFits(row.policy, row.sources, row.problems)
		code, errors := 0, 0
		for _, m := range modules {
			if m.Code != "" {
				code++
			} else {
				errors++
			}
		}
		if code != row.code || errors != row.errors {
			t.Errorf("%s: %d with code and %d with errors, want %d and %d", name, code, errors, row.code, row.errors)
		}
		up := protocol.ProjectUpload{Project: "p", Policy: row.policy, Modules: modules, Digest: protocol.ProjectDigest(row.policy, modules...)}
		if _, err := protocol.Write(up); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
