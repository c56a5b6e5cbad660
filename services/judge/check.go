package judge

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/shellcommand"
	"github.com/assent-dev/assent/services/judge/typopath"
)

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
		{"apiKeyFile", c.checkKeyFile()},
		{"timeoutMs", between(c.TimeoutMS, 1, maxTimeoutMS)},
		{"concurrency", between(c.Concurrency, 1, maxConcurrency)},
		{"typoPatterns", c.checkPatterns()},
		{"rounds", c.onlyShell(c.Rounds, 1, maxRounds)},
		{"maxBytes", c.onlyShell(c.MaxBytes, leastBytes, mostBytes)},
		{"breaker", c.Breaker.check()},
		{"budget", c.Budget.check(c.Price)},
		{"price", c.Price.check()},
		{"denialCache", c.Denials.check()},
	} {
		if row.err != nil {
			return row.key, row.err
		}
	}
	return "", nil
}

func (c LinkConfig) checkKind() error {
	return oneOf("kind", c.Kind, typopath.Kind, shellcommand.Kind)
}

func (c LinkConfig) checkProvider() error {
	return oneOf("provider", c.Provider, ProviderAnthropic, ProviderOpenAI, ProviderCompatible)
}

func oneOf(what, word string, words ...string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %s: want one of %s", what, shown(word), strings.Join(words, ", "))
}

// checkInstructions lets a kind that ships a prompt go without.
func (c LinkConfig) checkInstructions() error {
	if c.Instructions == "" && c.Kind == shellcommand.Kind {
		return nil
	}
	return text(c.Instructions, maxInstructions)
}

func (c LinkConfig) checkBaseURL() error {
	switch {
	case c.BaseURL != "":
		return c.checkKeyStaysSecret(llm.CheckBaseURL(c.BaseURL))
	case c.Provider == ProviderCompatible:
		return errors.New("it is required for the provider " + ProviderCompatible + ", as http://127.0.0.1:11434/v1")
	default:
		return nil
	}
}

// checkKeyStaysSecret refuses to send a key where everybody on the way reads it,
// unless that is wanted.
func (c LinkConfig) checkKeyStaysSecret(wrong error) error {
	if wrong != nil || c.InsecureHTTP || c.APIKeyEnv == "" && c.APIKeyFile == "" {
		return wrong
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme == "https" || isLoopback(u.Hostname()) {
		return err
	}
	return fmt.Errorf("the key would go to %s in the clear: want https, or \"insecureHTTP\": true where the network between is yours alone", shown(u.Host))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// checkKeyEnv does not show the value: somebody may have put the key there.
func (c LinkConfig) checkKeyEnv() error {
	switch {
	case c.APIKeyEnv != "" && c.APIKeyFile != "":
		return errors.New("the key comes from apiKeyEnv or from apiKeyFile, and both are there: take one of them out")
	case c.APIKeyEnv == "" && (c.APIKeyFile != "" || c.Provider == ProviderCompatible):
		return nil
	case !envName.MatchString(c.APIKeyEnv) || len(c.APIKeyEnv) > maxModel:
		return errors.New("want the name of an environment variable, letters, digits and '_'; the key itself never stands in this file")
	}
	return nil
}

// checkKeyFile does not show the value either.
func (c LinkConfig) checkKeyFile() error {
	if c.APIKeyFile != "" && (!filepath.IsAbs(c.APIKeyFile) || len(c.APIKeyFile) > 4096) {
		return errors.New("want the absolute path (no ~) of a file that holds the key; the key itself never stands in this file")
	}
	return nil
}

// onlyShell checks a number that only links on shell texts have.
func (c LinkConfig) onlyShell(n, least, most int) error {
	switch {
	case c.Kind == shellcommand.Kind:
		return between(n, least, most)
	case n != 0:
		return fmt.Errorf("only %s has it", shellcommand.Kind)
	default:
		return nil
	}
}

func (c LinkConfig) checkPatterns() error {
	if c.Kind != typopath.Kind && c.TypoPatterns != nil {
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

func between(n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%d is out of bounds: want %d to %d", n, least, most)
	}
	return nil
}

func shown(s string) string {
	if s == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", protocol.Safe(s, 60, false))
}
