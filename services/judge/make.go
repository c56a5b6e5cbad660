package judge

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/services/judge/shellcommand"
	"github.com/assent-dev/assent/services/judge/typopath"
)

// Server is the model server that the settings name. env looks up an
// environment variable, as os.LookupEnv; an error wraps llm.ErrAuth where the
// key is missing.
func (c LinkConfig) Server(env func(string) (string, bool)) (llm.Provider, error) {
	key, _ := env(c.APIKeyEnv)
	if key = strings.TrimSpace(key); key == "" {
		return nil, fmt.Errorf("%w: the environment variable %s is not set: export the key there and start again", llm.ErrAuth, c.APIKeyEnv)
	}
	return llm.NewAnthropic(key, c.BaseURL)
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
		set := typopath.Settings{Model: c.Model, Instructions: c.Instructions, Patterns: patterns, Timeout: c.timeout()}
		return typopath.New(set, model, log).Judge, nil
	case shellcommand.Kind:
		set := shellcommand.Settings{Model: c.Model, Instructions: c.Instructions, Timeout: c.timeout(), Rounds: c.Rounds, Limit: c.MaxBytes}
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
