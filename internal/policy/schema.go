package policy

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"

	"github.com/assent-dev/assent/pkg/protocol"
)

// schemaID is where the schema of a policy is published.
const schemaID = "https://assent.dev/schema/policy.json"

// The schema's types mirror the document; a test holds schema and reader to
// the same examples. Key order, which a schema cannot speak of, is the reader's
// alone.
type schemaDocument struct {
	Schema          string            `json:"$schema,omitempty" jsonschema_description:"Where editors find this schema. It rules nothing."`
	Permission      schemaPermission  `json:"permission,omitempty" jsonschema_description:"Rules by surface. Inside a surface the last rule that matches wins, so order matters."`
	AuthorizerChain []schemaToken     `json:"authorizerChain,omitempty" jsonschema:"uniqueItems=true" jsonschema_description:"Links that judge what the rules leave open, in the order in which they are asked."`
	LinkTimeout     schemaDuration    `json:"linkTimeout,omitempty" jsonschema_description:"How long the gate waits for one link: more than 0, at most 110s. Default 8s."`
	ModelDelegation *schemaDelegation `json:"modelDelegation,omitempty" jsonschema_description:"Where a link may allow. Without it no link may."`
	Terminal        *schemaTerminal   `json:"terminal,omitempty" jsonschema_description:"Where an ask ends that no link decided."`
	YoloMode        bool              `json:"yoloMode,omitempty" jsonschema_description:"Allow what rules ask. Denies, floors and humanOnly stay."`
	SecretPaths     []schemaPattern   `json:"secretPaths,omitempty" jsonschema:"uniqueItems=true" jsonschema_description:"More patterns of paths that no link may allow to be touched."`
	Limits          *schemaLimits     `json:"limits,omitempty" jsonschema_description:"Bounds of one agent."`
	DebugLog        bool              `json:"debugLog,omitempty" jsonschema_description:"Keep the debug records of links."`

	PathArguments    map[string]schemaPathArguments `json:"pathArguments,omitempty" jsonschema_description:"For tools that nothing is known of: which of their arguments hold paths. Fleet layer only."`
	ShellTools       map[string]schemaShellTool     `json:"shellTools,omitempty" jsonschema_description:"Tools that run commands, ruled on as bash: which argument holds the command. Fleet layer only."`
	TrustedReadPaths []schemaPattern                `json:"trustedReadPaths,omitempty" jsonschema:"uniqueItems=true" jsonschema_description:"What may be read outside of the project whatever external_directory says; path rules still hold. A path without a wildcard stands for all that is in it. Fleet layer only."`

	TrustedProjects   []schemaTrusted            `json:"trustedProjects,omitempty" jsonschema_description:"Projects whose layers may loosen, and for which agents. Fleet layer only."`
	TrustedAgentNames map[string][]schemaPattern `json:"trustedAgentNames,omitempty" jsonschema_description:"For each name of an agent layer that may loosen, the agents that may wear it, as patterns of credential names. Fleet layer only."`

	Modules *schemaModules `json:"modules,omitempty" jsonschema_description:"What becomes of calls while permission modules cannot say anything of them. Fleet layer only."`

	SelfProtection *schemaSelf `json:"selfProtection,omitempty" jsonschema_description:"What of the built-in rules that keep Assent and the agents' hooks out of reach of agents holds here. Fleet layer only."`
}

type schemaTrusted struct {
	ID     string          `json:"id" jsonschema:"minLength=1"`
	Root   string          `json:"root" jsonschema:"minLength=1" jsonschema_description:"The absolute path in which the project lies."`
	Agents []schemaPattern `json:"agents" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Patterns of credential names."`
}

type schemaPathArguments struct{}

// JSONSchema describes what stands behind a tool in pathArguments.
func (schemaPathArguments) JSONSchema() *jsonschema.Schema {
	one := uint64(1)
	name := &jsonschema.Schema{Type: "string", MinLength: &one}
	directed := jsonschema.NewProperties()
	directed.Set("argument", name)
	directed.Set("direction", &jsonschema.Schema{Type: "string", Enum: []any{"read", "write", "both"}})
	argument := &jsonschema.Schema{OneOf: []*jsonschema.Schema{name, {
		Type: "object", Properties: directed, Required: []string{"argument"}, AdditionalProperties: jsonschema.FalseSchema,
	}}}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{argument, {Type: "array", Items: argument}}}
}

type schemaShellTool struct {
	Command  string `json:"command,omitempty" jsonschema:"minLength=1" jsonschema_description:"The argument that holds the command."`
	Workdir  string `json:"workdir,omitempty" jsonschema:"minLength=1" jsonschema_description:"The argument that holds the directory in which it runs."`
	Command2 string `json:"commandArgument,omitempty" jsonschema:"minLength=1" jsonschema_description:"The same as command."`
	Workdir2 string `json:"workdirArgument,omitempty" jsonschema:"minLength=1" jsonschema_description:"The same as workdir."`
}

type schemaDelegation struct {
	AllowedSurfaces  []schemaPattern `json:"allowedSurfaces,omitempty" jsonschema:"uniqueItems=true"`
	ExcludedSurfaces []schemaPattern `json:"excludedSurfaces,omitempty" jsonschema:"uniqueItems=true"`
}

type schemaTerminal struct {
	Kind    string         `json:"kind,omitempty" jsonschema:"enum=auto,enum=human,enum=parent,enum=deny,default=auto"`
	MaxWait schemaDuration `json:"maxWait,omitempty" jsonschema_description:"How long a person has: more than 0, at most 720h. Default 8h."`
}

type schemaLimits struct {
	AsksPerSecond int `json:"asksPerSecond,omitempty" jsonschema:"minimum=1,maximum=100000,default=50"`
	Pending       int `json:"pending,omitempty" jsonschema:"minimum=1,maximum=100000,default=32"`
}

type schemaModules struct {
	OnFailure string         `json:"onFailure,omitempty" jsonschema:"enum=ask,enum=deny,default=ask" jsonschema_description:"What becomes of a call of which a check could say nothing: it threw, or ran out of time."`
	CallTime  schemaDuration `json:"callTime,omitempty" jsonschema_description:"How much of a processor's time a check may take for one call: more than 0, at most 1s. Default 10ms."`
	Strict    bool           `json:"strict,omitempty" jsonschema_description:"While a module does not load, nothing is allowed."`
}

type (
	schemaToken      string
	schemaPattern    string
	schemaDuration   string
	schemaPermission struct{}
)

// JSONSchema describes a name that may stand in a subject.
func (schemaToken) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: fmt.Sprintf("^[A-Za-z0-9_-]{1,%d}$", protocol.MaxToken)}
}

// JSONSchema describes a pattern.
func (schemaPattern) JSONSchema() *jsonschema.Schema {
	one, most := uint64(1), uint64(MaxPattern)
	return &jsonschema.Schema{Type: "string", MinLength: &one, MaxLength: &most}
}

// JSONSchema describes a Go duration.
func (schemaDuration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`,
		Examples: []any{"8s", "2h30m"}}
}

// JSONSchema describes the map from surface to rules.
func (schemaPermission) JSONSchema() *jsonschema.Schema {
	action := &jsonschema.Schema{Type: "string", Enum: []any{"allow", "ask", "deny"}}
	object := jsonschema.NewProperties()
	object.Set("action", action)
	object.Set("reason", &jsonschema.Schema{Type: "string", Description: "Told to the agent."})
	object.Set("guidance", &jsonschema.Schema{Type: "string", Description: "Told to the approver."})
	object.Set("flagsAnyOrder", &jsonschema.Schema{Type: "boolean", Description: "The pattern's flags count anywhere among the command's words; for rules that deny or ask."})
	object.Set("humanOnly", &jsonschema.Schema{Type: "boolean", Description: "Only a person may allow this; for rules that ask."})
	rule := &jsonschema.Schema{OneOf: []*jsonschema.Schema{action, {
		Type: "object", Properties: object, Required: []string{"action"}, AdditionalProperties: jsonschema.FalseSchema,
	}}}
	one, most := uint64(1), uint64(MaxPattern)
	return &jsonschema.Schema{
		Type:          "object",
		PropertyNames: &jsonschema.Schema{MinLength: &one, MaxLength: &most},
		AdditionalProperties: &jsonschema.Schema{OneOf: []*jsonschema.Schema{action, {
			Type: "object", AdditionalProperties: rule,
		}}},
	}
}

// Schema returns the JSON Schema of a policy document, indented.
func Schema() ([]byte, error) {
	r := jsonschema.Reflector{DoNotReference: true, ExpandedStruct: true, Anonymous: true}
	s := r.Reflect(&schemaDocument{})
	s.ID, s.Title = schemaID, "Assent policy"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("policy: write the schema: %w", err)
	}
	return append(b, '\n'), nil
}
