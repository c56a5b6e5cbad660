package judge

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/invopop/jsonschema"
	validate "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

var update = flag.Bool("update", false, "write the golden files")

const schemaFile = "../../docs/judges.schema.json"

// TestSchemaFile keeps docs/judges.schema.json what the types say.
func TestSchemaFile(t *testing.T) {
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true}
	want, err := json.MarshalIndent(r.Reflect(File{}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the types say; run go test ./services/judge -update", schemaFile)
	}
}

func compiledSchema(t testing.TB) *validate.Schema {
	t.Helper()
	s, err := validate.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schemaTakes says whether the schema takes a JSONC document.
func schemaTakes(t testing.TB, s *validate.Schema, doc []byte) bool {
	t.Helper()
	std, err := hujson.Standardize(bytes.Clone(doc))
	if err != nil {
		return false
	}
	v, err := validate.UnmarshalJSON(bytes.NewReader(std))
	return err == nil && s.Validate(v) == nil
}

func TestExampleIsTaken(t *testing.T) {
	const example = "../../examples/judges.jsonc"
	f, err := ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if names := f.Names(); len(names) != 1 || names[0] != "model-judge" {
		t.Errorf("links %v", names)
	}
	doc, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if !schemaTakes(t, compiledSchema(t), doc) {
		t.Error("the schema refuses the example")
	}
}
