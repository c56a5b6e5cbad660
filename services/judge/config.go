package judge

import (
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/services/judge/brief"
	"github.com/assent-dev/assent/services/judge/shellcommand"
	"github.com/assent-dev/assent/services/judge/typopath"
)

// Defaults and bounds of a link's settings.
const (
	DefaultTimeoutMS = 5000
	DefaultKeyEnv    = "ANTHROPIC_API_KEY"
	// DefaultOpenAIKeyEnv is DefaultKeyEnv for the provider openai.
	DefaultOpenAIKeyEnv = "OPENAI_API_KEY"

	ProviderAnthropic  = "anthropic"
	ProviderOpenAI     = "openai"
	ProviderCompatible = "openai-compatible"

	maxTimeoutMS    = 600_000
	maxConcurrency  = 1024
	maxModel        = 128
	maxInstructions = 64 << 10
	maxRounds       = 16
	leastBytes      = 256
	mostBytes       = 64 << 10
)

// File is the judges' file: the operator's, joined to the policy by the names
// of its links alone.
type File struct {
	// Schema names the JSON Schema of this file, for editors.
	Schema string `json:"$schema,omitempty"`
	// Links are the links to serve, by the name that a policy's authorizerChain uses.
	Links map[string]LinkConfig `json:"links"`
}

// LinkConfig is what the file says of one link.
type LinkConfig struct {
	Kind         string   `json:"kind" jsonschema:"enum=typopath,enum=shellcommand" jsonschema_description:"What the link judges. typopath: mistyped paths outside the project; it denies or defers and never allows. shellcommand: shell commands that the rules cannot read whole; it takes them apart and asks the rules about each piece, and may allow as far as the policy's modelDelegation reaches."`
	Provider     string   `json:"provider" jsonschema:"enum=anthropic,enum=openai,enum=openai-compatible" jsonschema_description:"Who serves the model: anthropic (Messages), openai (Responses), or openai-compatible (Chat Completions at baseURL: vLLM, Ollama, LiteLLM, OpenRouter)."`
	Model        string   `json:"model" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"The model's name at its provider."`
	BaseURL      string   `json:"baseURL,omitempty" jsonschema_description:"Where the provider's API is; empty is the provider's own address. Required for openai-compatible."`
	InsecureHTTP bool     `json:"insecureHTTP,omitempty" jsonschema_description:"Sends the key to another machine over http, where everybody on the way can read it."`
	APIKeyEnv    string   `json:"apiKeyEnv,omitempty" jsonschema:"pattern=^[A-Za-z_][A-Za-z0-9_]*$,maxLength=128" jsonschema_description:"The NAME of the environment variable that holds the key; without it ANTHROPIC_API_KEY or OPENAI_API_KEY, by provider, and none for openai-compatible. The key itself never stands in this file."`
	APIKeyFile   string   `json:"apiKeyFile,omitempty" jsonschema:"pattern=^/,maxLength=4096" jsonschema_description:"A file that holds the key, instead of apiKeyEnv: an absolute path, readable by its owner alone."`
	Instructions string   `json:"instructions,omitempty" jsonschema:"maxLength=65536" jsonschema_description:"What the model is told to look for; its system prompt. shellcommand ships one."`
	TypoPatterns []string `json:"typoPatterns,omitempty" jsonschema:"maxItems=256" jsonschema_description:"For typopath: JavaScript regular expressions without delimiters or flags. Only a path that matches one is put to the model."`
	Rounds       int      `json:"rounds,omitempty,omitzero" jsonschema:"minimum=1,maximum=16,default=4" jsonschema_description:"For shellcommand: how many turns the model may take for one ask, its answer included. With one it cannot ask how the rules stand."`
	MaxBytes     int      `json:"maxBytes,omitempty,omitzero" jsonschema:"minimum=256,maximum=65536,default=32768" jsonschema_description:"For shellcommand: the most that a model is shown of one ask, in bytes; what is longer is deferred and never cut."`
	TimeoutMS    int      `json:"timeoutMs,omitempty" jsonschema:"minimum=1,maximum=600000,default=5000" jsonschema_description:"How long the model may take, retries included, in milliseconds. The policy's linkTimeout should be longer."`
	Concurrency  int      `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=1024,default=8" jsonschema_description:"How many asks are judged at once; the next one is turned away at once, and the gate asks another judge."`

	Breaker *BreakerConfig `json:"breaker,omitempty" jsonschema_description:"When a model that fails is left alone. Without it: after 3 failures in a row, or half of 10 or more calls within a minute, for a minute."`
	Budget  *BudgetConfig  `json:"budget,omitempty" jsonschema_description:"What the link may use; over it, asks are deferred. Without it there is no bound."`
	Price   *PriceConfig   `json:"price,omitempty" jsonschema_description:"What the model costs, for the budget and the metrics."`
	Denials *DenialsConfig `json:"denialCache,omitempty" jsonschema_description:"How long a denial is given again to a call with the same facts, without the model. Without it: 1024 of them, 10 minutes."`
}

// Settings that nobody wrote, told from empty ones that somebody did: the former
// become "as it is without it", the latter something that check refuses.
const (
	unsaidText   = "\x00"
	unsaidNumber = math.MinInt
)

// UnmarshalJSONFrom reads the settings over their defaults, so that a zero that
// somebody wrote is told from one that nobody wrote.
func (c *LinkConfig) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain LinkConfig
	p := plain{
		APIKeyEnv: unsaidText, APIKeyFile: unsaidText, Rounds: unsaidNumber, MaxBytes: unsaidNumber,
		TimeoutMS: DefaultTimeoutMS, Concurrency: link.DefaultConcurrency,
	}
	if err := json.UnmarshalDecode(dec, &p); err != nil {
		return err
	}
	*c = LinkConfig(p)
	c.APIKeyFile = said(c.APIKeyFile, "")
	c.APIKeyEnv = said(c.APIKeyEnv, c.defaultKeyEnv())
	c.Rounds, c.MaxBytes = c.saidOfShell(c.Rounds, shellcommand.DefaultRounds), c.saidOfShell(c.MaxBytes, brief.DefaultLimit)
	return nil
}

func said(text, other string) string {
	switch text {
	case unsaidText:
		return other
	case "":
		return " "
	default:
		return text
	}
}

// saidOfShell is a number that only links on shell texts have.
func (c LinkConfig) saidOfShell(n, other int) int {
	switch {
	case n != unsaidNumber:
		return n
	case c.Kind == shellcommand.Kind:
		return other
	default:
		return 0
	}
}

// defaultKeyEnv is the variable that holds the key where the file does not say: a
// local server needs none.
func (c LinkConfig) defaultKeyEnv() string {
	switch {
	case c.APIKeyFile != "" || c.Provider == ProviderCompatible:
		return ""
	case c.Provider == ProviderOpenAI:
		return DefaultOpenAIKeyEnv
	default:
		return DefaultKeyEnv
	}
}

// JSONSchemaExtend adds what tags cannot say.
func (File) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Title = "Assent judges"
	s.Description = "The judges' file of assent judge and assent up --judges. Comments and trailing commas are allowed; unknown keys are not."
	links, _ := s.Properties.Get("links")
	least := uint64(1)
	links.MinProperties = &least
	links.PropertyNames = &jsonschema.Schema{Pattern: "^[A-Za-z0-9_-]{1,64}$"}
	links.Description = "The links to serve, by the name that a policy's authorizerChain uses."
}

// JSONSchemaExtend adds what tags cannot say.
func (LinkConfig) JSONSchemaExtend(s *jsonschema.Schema) {
	patterns, _ := s.Properties.Get("typoPatterns")
	least, most := uint64(1), uint64(typopath.MaxPattern)
	patterns.Items.MinLength, patterns.Items.MaxLength = &least, &most
	s.AllOf = []*jsonschema.Schema{
		when("kind", typopath.Kind, "instructions", "rounds", "maxBytes"),
		when("kind", shellcommand.Kind, "", "typoPatterns"),
		when("provider", ProviderCompatible, "baseURL"),
		{Not: &jsonschema.Schema{Required: []string{"apiKeyEnv", "apiKeyFile"}}},
	}
}

// when is a schema that holds for links whose key is word: the text that they
// require, and what is not theirs.
func when(key, word, required string, foreign ...string) *jsonschema.Schema {
	is := jsonschema.NewProperties()
	is.Set(key, &jsonschema.Schema{Const: word})
	then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	if required != "" {
		least := uint64(1)
		then.Required = []string{required}
		then.Properties.Set(required, &jsonschema.Schema{MinLength: &least})
	}
	for _, f := range foreign {
		then.Properties.Set(f, jsonschema.FalseSchema)
	}
	return &jsonschema.Schema{If: &jsonschema.Schema{Properties: is}, Then: then}
}

// Names are the links of the file, sorted: what the judge's credential must be
// issued for.
func (f File) Names() []string {
	names := make([]string, 0, len(f.Links))
	for name := range f.Links {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ReadFile reads the judges' file at path. Its errors name the file, the place
// in it and the way out; they wrap ErrConfig unless the file cannot be read.
func ReadFile(path string) (File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("reading the judges' file: %w", err)
	}
	f, err := Read(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
