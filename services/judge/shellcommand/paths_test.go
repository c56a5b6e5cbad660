package shellcommand

import (
	"math/rand/v2"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// filed is a policy that allows most commands, and not every file to each.
const filed = `{"*":"allow","path":{"*":"allow","secret/*":"deny","*.env":"ask","web/src/*":"ask"},"external_directory":"ask","bash":{"*":"allow","rm *":"ask","git push *":"ask"}}`

// What the link allows, the rules allow command by command where each of them
// runs, the files that it works on included: the reading of the whole text may
// have seen fewer of them, and a path means another file in another directory.
func TestNoAllowReachesAFileThatTheRulesKeep(t *testing.T) {
	t.Parallel()
	s := compiled(t, filed)
	g := generator{r: rand.New(rand.NewPCG(9, 1)), paths: true}
	allowed := 0
	for tried := 0; allowed < 300 && tried < 60_000; tried++ {
		text := g.text()
		pieces, err := cut(text, wide)
		if err != nil {
			continue
		}
		state, r := call(t, s, text)
		if state != policy.Ask || verdictOn(t, judgeWith(claiming(t, texts(pieces)...)), r).Verdict != protocol.ChoiceAllow {
			continue
		}
		allowed++
		for _, p := range pieces {
			for _, dir := range p.dirs {
				if state, _ := call(t, s, gone(dir)+p.text); state != policy.Allow {
					t.Errorf("%q is allowed, and the rules say %s of %q", text, state, gone(dir)+p.text)
				}
			}
		}
	}
	if allowed < 300 {
		t.Errorf("%d texts were allowed: too few to say anything", allowed)
	}
}

func TestFilesThatTheRulesKeep(t *testing.T) {
	t.Parallel()
	s := compiled(t, filed)
	for _, row := range []struct {
		name, tool string
		input      map[string]string
		want       protocol.Choice
	}{
		{"a path that is open where the command runs", "bash", map[string]string{"command": "bash -c 'cd web && cat src/x'"}, protocol.ChoiceDefer},
		{"the same path elsewhere", "bash", map[string]string{"command": "bash -c 'cd src && cat src/x'"}, protocol.ChoiceAllow},
		{"a pattern that may be such a path", "bash", map[string]string{"command": "bash -c 'cat .e*v'"}, protocol.ChoiceDefer},
		{"a folder that a wrapper hides", "bash", map[string]string{"command": "stdbuf -oL tar cf x.tar secret"}, protocol.ChoiceDeny},
		{"another folder behind a wrapper", "bash", map[string]string{"command": "stdbuf -oL tar cf x.tar src"}, protocol.ChoiceAllow},
		{"outside of the project, gone to", "bash", map[string]string{"command": "bash -c 'cd /srv && ls'"}, protocol.ChoiceDefer},
		{"a folder that the call itself says", "exec_command", map[string]string{"cmd": "stdbuf -oL tar cf x.tar src", "workdir": "web"}, protocol.ChoiceDefer},
		{"the same call for another folder", "exec_command", map[string]string{"cmd": "stdbuf -oL tar cf x.tar dist", "workdir": "web"}, protocol.ChoiceAllow},
		{"more places than anybody can tell", "exec_command", map[string]string{"cmd": "stdbuf -oL tar cf x.tar dist", "a": "b", "c": "d", "workdir": "web"}, protocol.ChoiceDefer},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			input, err := json.Marshal(row.input)
			if err != nil {
				t.Fatal(err)
			}
			state, r := callOf(t, s, row.tool, string(input))
			pieces, err := cut(row.input["command"]+row.input["cmd"], wide)
			if err != nil {
				t.Fatal(err)
			}
			if v := verdictOn(t, judgeWith(claiming(t, texts(pieces)...)), r); state != policy.Ask || v.Verdict != row.want {
				t.Errorf("the rules say %s, the link %s: %s", state, v.Verdict, v.Reason)
			}
		})
	}
}
