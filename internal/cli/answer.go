package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// outcomeWait is how long `assent answer` listens for what became of an
// accepted answer: the rules of this moment may still refuse.
const outcomeWait = 10 * time.Second

// answerFlags are the flags of `assent answer`.
type answerFlags struct {
	target              target
	reason, note, input string
	abort, json         bool
	grant               grantFlags
}

// Answer answers one pending ask.
func Answer(env *Env) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer ASK allow|deny",
		Short: "Answer an ask that waits for a person",
		Long: `Answers one pending ask, named by its id, or by at least six of its first or last characters where
they fit one pending ask alone. The first answer stands; a later one is told who was first.
An allow is for this call alone, unless --grant remembers it: calls of the same agent that match the
pattern are then allowed where the rules ask, those that wait already too: like asks are one answer.
'session' is this session alone, so one subagent; 'tree' is every session of the agent under the same
root. What is granted is printed before it is sent; it is
the suggestion of 'assent pending', or what --pattern says, which must match the call that you
answer and name its program, folder or server. What of the call it does not cover, and so will be
asked about again, is said beside it. A deny of the rules, a call that cannot be proven harmless and what is for a person alone
are never granted. 'assent grants' lists and revokes.
--mute is "don't ask again": the permission check that asks for this call is turned off for the rest of the agent's
session, 8 hours at most. It clears nothing else, and what the check blocks stays blocked.

The rules of this moment are asked once more before an answer is recorded, also for an edited
input: a deny of the rules wins over any answer.

Exit 0: the answer stands. Exit 3: it does not; the reason is on stderr.`,
		Example: `  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 deny --reason "push to a branch and open a pull request"
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow --grant session
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow --grant project --pattern 'git push origin *' --expires 2h --uses 5
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow --mute
  assent answer 01KBB2X0G6Y3N2M4P5Q6R7S8T9 allow --input '{"command":"git push origin HEAD:wip"}'`,
		Args: exactArgs("ASK", "allow|deny"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.answer(args[0], args[1])
			if err != nil {
				return err
			}
			return withDesk(cmd, env, f.target, func(d *desk.Desk) (err error) {
				if a.Ask, err = pendingID(cmd.Context(), d, a.Ask); err != nil {
					return err
				}
				if f.grant.given() {
					if a.Grant, err = f.granting(cmd.Context(), env, d, a.Ask); err != nil {
						return err
					}
				}
				return sendAnswer(cmd.Context(), env, d, a, f.json)
			})
		},
	}
	f.target.flags(cmd.Flags())
	fl := cmd.Flags()
	fl.StringVar(&f.reason, "reason", "", "why, for the agent and the record")
	fl.StringVar(&f.note, "note", "", "a word to the agent beside the reason")
	fl.StringVar(&f.input, "input", "", "allow with this tool input (a JSON object) instead of the agent's; '@FILE' reads it")
	f.grant.flags(fl)
	fl.BoolVar(&f.abort, "abort", false, "with deny: tell the agent to stop altogether")
	fl.BoolVar(&f.json, "json", false, "print the receipt as JSON")
	return cmd
}

func (f answerFlags) answer(id, word string) (protocol.Answer, error) {
	a := protocol.Answer{Reason: f.reason, Note: f.note, Abort: f.abort}
	var err error
	if a.Ask, err = typedID(id); err != nil {
		return a, usagef("%w: see `assent pending`", err)
	}
	if err := a.Verdict.UnmarshalText([]byte(word)); err != nil {
		return a, usagef("say allow or deny, not %q", protocol.Safe(word, 40, false))
	}
	switch {
	case f.abort && a.Verdict != protocol.FinalDeny:
		return a, usagef("--abort goes with deny: it tells the agent to stop altogether")
	case f.input != "" && a.Verdict != protocol.FinalAllow:
		return a, usagef("--input goes with allow: it is what the agent may do instead")
	}
	if err := f.grant.check(a.Verdict, f.input != ""); err != nil || f.input == "" {
		return a, err
	}
	a.EditedInput, err = objectFlag("--input", f.input)
	return a, err
}

// granting is the grant to send with an answer, told before it is sent.
func (f answerFlags) granting(ctx context.Context, env *Env, d *desk.Desk, id string) (*protocol.Grant, error) {
	items, err := d.Pending(ctx)
	i := slices.IndexFunc(items, func(i pending.Item) bool { return i.Ask.ID == id })
	if i < 0 {
		return nil, cmp.Or(err, fmt.Errorf("%s is not pending any more: see `assent log %s`", id, id))
	}
	g, err := f.grant.grant(items[i])
	if err != nil {
		return nil, err
	}
	out := env.Stdout
	if f.json {
		out = env.Stderr
	}
	fmt.Fprintf(out, "%s: granting %s\n", id, grantLine(*g))
	for _, line := range leftLines(items[i], *g) {
		fmt.Fprintf(out, "%s: %s\n", id, line)
	}
	return g, nil
}

// objectFlag reads a flag's value as a JSON object, or the file that '@' names.
func objectFlag(flag, value string) (jsontext.Value, error) {
	text := []byte(value)
	if file, ok := strings.CutPrefix(value, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, usagef("%s: %w: name a file that holds the JSON object, or give it itself", flag, err)
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
		return &exitError{code: ExitDenied, err: fmt.Errorf("the answer does not stand: %s%s", protocol.Safe(r.Error, 500, false), whoWasFirst(r))}
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

// whoWasFirst names whoever decided before this answer.
func whoWasFirst(r protocol.AnswerReceipt) string {
	if r.AnsweredBy == "" {
		return ""
	}
	text := " (" + r.AnsweredBy + " was first"
	if r.Verdict.Valid() {
		text += ": " + r.Verdict.String()
	}
	if !r.At.IsZero() {
		text += " at " + moment(r.At)
	}
	return text + ")"
}

// pendingID completes an id that was typed in part, from what is pending.
func pendingID(ctx context.Context, d *desk.Desk, id string) (string, error) {
	if protocol.CheckAskID(id) == nil {
		return id, nil
	}
	items, err := d.Pending(ctx)
	if len(items) == 0 && err != nil {
		return "", err
	}
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.Ask.ID
	}
	return oneID(id, ids, "pending: see `assent pending`")
}

// leastID is how much of an id has to be typed, in characters.
const leastID = 6

// typedID reads an ask id, or a part of one, as people type it: letters of
// either case.
func typedID(text string) (string, error) {
	id := strings.ToUpper(text)
	if protocol.CheckAskID(id) == nil {
		return id, nil
	}
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(id) < leastID || len(id) >= len(protocol.NewAskID()) || strings.Trim(id, alphabet) != "" {
		return "", fmt.Errorf("%q is no ask id: want a ULID of 26 characters, or at least %d of its first or last ones", protocol.Safe(text, 80, false), leastID)
	}
	return id, nil
}

// oneID is the one of ids that begins or ends with part. where says what was
// looked through.
func oneID(part string, ids []string, where string) (string, error) {
	var fits []string
	for _, id := range ids {
		if strings.HasPrefix(id, part) || strings.HasSuffix(id, part) {
			fits = append(fits, id)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return "", fmt.Errorf("no id that begins or ends with %s is %s", part, where)
	default:
		return "", usagef("%s fits %d asks, name one of them: %s", part, len(fits), strings.Join(fits[:min(len(fits), 10)], ", "))
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
