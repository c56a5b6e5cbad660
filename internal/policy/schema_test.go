package policy

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

var update = flag.Bool("update", false, "write golden files")

const schemaFile = "../../docs/policy.schema.json"

func TestSchemaIsCurrent(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(schemaFile), got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.FromSlash(schemaFile))
	if err != nil || string(got) != string(want) {
		t.Errorf("docs/policy.schema.json is not what the types say (%v); run: go test ./internal/policy -run Schema -update", err)
	}
}

// refusedByBoth are documents whose fault a schema can see too.
var refusedByBoth = map[string]string{
	"an unknown key":               `{"permision":{}}`,
	"a key of later versions":      `{"permissionModules":[]}`,
	"an unknown action":            `{"permission":{"bash":"alow"}}`,
	"an action that is no text":    `{"permission":{"bash":true}}`,
	"null":                         `{"permission":{"bash":null}}`,
	"a rule under the star":        `{"permission":{"*":{"action":"deny","reason":"x"}}}`,
	"a rule where patterns stand":  `{"permission":{"bash":{"action":"deny","reason":"x"}}}`,
	"a rule without an action":     `{"permission":{"bash":{"x":{"reason":"y"}}}}`,
	"an unknown key in a rule":     `{"permission":{"bash":{"x":{"action":"deny","raeson":"y"}}}}`,
	"humanOnly that is no truth":   `{"permission":{"bash":{"x":{"action":"ask","humanOnly":"y"}}}}`,
	"an empty surface":             `{"permission":{"":"deny"}}`,
	"permission that is a list":    `{"permission":[]}`,
	"a bad duration":               `{"linkTimeout":"8"}`,
	"a negative duration":          `{"linkTimeout":"-8s"}`,
	"a duration that is a number":  `{"linkTimeout":8}`,
	"an unknown terminal":          `{"terminal":{"kind":"hooman"}}`,
	"an unknown key of terminal":   `{"terminal":{"wait":"8h"}}`,
	"a link twice":                 `{"authorizerChain":["a","a"]}`,
	"a link that is no token":      `{"authorizerChain":["a.b"]}`,
	"a chain that is a text":       `{"authorizerChain":"a"}`,
	"half a rate":                  `{"limits":{"asksPerSecond":0.5}}`,
	"no pending asks":              `{"limits":{"pending":0}}`,
	"modules that fail open":       `{"modules":{"onFailure":"allow"}}`,
	"a slip in modules":            `{"modules":{"onfailure":"deny"}}`,
	"modules by halves":            `{"modules":{"strict":"yes"}}`,
	"yolo as a text":               `{"yoloMode":"yes"}`,
	"an empty secret":              `{"secretPaths":[""]}`,
	"an unknown key of delegation": `{"modelDelegation":{"allowed":["bash"]}}`,
	"a schema that is no text":     `{"$schema":1}`,
	"an unknown built-in group":    `{"selfProtection":{"lift":["claude"]}}`,
	"protection switched off":      `{"selfProtection":false}`,
	"a duration in days":           `{"linkTimeout":"1d"}`,
	"a document that is a list":    `[]`,
}

func TestSchemaAndReaderAgree(t *testing.T) {
	t.Parallel()
	b, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(text string) bool {
		plain, err := hujson.Standardize([]byte(text))
		if err != nil {
			return false
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
		return err == nil && schema.Validate(v) == nil
	}
	for name, text := range accepted {
		if !fits(text) {
			t.Errorf("%s: the schema refuses what the reader accepts", name)
		}
	}
	for name, text := range refusedByBoth {
		if _, err := Compile("fleet", []byte(text)); err == nil {
			t.Errorf("%s: the reader accepts it", name)
		}
		if fits(text) {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
}
