package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/policy"
)

// fitting says whether a text with comments fits a schema, as an editor would.
func fitting(t *testing.T, id string, schema func() ([]byte, error)) func(text string) bool {
	t.Helper()
	b, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) bool {
		plain, err := hujson.Standardize([]byte(text))
		if err != nil {
			return false
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
		return err == nil && compiled.Validate(v) == nil
	}
}

// shown are the documents that people copy from: the examples, and those on the
// pages.
func shown(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, glob := range []string{"../../examples/*.jsonc", "../../docs/*.md", "../../README.md"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, ".jsonc") {
				out[filepath.Base(file)] = string(text)
				continue
			}
			for i, part := range strings.Split(string(text), docFence+"jsonc\n")[1:] {
				block, _, _ := strings.Cut(part, "\n"+docFence)
				out[filepath.Base(file)+" block "+string(rune('a'+i))] = block
			}
		}
	}
	return out
}

// keysOf are the keys of policies and of files of cases, each with a slip of the
// pen in it.
var keysOf = []string{"permission", "authorizerChain", "modelDelegation", "terminal", "yoloMode", "secretPaths", "limits", "pathArguments",
	"shellTools", "trustedReadPaths", "trustedProjects", "trustedAgentNames", "selfProtection", "action", "policy", "cases", "description", "want"}

// TestWhatIsShownFitsTheSchema: every example and every policy and file of cases
// on the pages does, and with a slip of the pen in any key it does not.
func TestWhatIsShownFitsTheSchema(t *testing.T) {
	t.Parallel()
	asPolicy, asCases := fitting(t, "https://assent.dev/schema/policy.json", policy.Schema), fitting(t, caseSchemaID, caseSchema)
	policies, cases, slips := 0, 0, 0
	for name, text := range shown(t) {
		fits := asPolicy
		switch {
		case strings.Contains(text, `"cases"`):
			fits = asCases
			cases++
		case strings.Contains(text, `"permission"`):
			policies++
		default:
			continue // a judges' file, or a part of one
		}
		if !fits(text) {
			t.Errorf("%s does not fit the schema:\n%s", name, text)
		}
		plain, err := hujson.Standardize([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text = string(plain) // without the words of comments
		for _, key := range keysOf {
			slip := strings.Replace(text, `"`+key+`":`, `"`+key[:1]+"x"+key[1:]+`":`, 1)
			if slip == text {
				continue
			}
			slips++
			if fits(slip) {
				t.Errorf("%s: the schema does not see a slip of the pen in %q", name, key)
			}
		}
	}
	if policies < 12 || cases < 2 || slips < 30 {
		t.Errorf("%d policies, %d files of cases, %d slips: that shows little", policies, cases, slips)
	}
}
