package shellcommand

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
)

const (
	maxTokens = 2000
	// maxTeaching bounds what an agent is told; maxDetail what a trail is.
	maxTeaching = 800
	maxDetail   = 300
)

// DefaultInstructions are the shipped system prompt.
const DefaultInstructions = `You take shell command lines apart. An agent wants to run a text that its operator's rules could not read with certainty, and your part
is to list every command that a shell would run because of it. You do not decide whether any of it is a good idea: rules do that, command by command.`

// rules stand after the operator's instructions, so that these cannot be
// written without them. Nothing rests on a model that keeps to them.
const rules = `

` + brief.Rules + `

"command" is the text to take apart.
Answer by calling the tool "` + toolName + `" once. In "commands", list every command in the order of the text, each copied letter by letter from where it
stands: with its quotes and redirections, without the operators (; & && || | newline), keywords, comments and brackets around it. Where a shell is handed a text
(bash -c '…', eval '…', a here-document for a shell), list the commands in that text instead of the shell, as that shell would see them. Where a wrapper only
passes on a command (exec, setsid, stdbuf), list that command. Set "complete" to true only if these are all commands that would run; set it to false if any
part is computed, coded, fetched or hidden, or if you are not sure.
You may first ask how the rules stand on a command with "` + helperCommand + `", or on a tool with "` + helperTool + `".`

const (
	toolName      = "decomposition"
	helperCommand = "check_permission"
	helperTool    = "get_tool_permission"
	// maxHelp bounds the model's own questions to the gate about one ask; those of
	// this link come after them.
	maxHelp = 12
)

const toolSchema = `{"type":"object","properties":{` +
	`"commands":{"type":"array","maxItems":24,"items":{"type":"string"},"description":"every command that would run, in order, letter by letter"},` +
	`"complete":{"type":"boolean","description":"true: these are all commands that would run; false: not, or not surely"}},` +
	`"required":["commands","complete"],"additionalProperties":false}`

const commandSchema = `{"type":"object","properties":{"command":{"type":"string","description":"one command, as it would be run"}},"required":["command"],"additionalProperties":false}`

const permissionSchema = `{"type":"object","properties":{"tool":{"type":"string","description":"the name of a tool"}},"required":["tool"],"additionalProperties":false}`

// question is what the model is asked. helped counts its own questions.
func (c *judgement) question() (llm.Request, error) {
	b, err := brief.New(c.r, c.set.Limit)
	if err != nil {
		return llm.Request{}, err
	}
	if !b.Whole() {
		return llm.Request{}, errMasked
	}
	helped := 0
	return llm.Request{
		Model: c.set.Model, System: c.set.Instructions + rules, User: b.User(c.set.Mark()), MaxTokens: maxTokens, Rounds: c.set.Rounds,
		Tool: llm.Tool{Name: toolName, Description: "Gives the commands that the text would run.", Schema: jsontext.Value(toolSchema)},
		Helpers: []llm.Helper{
			{Tool: llm.Tool{Name: helperCommand, Description: "Says how the rules stand on one command: allow, ask or deny.", Schema: jsontext.Value(commandSchema)},
				Answer: func(ctx context.Context, input jsontext.Value) (string, error) { return c.help(ctx, input, &helped) }},
			{Tool: llm.Tool{Name: helperTool, Description: "Says how the rules stand on a tool as a whole: allow, ask or deny.", Schema: jsontext.Value(permissionSchema)},
				Answer: func(ctx context.Context, input jsontext.Value) (string, error) { return c.help(ctx, input, &helped) }},
		},
	}, nil
}

// errMasked: the text holds what a model must not see, so it cannot be shown
// whole, and a decomposition of the rest would be of another text.
var errMasked = errors.New("the text holds what looks like a secret")

// help answers a question of the model's as the gate would. A question that is
// none is told so; one that the gate does not answer ends the judgement.
func (c *judgement) help(ctx context.Context, input jsontext.Value, helped *int) (string, error) {
	var q struct {
		Command string `json:"command"`
		Tool    string `json:"tool"`
	}
	if *helped++; *helped > maxHelp {
		return `{"error":"no more questions; call ` + toolName + ` now"}`, nil
	}
	bad := json.Unmarshal(input, &q) != nil || (q.Command == "") == (q.Tool == "")
	query := protocol.Query{Tool: q.Tool}
	if q.Command != "" {
		query = protocol.Query{Surface: surfaceBash, Value: q.Command}
	}
	if bad || len(q.Command) > len(c.text) || len(q.Tool) > protocol.MaxName || strings.ContainsRune(q.Tool, 0) {
		return `{"error":"this is no question about one command or one tool of the text"}`, nil
	}
	got, err := c.engine.check(ctx, query)
	if err != nil {
		return "", err
	}
	return brief.Data(struct {
		State   string `json:"state"`
		Pattern string `json:"matched_pattern"`
	}{got.State.String(), got.MatchedPattern})
}

// ask puts the text to the model, and holds what it says against the text.
func (c *judgement) ask(ctx context.Context) finding {
	q, err := c.question()
	switch {
	case errors.Is(err, errMasked):
		return failed(causeMasked, err)
	case errors.Is(err, brief.ErrTooLarge):
		return failed(causeTooLarge, err)
	case err != nil:
		return failed(causeUnreadable, err)
	}
	within, cancel := context.WithDeadline(ctx, c.modelDeadline())
	defer cancel()
	call, info, err := c.model.Ask(within, q)
	c.d.Put(info, err)
	c.d.Spent(info, err)
	c.journal.ModelReply(ctx, c.r, info, call)
	if err != nil {
		c.log.Warn("the model gave no decomposition; the ask goes on to the next judge", "ask", c.r.Ask.ID, "model", info.ModelID, "error", err)
		return failed(llm.Reason(err), err)
	}
	return c.hear(ctx, call)
}

func (c *judgement) modelDeadline() time.Time {
	own := time.Now().Add(c.set.Timeout)
	if gate := c.r.Deadline.Add(-answerTime); gate.Before(own) {
		return gate
	}
	return own
}

// said is the model's answer, of which nothing is believed.
type said struct {
	Commands []string `json:"commands"`
	Complete bool     `json:"complete"`
}

// hear makes a finding of what the model said. A command that the rules deny is
// denied, whatever else is true of the answer; an allow needs an answer that
// accounts for the whole text.
func (c *judgement) hear(ctx context.Context, call llm.ToolCall) finding {
	var s said
	if err := json.Unmarshal(call.Input, &s, json.RejectUnknownMembers(false)); err != nil || len(s.Commands) > maxPieces {
		return failed(causeMalformed, errors.New("the model's decomposition cannot be read"))
	}
	worst, err := c.denied(ctx, s.Commands)
	switch {
	case err != nil:
		return failed(causeQuery, err)
	case worst.state == protocol.ActionDeny:
		return c.weigh(worst)
	case !s.Complete:
		return deferred(causeIncomplete, "the model does not vouch for having found every command")
	}
	pieces, err := faithful(c.text, s.Commands)
	if err != nil {
		return deferred(causeUnfaithful, "%s", err)
	}
	return c.rule(ctx, pieces)
}

// denied looks for a command that the rules deny. Where it is known which
// commands a text runs, those count and no claim: a comment or a string is no
// command because somebody says so. Elsewhere it is what the model names and
// what stands in the text.
func (c *judgement) denied(ctx context.Context, claims []string) (ruling, error) {
	if pieces, err := cut(c.text, wide); err == nil {
		return c.engine.rule(ctx, pieces)
	}
	spoken := withoutComments(c.text)
	for _, command := range claims {
		command = strings.TrimSpace(command)
		if command == "" || !strings.Contains(spoken, command) {
			continue
		}
		got, err := c.engine.check(ctx, protocol.Query{Surface: surfaceBash, Value: command})
		if err != nil || got.State == protocol.ActionDeny {
			return ruled(command, got), err
		}
	}
	return ruling{}, nil
}

// withoutComments is a text without what a shell skips in it: a warning against
// a command in a comment is no reason to deny.
func withoutComments(text string) string {
	spans, ok := shell.Comments(text)
	if !ok {
		return text
	}
	slices.SortFunc(spans, func(a, b shell.Span) int { return a.Start - b.Start })
	var b strings.Builder
	last := 0
	for _, s := range spans {
		if s.Start >= last {
			b.WriteString(text[last:s.Start])
			last = s.End
		}
	}
	return b.String() + text[last:]
}

var _ link.Link = (*Judge)(nil).Judge
