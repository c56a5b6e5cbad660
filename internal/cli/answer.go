package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/pkg/protocol"
)

// outcomeWait is how long `assent answer` listens for what became of an
// accepted answer: the rules of this moment may still refuse.
const outcomeWait = 3 * time.Second

// answerFlags are the flags of `assent answer`.
type answerFlags struct {
	target              target
	reason, note, input string
	abort, json         bool
}

// Answer answers one pending ask.
func Answer(env *Env) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer ASK allow|deny",
		Short: "Answer an ask that waits for a person",
		Long: `Answers one pending ask. The first answer stands; a later one is told who was first.
An allow is for this call alone. The rules of this moment are asked once more before it
is recorded, also for an edited input: a deny of the rules wins over any answer.

Exit 0: the answer stands. Exit 3: it does not; the reason is on stderr.`,
		Example: `  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 deny --reason "push to a branch and open a pull request"
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow --input '{"command":"git push origin HEAD:wip"}'`,
		Args: exactArgs("ASK", "allow|deny"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.answer(args[0], args[1])
			if err != nil {
				return err
			}
			return withDesk(cmd, env, f.target, func(d *desk.Desk) error { return sendAnswer(cmd.Context(), env, d, a, f.json) })
		},
	}
	f.target.flags(cmd.Flags())
	fl := cmd.Flags()
	fl.StringVar(&f.reason, "reason", "", "why, for the agent and the record")
	fl.StringVar(&f.note, "note", "", "a word to the agent beside the reason")
	fl.StringVar(&f.input, "input", "", "allow with this tool input (a JSON object) instead of the agent's; '@FILE' reads it")
	fl.BoolVar(&f.abort, "abort", false, "with deny: tell the agent to stop altogether")
	fl.BoolVar(&f.json, "json", false, "print the receipt as JSON")
	return cmd
}

func (f answerFlags) answer(id, word string) (protocol.Answer, error) {
	a := protocol.Answer{Ask: id, Reason: f.reason, Note: f.note, Abort: f.abort}
	if err := protocol.CheckAskID(id); err != nil {
		return a, usagef("%w: see `assent pending`", err)
	}
	if err := a.Verdict.UnmarshalText([]byte(word)); err != nil {
		return a, usagef("%w", err)
	}
	if f.input == "" {
		return a, nil
	}
	var err error
	a.EditedInput, err = objectFlag("--input", f.input)
	return a, err
}

// objectFlag reads a flag's value as a JSON object, or the file that '@' names.
func objectFlag(flag, value string) (jsontext.Value, error) {
	text := []byte(value)
	if file, ok := strings.CutPrefix(value, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	object := jsontext.Value(text)
	if !object.IsValid() || object.Kind() != '{' {
		return nil, usagef("%s %s: want one JSON object, as '{\"command\":\"git push\"}'", flag, protocol.Safe(value, 80, false))
	}
	return object, nil
}

func sendAnswer(ctx context.Context, env *Env, d *desk.Desk, a protocol.Answer, asJSON bool) error {
	closed, stop := d.Closing(ctx, a.Ask)
	defer stop()
	r, err := d.Answer(ctx, a)
	if err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(env, &r); err != nil {
			return err
		}
	}
	if !r.Accepted {
		return &exitError{code: ExitDenied, err: fmt.Errorf("the answer does not stand: %s", protocol.Safe(r.Error, 500, false))}
	}
	if asJSON {
		return nil
	}
	select {
	case o := <-closed:
		return tellOutcome(env, a, o)
	case <-time.After(outcomeWait):
		fmt.Fprintf(env.Stdout, "%s: the answer is stored and will be carried out (see `assent log %s`)\n", a.Ask, a.Ask)
		return nil
	}
}

// tellOutcome says what became of an accepted answer.
func tellOutcome(env *Env, a protocol.Answer, o protocol.Outcome) error {
	if a.Verdict == protocol.FinalAllow && o != protocol.AllowedByHuman {
		return &exitError{code: ExitDenied, err: fmt.Errorf("%s was not allowed after all: %s (see `assent log %s`)", a.Ask, o, a.Ask)}
	}
	fmt.Fprintf(env.Stdout, "%s: %s\n", a.Ask, o)
	return nil
}
