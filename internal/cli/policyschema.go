package cli

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/policy"
)

// caseSchemaID is where the schema of a case file is published.
const caseSchemaID = "https://assent.dev/schema/policytest.json"

func policySchema(env *Env) *cobra.Command {
	var cases bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a policy, or of a file of cases",
		Long: `Prints the JSON Schema of a policy, or with --cases of a file for policy test. With it editors
complete keys and mark what a gate would refuse: save it, and name that file as "$schema" in
the policy. What a schema cannot see, as a misspelt surface, policy check finds.`,
		Example: "  assent policy schema > policy.schema.json\n  assent policy schema --cases > policytest.schema.json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			schema := policy.Schema
			if cases {
				schema = caseSchema
			}
			b, err := schema()
			if err != nil {
				return err
			}
			if _, err := env.Stdout.Write(b); err != nil {
				return fmt.Errorf("printing the schema: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&cases, "cases", false, "print the schema of files for policy test")
	return cmd
}

// caseSchema is the JSON Schema of a file of cases, indented.
func caseSchema() ([]byte, error) {
	r := jsonschema.Reflector{DoNotReference: true, ExpandedStruct: true, Anonymous: true}
	s := r.Reflect(&caseFile{})
	s.ID, s.Title = caseSchemaID, "Assent policy cases"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return append(b, '\n'), nil
}

// JSONSchema describes a call: a shell command, or an object.
func (caseCall) JSONSchema() *jsonschema.Schema {
	text := func(about string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: about} }
	one := uint64(1)
	props := jsonschema.NewProperties()
	object := func(required []string, keys ...string) *jsonschema.Schema {
		p := jsonschema.NewProperties()
		for _, k := range keys {
			p.Set(k, text(""))
		}
		return &jsonschema.Schema{Type: "object", Properties: p, Required: required, AdditionalProperties: jsonschema.FalseSchema}
	}
	list := func(items *jsonschema.Schema, about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: items, Description: about}
	}
	tool := text("Name of the tool, as an agent gives it.")
	tool.MinLength = &one
	props.Set("tool", tool)
	props.Set("input", &jsonschema.Schema{Type: "object", Description: "The tool's input."})
	props.Set("cwd", text("Absolute path in which the call runs."))
	props.Set("home", text("Absolute path of the home of the agent's user."))
	props.Set("platform", &jsonschema.Schema{Type: "string", Enum: []any{"linux", "darwin", "windows"}})
	props.Set("agent_name", text("Name that the agent wears; chooses the layers of agents."))
	grant := object([]string{"surface", "patterns"}, "surface")
	grant.Properties.Set("patterns", list(text(""), ""))
	props.Set("grants", list(grant, "Remembered approvals."))
	props.Set("paths", list(object([]string{"raw", "resolved"}, "raw", "resolved"), "Where symbolic links lead, as an adapter would find."))
	props.Set("mcp_servers", list(text(""), "The MCP servers that the agent has."))
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Description: "A shell command.", MinLength: &one},
		{Type: "object", Properties: props, Required: []string{"tool"}, AdditionalProperties: jsonschema.FalseSchema},
	}}
}
