package judge

import (
	"fmt"
	"log/slog"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/services/judge/shellcommand"
	"github.com/assent-dev/assent/services/judge/typopath"
)

// Server is the model server that the settings name. env looks up an
// environment variable, as os.LookupEnv; an error wraps llm.ErrAuth where the
// key is missing.
func (c LinkConfig) Server(env func(string) (string, bool)) (llm.Provider, error) {
	key, err := c.key(env)
	if err != nil {
		return nil, err
	}
	switch c.Provider {
	case ProviderAnthropic:
		return llm.NewAnthropic(key, c.BaseURL)
	case ProviderOpenAI:
		return llm.NewOpenAI(key, c.BaseURL)
	case ProviderCompatible:
		return llm.NewOpenAICompatible(key, c.BaseURL)
	default:
		return nil, fmt.Errorf("%w: unknown provider %q", ErrConfig, c.Provider)
	}
}

// info is how the model would be asked, for the records of one that cannot be.
func (c LinkConfig) info() llm.Info {
	switch c.Provider {
	case ProviderOpenAI:
		return llm.OpenAIInfo(c.Model)
	case ProviderCompatible:
		return llm.CompatibleInfo(c.Model)
	default:
		return llm.AnthropicInfo(c.Model)
	}
}

// Link is the link that the settings describe, over a model server that the
// caller chooses: the service's own, or a recording of one.
func (c LinkConfig) Link(model llm.Provider, log *slog.Logger) (link.Link, error) {
	switch c.Kind {
	case typopath.Kind:
		patterns, err := typopath.Compile(c.TypoPatterns)
		if err != nil {
			return nil, err
		}
		set := typopath.Settings{Model: c.Model, Instructions: c.Instructions, Patterns: patterns, Timeout: c.timeout(), Denials: c.Denials.cache()}
		return typopath.New(set, model, log).Judge, nil
	case shellcommand.Kind:
		set := shellcommand.Settings{
			Model: c.Model, Instructions: c.Instructions, Timeout: c.timeout(), Rounds: c.Rounds, Limit: c.MaxBytes, Denials: c.Denials.cache(),
		}
		return shellcommand.New(set, model, log).Judge, nil
	default:
		return nil, fmt.Errorf("%w: unknown kind %q", ErrConfig, c.Kind)
	}
}

// idle is why a well described link has nothing to judge; "" when it has.
func (c LinkConfig) idle() string {
	if c.Kind == typopath.Kind && len(c.TypoPatterns) == 0 {
		return "it has no typoPatterns"
	}
	return ""
}
