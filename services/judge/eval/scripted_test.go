package eval

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
)

// The scripted models answer the shipped data sets. They are careless on
// purpose: each has blind spots, obeys what the agent's text tells it, and now
// and then gives no answer at all. So the scores say what the links and the
// report make of such a model, and nothing of how well a real one judges.

// scripted is a model that a function plays. It sees what a model would.
type scripted func(facts map[string]any) (input string, err error)

// Ask implements llm.Provider.
func (s scripted) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	info := llm.Info{API: "scripted", ToolChoice: "tool", ModelID: "scripted/" + r.Model, Attempts: 1, Rounds: 1}
	lines := strings.Split(r.User, "\n")
	var facts map[string]any
	if len(lines) != 3 || json.Unmarshal([]byte(lines[1]), &facts) != nil {
		return llm.ToolCall{}, info, fmt.Errorf("%w: the question is no fence with one line of JSON", llm.ErrRejected)
	}
	input, err := s(facts)
	if len(r.Helpers) > 0 && err == nil {
		// It asks about the whole text, which no careful model would, and does not
		// listen.
		info.Attempts, info.Rounds = 2, 2
		if _, herr := r.Helpers[0].Answer(ctx, jsontext.Value(object(map[string]any{"command": facts["command"]}))); herr != nil {
			err = fmt.Errorf("%w: %w", llm.ErrHelper, herr)
		}
	}
	info.Usage = llm.Usage{Input: int64(len(r.System)+len(r.User)) / 4, Output: int64(len(input)) / 4}
	info.Latency = time.Duration(300+len(r.User)%400) * time.Millisecond
	if err != nil {
		return llm.ToolCall{}, info, err
	}
	return llm.ToolCall{Input: jsontext.Value(input)}, info, nil
}

func object(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// moody fails for some texts, in turns of its ways.
func moody(text string, every int) error {
	ways := []error{llm.ErrTimeout, llm.ErrProse, llm.ErrCutOff, llm.ErrServer, llm.ErrRefused}
	sum := 0
	for _, b := range []byte(text) {
		sum = (31*sum + int(b)) & 0xffff
	}
	if sum%every != 0 {
		return nil
	}
	return fmt.Errorf("%w: as scripted", ways[sum/every%len(ways)])
}

var (
	orders     = regexp.MustCompile(`(?i)(say|answer|verdict:|verdict with)\s+unsure`)
	demands    = regexp.MustCompile(`(?i)(deny this, |verdict=deny |"verdict":"deny",)(.*)`)
	knownTrees = []string{"/opt/vendor/", "/go/pkg/mod/", "/dist-packages/"}
)

// typist plays a model for typopath. It knows vendored trees, not Python's
// habits; it does what file names tell it.
func typist(facts map[string]any) (string, error) {
	path, _ := facts["path"].(string)
	unsure := object(map[string]string{"verdict": "unsure", "reason": ""})
	if err := moody(path, 23); err != nil {
		return "", err
	}
	if m := demands.FindStringSubmatch(path); m != nil {
		return object(map[string]string{"verdict": "deny", "reason": m[2]}), nil
	}
	if orders.MatchString(path) {
		return unsure, nil
	}
	for _, tree := range knownTrees {
		if strings.Contains(path, tree) {
			return unsure, nil
		}
	}
	return object(map[string]string{"verdict": "deny", "reason": "A segment of this path stands twice or in the wrong place. Look for it without."}), nil
}

var (
	listOnly = regexp.MustCompile(`(?i)(?:list only|the only command is|answer with commands)\W+([a-z./][^\n'"#;\],]*)`)
	hereDoc  = regexp.MustCompile(`(?s)<<-?'?(\w+)'?[^\n]*\n(.*)\n\w+\s*$`)
	carrier  = regexp.MustCompile(`^(stdbuf -oL|setsid|exec|unbuffer|ionice -c3|eval|cd \w+ &&|nohup)\s+`)
	joints   = regexp.MustCompile(`&&|\|\||[;|\n&]`)
)

// decomposer plays a model for shellcommand. It looks into quotes and heredocs
// by eye, splits at whatever looks like an operator, leaves out what it finds
// hard to read, vouches for all of it, and does what comments tell it.
func decomposer(facts map[string]any) (string, error) {
	text, _ := facts["command"].(string)
	if err := moody(text, 29); err != nil {
		return "", err
	}
	commands := []string{}
	if m := listOnly.FindStringSubmatch(text); m != nil {
		commands = append(commands, strings.TrimSpace(m[1]))
	} else {
		for _, piece := range joints.Split(inside(text), -1) {
			piece, _, _ = strings.Cut(piece, " #")
			piece = strings.Trim(piece, " (){}")
			if piece != "" && !strings.HasPrefix(piece, "#") && !strings.ContainsAny(piece, "$`<") {
				commands = append(commands, piece)
			}
		}
	}
	return object(map[string]any{"commands": commands, "complete": true}), nil
}

// inside is what a careless reader takes for the text that a shell is handed.
func inside(text string) string {
	if m := hereDoc.FindStringSubmatch(text); m != nil {
		return m[2]
	}
	text = carrier.ReplaceAllString(text, "")
	for _, quote := range []string{"'", `"`} {
		from, to := strings.Index(text, quote), strings.LastIndex(text, quote)
		if from >= 0 && from < to {
			return text[from+1 : to]
		}
	}
	return text
}
