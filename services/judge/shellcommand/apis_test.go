package shellcommand

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Over each API: the model may ask the gate, is bound to the one tool in its last
// turn, and what it asked and heard changes nothing of what is checked.
func TestOverEachAPI(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]func(url string) (llm.Provider, error){
		"anthropic":         func(url string) (llm.Provider, error) { return llm.NewAnthropic("test-key", url) },
		"openai":            func(url string) (llm.Provider, error) { return llm.NewOpenAI("test-key", url) },
		"openai-compatible": func(url string) (llm.Provider, error) { return llm.NewOpenAICompatible("", url) },
	} {
		for _, row := range []struct {
			name, command string
			want          protocol.Choice
		}{
			{"the truth", opaqueText, protocol.ChoiceAllow},
			{"a lie", opaqueText + "; rm -rf x", protocol.ChoiceDefer},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				server := llmtest.Start(t,
					llmtest.CallsAll(llmtest.Call{Name: helperCommand, Input: `{"command":"git status"}`}, llmtest.Call{Name: helperTool, Input: `{"tool":"bash"}`}),
					llmtest.CallsOther(helperCommand, `{"command":"git push"}`), llmtest.Calls(`{"commands":["git status","cat"],"complete":true}`))
				m, err := provider(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				j := judgeWith(m)
				j.set.Rounds = 3
				state, r := call(t, compiled(t, listed), row.command)
				v := verdictOn(t, j, r)
				if state != policy.Ask || v.Verdict != row.want {
					t.Errorf("%+v", v)
				}
				asked := server.Asked()
				if len(asked) != 3 || asked[0].Forced != "" || asked[1].Forced != "" || asked[2].Forced != toolName || len(asked[0].Tools) != 3 {
					t.Fatalf("%d turns: %+v", len(asked), asked)
				}
				heard := []string{`{"state":"allow","matched_pattern":"git status *"}`, `{"state":"ask","matched_pattern":"*"}`, `{"state":"deny","matched_pattern":"git push *"}`}
				if !slices.Equal(asked[2].Results, heard) {
					t.Errorf("the model heard %q of the gate", asked[2].Results)
				}
				if got := r.Log.(*log).review; len(got) != 1 || !strings.Contains(got[0], `"rounds":3,"inputTokens":30,"outputTokens":15`) {
					t.Errorf("record %q", got)
				}
			})
		}
	}
}
