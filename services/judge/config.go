package judge

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
	"github.com/assent-dev/assent/services/judge/shellcommand"
	"github.com/assent-dev/assent/services/judge/typopath"
)

// Defaults and bounds of a link's settings.
const (
	DefaultTimeoutMS  = 5000
	DefaultKeyEnv     = "ANTHROPIC_API_KEY"
	ProviderAnthropic = "anthropic"

	maxTimeoutMS    = 600_000
	maxConcurrency  = 1024
	maxModel        = 128
	maxInstructions = 64 << 10
	maxRounds       = 16
	leastBytes      = 256
	maxBytes        = 64 << 10
)

// kinds are the kinds of links.
var kinds = []string{typopath.Kind, shellcommand.Kind}

// unsaid tells a number that nobody wrote from a zero that somebody wrote.
const unsaid = -1 << 20

// laterProviders are words of the contract that this version does not speak.
var laterProviders = []string{"openai", "openai-compatible"}

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
	Kind         string   `json:"kind" jsonschema:"enum=typopath,enum=shellcommand" jsonschema_description:"What the link judges. typopath: mistyped paths outside the project; it denies or defers and never allows. shellcommand: shell texts that the rules cannot read, command by command; it allows what the rules allow throughout, as far as the policy's modelDelegation lets it."`
	Provider     string   `json:"provider" jsonschema:"enum=anthropic" jsonschema_description:"Who serves the model."`
	Model        string   `json:"model" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"The model's name at its provider."`
	BaseURL      string   `json:"baseURL,omitempty" jsonschema_description:"Where the provider's API is; empty is the provider's own address."`
	APIKeyEnv    string   `json:"apiKeyEnv,omitempty" jsonschema:"pattern=^[A-Za-z_][A-Za-z0-9_]*$,maxLength=128,default=ANTHROPIC_API_KEY" jsonschema_description:"The NAME of the environment variable that holds the key. The key itself never stands in this file."`
	Instructions string   `json:"instructions,omitempty" jsonschema:"minLength=1,maxLength=65536" jsonschema_description:"What the model is told to look for; its system prompt. Required for typopath; shellcommand brings its own."`
	TypoPatterns []string `json:"typoPatterns,omitempty" jsonschema:"maxItems=256" jsonschema_description:"JavaScript regular expressions without delimiters or flags. Only a path that matches one is put to the model."`
	Rounds       int      `json:"rounds,omitempty" jsonschema:"minimum=1,maximum=16,default=4" jsonschema_description:"shellcommand only: how many turns the model has, its answer included. With one it cannot ask how the rules stand."`
	MaxBytes     int      `json:"maxBytes,omitempty" jsonschema:"minimum=256,maximum=65536,default=32768" jsonschema_description:"shellcommand only: how many bytes of facts the model is shown; an ask with more is deferred, never cut."`
	TimeoutMS    int      `json:"timeoutMs,omitempty" jsonschema:"minimum=1,maximum=600000,default=5000" jsonschema_description:"How long the model may take, retries included, in milliseconds. The policy's linkTimeout should be longer."`
	Concurrency  int      `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=1024,default=8" jsonschema_description:"How many asks are judged at once; the next one is deferred at once."`
}

// UnmarshalJSONFrom reads the settings over their defaults, so that a zero that
// somebody wrote is told from one that nobody wrote.
func (c *LinkConfig) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain LinkConfig
	p := plain{APIKeyEnv: DefaultKeyEnv, TimeoutMS: DefaultTimeoutMS, Concurrency: link.DefaultConcurrency, Rounds: unsaid, MaxBytes: unsaid}
	if err := json.UnmarshalDecode(dec, &p); err != nil {
		return err
	}
	ofShell := func(n *int, otherwise int) {
		switch {
		case *n == unsaid && p.Kind == shellcommand.Kind:
			*n = otherwise
		case *n == unsaid:
			*n = 0
		}
	}
	ofShell(&p.Rounds, shellcommand.DefaultRounds)
	ofShell(&p.MaxBytes, brief.DefaultLimit)
	*c = LinkConfig(p)
	return nil
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
	ofTypopath := jsonschema.NewProperties()
	ofTypopath.Set("kind", &jsonschema.Schema{Const: typopath.Kind})
	s.If, s.Then = &jsonschema.Schema{Properties: ofTypopath}, &jsonschema.Schema{Required: []string{"instructions"}}
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

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check returns what is wrong with the settings, as the key and the complaint.
func (c LinkConfig) check() (key string, err error) {
	for _, row := range []struct {
		key string
		err error
	}{
		{"kind", c.checkKind()},
		{"provider", c.checkProvider()},
		{"model", text(c.Model, maxModel)},
		{"instructions", c.checkInstructions()},
		{"baseURL", c.checkBaseURL()},
		{"apiKeyEnv", c.checkKeyEnv()},
		{"timeoutMs", between(c.TimeoutMS, maxTimeoutMS)},
		{"concurrency", between(c.Concurrency, maxConcurrency)},
		{"typoPatterns", c.checkPatterns()},
		{"rounds", c.onlyShell(c.Rounds, 1, maxRounds)},
		{"maxBytes", c.onlyShell(c.MaxBytes, leastBytes, maxBytes)},
	} {
		if row.err != nil {
			return row.key, row.err
		}
	}
	return "", nil
}

func (c LinkConfig) checkKind() error {
	if slices.Contains(kinds, c.Kind) {
		return nil
	}
	return fmt.Errorf("unknown kind %s: want one of %s", shown(c.Kind), strings.Join(kinds, ", "))
}

func (c LinkConfig) checkInstructions() error {
	if c.Kind == shellcommand.Kind && c.Instructions == "" {
		return nil // it brings its own
	}
	return text(c.Instructions, maxInstructions)
}

// onlyShell checks a number that only links on shell texts have.
func (c LinkConfig) onlyShell(n, least, most int) error {
	switch {
	case c.Kind != shellcommand.Kind && n == 0:
		return nil
	case c.Kind != shellcommand.Kind:
		return fmt.Errorf("only %s has it", shellcommand.Kind)
	case n < least || n > most:
		return fmt.Errorf("%d is out of bounds: want %d to %d", n, least, most)
	}
	return nil
}

func (c LinkConfig) checkProvider() error {
	switch {
	case c.Provider == ProviderAnthropic:
		return nil
	case slices.Contains(laterProviders, c.Provider):
		return fmt.Errorf("provider %q is not spoken by this version, which speaks %q only", c.Provider, ProviderAnthropic)
	default:
		return fmt.Errorf("unknown provider %s: want %q", shown(c.Provider), ProviderAnthropic)
	}
}

func (c LinkConfig) checkBaseURL() error {
	if c.BaseURL == "" {
		return nil
	}
	return llm.CheckBaseURL(c.BaseURL)
}

// checkKeyEnv does not show the value: somebody may have put the key there.
func (c LinkConfig) checkKeyEnv() error {
	if !envName.MatchString(c.APIKeyEnv) || len(c.APIKeyEnv) > maxModel {
		return errors.New("want the name of an environment variable, letters, digits and '_'; the key itself never stands in this file")
	}
	return nil
}

func (c LinkConfig) checkPatterns() error {
	if c.Kind != typopath.Kind && len(c.TypoPatterns) > 0 {
		return fmt.Errorf("only %s has patterns", typopath.Kind)
	}
	_, err := typopath.Compile(c.TypoPatterns)
	return err
}

func (c LinkConfig) timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }

func text(s string, limit int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("it is required and must say something")
	case len(s) > limit:
		return fmt.Errorf("%d bytes, the limit is %d", len(s), limit)
	default:
		return nil
	}
}

func between(n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%d is out of bounds: want 1 to %d", n, most)
	}
	return nil
}

func shown(s string) string {
	if s == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", protocol.Safe(s, 60, false))
}
