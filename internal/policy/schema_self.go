package policy

import "github.com/invopop/jsonschema"

type schemaSelf struct {
	Lift  []schemaSelfGroup `json:"lift,omitempty" jsonschema:"uniqueItems=true" jsonschema_description:"Groups of built-in rules that do not hold here."`
	Paths []schemaPattern   `json:"paths,omitempty" jsonschema:"uniqueItems=true" jsonschema_description:"More files and folders that are Assent's own, as a store that lies elsewhere. Absolute, or from ~/; without wildcards."`
}

type schemaSelfGroup string

// JSONSchema describes the name of a group of built-in rules.
func (schemaSelfGroup) JSONSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, name := range SelfGroups() {
		s.Enum = append(s.Enum, name)
	}
	return s
}
