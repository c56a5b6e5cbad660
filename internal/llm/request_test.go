package llm

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRequestBodies keeps the SDKs' real request bodies: an update of one that
// drops a forcing word or a bound shows up here.
func TestRequestBodies(t *testing.T) {
	for api, spec := range apis {
		t.Run(string(spec.format), func(t *testing.T) {
			forced := llmtest.Start(t, llmtest.Calls(deny))
			if _, _, err := provider(t, api, forced.URL).Ask(t.Context(), question()); err != nil {
				t.Fatal(err)
			}
			golden(t, string(spec.format)+".forced.json", forced.Asked()[0].Body)

			rounds := llmtest.Start(t, llmtest.CallsAll(checks("ls"), checks("rm x")), llmtest.Calls(deny))
			if _, _, err := provider(t, api, rounds.URL).Ask(t.Context(), withHelper(2, helps("allow"))); err != nil {
				t.Fatal(err)
			}
			golden(t, string(spec.format)+".round1.json", rounds.Asked()[0].Body)
			golden(t, string(spec.format)+".round2.json", rounds.Asked()[1].Body)
		})
	}
}

func golden(t *testing.T, name string, got jsontext.Value) {
	t.Helper()
	path := filepath.Join("testdata", "request", name)
	if err := got.Indent(); err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

// TestEnvironment: a stray variable must neither carry the key elsewhere nor
// send another one.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": "of-somebody-else", "ANTHROPIC_AUTH_TOKEN": "of-somebody-else",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Stray: of-somebody-else",
		"OPENAI_BASE_URL":          "http://127.0.0.1:1", "OPENAI_API_KEY": "of-somebody-else", "OPENAI_ADMIN_KEY": "of-somebody-else",
		"OPENAI_ORG_ID": "of-somebody-else", "OPENAI_PROJECT_ID": "of-somebody-else", "OPENAI_CUSTOM_HEADERS": "X-Stray: of-somebody-else",
	} {
		t.Setenv(name, value)
	}
	for api, spec := range apis {
		s := llmtest.Start(t, llmtest.Calls(deny))
		if _, _, err := provider(t, api, s.URL).Ask(t.Context(), question()); err != nil {
			t.Fatal(err)
		}
		q := s.Asked()[0]
		sent, with := "", 0
		for name, values := range q.Header {
			sent += name + strings.Join(values, " ")
			if strings.Contains(strings.Join(values, " "), testKey) {
				with++
			}
		}
		if q.Path != spec.path || with != 1 || strings.Contains(sent, "somebody-else") || strings.Contains(string(q.Body), testKey) {
			t.Errorf("%s: path %s, the key in %d headers: %s", spec.format, q.Path, with, sent)
		}
	}
}

func TestWhatTheServerIsAsked(t *testing.T) {
	t.Parallel()
	for api, spec := range apis {
		s := llmtest.Start(t, llmtest.Calls(deny))
		if _, _, err := provider(t, api, s.URL).Ask(t.Context(), question()); err != nil {
			t.Fatal(err)
		}
		q := s.Asked()[0]
		if q.Model != "model-1" || q.MaxTokens != 64 || q.System != "judge" || q.User != "a path" {
			t.Errorf("%s: asked model %s, %d tokens, system %q, user %q", spec.format, q.Model, q.MaxTokens, q.System, q.User)
		}
		if q.Choice != spec.forced || q.Forced != "verdict" || q.Parallel || len(q.Tools) != 1 || !q.Tools[0].Strict {
			t.Errorf("%s: choice %q of %q, parallel %t, tools %+v: one call of the tool is not forced", spec.format, q.Choice, q.Forced, q.Parallel, q.Tools)
		}
	}
}

// TestNoKey: only a server of one's own may be asked without a key.
func TestNoKey(t *testing.T) {
	t.Parallel()
	s := llmtest.Start(t, llmtest.Calls(deny))
	p, err := NewOpenAICompatible("", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Ask(t.Context(), question()); err != nil || s.Asked()[0].Header.Get("Authorization") != "" {
		t.Errorf("without a key: %v, headers %v", err, s.Asked()[0].Header)
	}
	_, anthropic := NewAnthropic("", s.URL)
	_, openAI := NewOpenAI("", s.URL)
	_, compatible := NewOpenAICompatible("", "")
	for _, err := range []error{anthropic, openAI, compatible} {
		if !errors.Is(err, ErrAuth) {
			t.Errorf("no key: %v", err)
		}
	}
	u := Unavailable{Info: AnthropicInfo("m"), Cause: ErrAuth}
	call, info, err := u.Ask(t.Context(), question())
	if call.Input != nil || info.Attempts != 0 || !errors.Is(err, ErrAuth) {
		t.Errorf("%v, %+v, %v", call, info, err)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://api.anthropic.com", "http://127.0.0.1:8080/anthropic", "https://proxy.example/v1/", "http://[::1]:9", "https://h"} {
		if err := CheckBaseURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"api.anthropic.com", "ftp://h", "https://", "https://user:secret@h", "https://h?a=b", "https://h#f", "https://user:secret@h:x%zz"} {
		err := CheckBaseURL(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
		for _, api := range apis {
			if _, err := api.make(testKey, bad, quick); err == nil {
				t.Errorf("%s: a provider was made for %s", api.format, bad)
			}
		}
	}
}

func TestBaseURLWithAPath(t *testing.T) {
	t.Parallel()
	for api, spec := range apis {
		for _, base := range []string{"/proxy", "/proxy/"} {
			s := llmtest.Start(t, llmtest.Calls(deny))
			if _, _, err := provider(t, api, s.URL+base).Ask(t.Context(), question()); err != nil || s.Asked()[0].Path != "/proxy"+spec.path {
				t.Errorf("%s at %s: %v", spec.format, base, err)
			}
		}
	}
}
