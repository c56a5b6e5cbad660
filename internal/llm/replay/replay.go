// Package replay records what a model answered and gives the same answers again,
// so that a run over many questions can be repeated without a model, a network
// or a bill.
//
// A question is known by its Key. Start at Tape, which records, and Recording,
// which plays; answer.go is one line of the file between them.
package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
)

// Sentinels of this package. None of them is an answer of a model: whoever
// counts answers stops at them.
var (
	// ErrMissing: the recording holds no answer to a question.
	ErrMissing = errors.New("not recorded")
	// ErrStale: a tool that the model called answers otherwise than when it was
	// recorded, so nobody knows what the model would have made of it.
	ErrStale = errors.New("recording is stale")
	// ErrFile: the recording cannot be read.
	ErrFile = errors.New("invalid recording")
)

// markLine is a line of a fence: a few words and the random mark at its end.
var markLine = regexp.MustCompile(`(?m)^[^\n{}"]{0,60}?([0-9a-f]{16,64})[^\n0-9a-zA-Z{}"]{0,8}$`)

// Key names a question: the digest of all that a model is sent, with the random
// mark of its fence taken out, which differs each time and means nothing.
func Key(r llm.Request) (string, error) {
	type tool struct {
		Name, Description string
		Schema            jsontext.Value
	}
	asked := struct {
		Model, System, User string
		Tool                tool
		MaxTokens           int
		Helpers             []tool
		Rounds              int
	}{Model: r.Model, Tool: tool(r.Tool), MaxTokens: r.MaxTokens, Rounds: max(r.Rounds, 1)}
	asked.System, asked.User = unmarked(r.System, r.User)
	for _, h := range r.Helpers {
		asked.Helpers = append(asked.Helpers, tool(h.Tool))
	}
	data, err := json.Marshal(asked, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("naming a question: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// unmarked takes the mark of a fence out: what ends two lines or more of user.
func unmarked(system, user string) (string, string) {
	seen := map[string]int{}
	for _, m := range markLine.FindAllStringSubmatch(user, -1) {
		if seen[m[1]]++; seen[m[1]] == 2 {
			system, user = strings.ReplaceAll(system, m[1], "MARK"), strings.ReplaceAll(user, m[1], "MARK")
		}
	}
	return system, user
}
