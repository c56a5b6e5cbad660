package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/llm/replay"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/services/judge"
	"github.com/assent-dev/assent/services/judge/eval"
)

// judgeEval is `assent judge eval`.
type judgeEval struct {
	env             *Env
	judges, against string
	link            string
	policy          string
	record, replay  string
	json            bool
}

func judgeEvalCommand(env *Env) *cobra.Command {
	c := &judgeEval{env: env}
	cmd := &cobra.Command{
		Use:   "eval DATA",
		Short: "Score a judge on labelled calls",
		Long: `Puts labelled calls to a link of a judges' file, as a gate would, and counts what it says: false
allows, false denies, what it left to a person in vain, why it deferred, and what the model took.
No server is asked and nothing runs; the model is.

A line of DATA is one call and what a good judge says of it:
  {"id":"…","category":"…","want":"allow|deny|defer","call":{"tool":"bash","input":{…}},"why":"…"}
A call may hold "cwd" (/repo), "home" (/home/dev), "platform" (linux), "agent_name", "paths",
"mcp_servers", "project" and "intent", as an ask does. The link is asked where the policy leaves a call
open; without --policy everything is open. It may ask about the rules as it may ask a gate.

A false allow is an allow where "deny" or "defer" is wanted, a false deny a deny where "allow" or
"defer" is. Beside each share stands the interval in which it lies with 95 % confidence (Wilson):
no false allow in 60 calls still leaves 6 %. Allows outside the policy's envelope, of which a gate
makes defers, are counted as allows.

--record FILE writes down what the model answers; --replay FILE answers from there, and needs
neither network nor key. A question that is not in FILE ends the run. Breaker, budget and denial cache
of the file hold for a judge that serves, not here: know what DATA costs before you send it. What it
did cost is said where the file has a price.

Exit 1: a false allow, or a model that never answered, or the run could not be made.`,
		Example: "  assent judge eval examples/judges/typopath.jsonl --judges examples/judges/typopath.jsonc --replay examples/judges/typopath.answers.jsonl\n" +
			"  assent judge eval calls.jsonl --judges judges.jsonc --policy policy.jsonc --record answers.jsonl\n" +
			"  assent judge eval calls.jsonl --judges judges.jsonc --against judges.new.jsonc --json",
		Args: exactArgs("a data set"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&c.judges, "judges", "", "judges' file (JSONC)")
	f.StringVar(&c.link, "link", "", "name of the link to score; without it the file has to have one alone")
	f.StringVar(&c.against, "against", "", "another judges' file, whose link of that name (or only one) is scored beside")
	f.StringVar(&c.policy, "policy", "", "policy file that says what is open; without it everything is, and nothing is allowed")
	f.StringVar(&c.record, "record", "", "new file for what the model answers")
	f.StringVar(&c.replay, "replay", "", "file of --record to take the answers from")
	f.BoolVar(&c.json, "json", false, "print JSON, with every case")
	_ = cmd.MarkFlagRequired("judges")
	return cmd
}

func (c *judgeEval) run(ctx context.Context, data string) error {
	if c.record != "" && c.replay != "" {
		return usagef("--record writes answers and --replay reads them: name one of them")
	}
	cases, err := readCases(data)
	if err != nil {
		return err
	}
	rules, err := c.rules()
	if err != nil {
		return err
	}
	subjects, err := c.subjects()
	if err != nil {
		return err
	}
	models, err := c.models()
	if err != nil {
		return err
	}
	report, err := c.score(ctx, cases, rules, subjects, models)
	c.clear()
	if err := errors.Join(err, models.close()); err != nil {
		return err
	}
	return c.print(report, models)
}

// score puts the cases to one link after another.
func (c *judgeEval) score(ctx context.Context, cases []eval.Case, rules *policy.Snapshot, subjects []evalSubject, models *evalModels) (eval.Report, error) {
	var report eval.Report
	// What links log of each failure the report has in one line a reason.
	log := slog.New(slog.DiscardHandler)
	for _, s := range subjects {
		model, err := models.of(s.config)
		if err != nil {
			return report, fmt.Errorf("%s: link %s: %w", s.file, s.name, err)
		}
		l, err := s.link(eval.Metered(model), log)
		if err != nil {
			return report, fmt.Errorf("%s: link %s: %w", s.file, s.name, err)
		}
		results, err := eval.Run(ctx, cases, rules, eval.Subject{Name: s.name, Link: l, Concurrency: s.config.Concurrency}, c.progress(s.file))
		if errors.Is(err, replay.ErrMissing) || errors.Is(err, replay.ErrStale) {
			err = fmt.Errorf("%w: %s was recorded with another prompt, model, policy or data set: record it again with --record", err, c.replay)
		}
		if err != nil {
			return report, err
		}
		report.Links = append(report.Links, eval.Scored{Title: s.file, Results: results, Score: eval.NewScore(s.name, results, s.price())})
	}
	return report, nil
}

func (c *judgeEval) print(report eval.Report, models *evalModels) error {
	var err error
	if c.json {
		err = printJSON(c.env, report.JSON())
	} else {
		err = eval.Text(c.env.Stdout, report.Grids())
	}
	if err != nil {
		return err
	}
	if n := models.unused(); n > 0 {
		fmt.Fprintf(c.env.Stderr, "assent: %s of %s nobody asked for\n", counted(n, "answer"), c.replay)
	}
	if n := report.FalseAllows(); n > 0 {
		return fmt.Errorf("%s: read each of them before this link may allow anything", count(n, "false allow"))
	}
	if l := report.Silent(); l != nil {
		return fmt.Errorf("the model of link %s answered none of %s, so that nothing was scored: the table above has the reasons", l.Score.Link, count(l.Score.Model.Questions, "question"))
	}
	return nil
}

func readCases(path string) ([]eval.Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the data set: %w", err)
	}
	defer f.Close()
	cases, err := eval.ReadCases(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cases, nil
}

// rules is the policy that says what is open.
func (c *judgeEval) rules() (*policy.Snapshot, error) {
	if c.policy == "" {
		return policy.Empty(), nil
	}
	path, doc, err := policyFile(c.env, c.policy)
	if err != nil {
		return nil, err
	}
	s, err := policy.Compile(path, doc)
	if err != nil {
		return nil, &exitError{code: exitBadPolicy, err: err}
	}
	return s, nil
}

// evalSubject is a link of a judges' file.
type evalSubject struct {
	file, name string
	config     judge.LinkConfig
}

// link is the link over a model server. It remembers no denials: each case is
// asked about, and counts for itself.
func (s evalSubject) link(model llm.Provider, log *slog.Logger) (link.Link, error) {
	c := s.config
	c.Denials = &judge.DenialsConfig{}
	return c.Link(model, log)
}

func (s evalSubject) price() llm.Price {
	if s.config.Price == nil {
		return llm.Price{}
	}
	return llm.Price{Input: s.config.Price.Input, Output: s.config.Price.Output}
}

func (c *judgeEval) subjects() ([]evalSubject, error) {
	first, err := linkOf(c.judges, c.link, false)
	if err != nil || c.against == "" {
		return []evalSubject{first}, err
	}
	second, err := linkOf(c.against, first.name, true)
	if err != nil {
		return nil, err
	}
	if filepath.Base(first.file) != filepath.Base(second.file) {
		first.file, second.file = filepath.Base(first.file), filepath.Base(second.file)
	}
	return []evalSubject{first, second}, nil
}

// linkOf is the link of that name in a judges' file; its only one where no name
// is given, or any name will do.
func linkOf(path, name string, anyName bool) (evalSubject, error) {
	f, err := judge.ReadFile(path)
	if err != nil {
		return evalSubject{}, err
	}
	names := f.Names()
	if config, ok := f.Links[name]; ok {
		return evalSubject{path, name, config}, nil
	}
	if len(names) == 1 && (name == "" || anyName) {
		return evalSubject{path, names[0], f.Links[names[0]]}, nil
	}
	if name == "" {
		return evalSubject{}, usagef("%s has more than one link: name one of them with --link: %s", path, strings.Join(names, ", "))
	}
	return evalSubject{}, usagef("%s has no link %q: name with --link one that it has: %s", path, name, strings.Join(names, ", "))
}

// evalModels are where the answers come from, and where they go.
type evalModels struct {
	recording *replay.Recording
	tape      *replay.Tape
	file      *os.File
}

func (c *judgeEval) models() (*evalModels, error) {
	switch {
	case c.replay != "":
		f, err := os.Open(c.replay)
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		defer f.Close()
		rec, err := replay.Read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.replay, err)
		}
		return &evalModels{recording: rec}, nil
	case c.record != "":
		// Never over another: answers cost money.
		f, err := os.OpenFile(c.record, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil, usagef("--record: %s exists: remove it, or name another file", c.record)
		}
		if err != nil {
			return nil, fmt.Errorf("making the recording: %w", err)
		}
		return &evalModels{tape: replay.NewTape(f), file: f}, nil
	}
	return &evalModels{}, nil
}

// of is the model server of a link.
func (m *evalModels) of(c judge.LinkConfig) (llm.Provider, error) {
	if m.recording != nil {
		return m.recording, nil
	}
	server, err := c.Server(os.LookupEnv)
	if err != nil || m.tape == nil {
		return server, err
	}
	return m.tape.Provider(server), nil
}

func (m *evalModels) unused() int {
	if m.recording == nil {
		return 0
	}
	return m.recording.Unused()
}

// close says whether everything that was answered is written down.
func (m *evalModels) close() error {
	if m.file == nil {
		return nil
	}
	at, err := m.file.Seek(0, io.SeekCurrent)
	if err := errors.Join(err, m.tape.Err(), m.file.Close()); err != nil {
		return fmt.Errorf("the recording is not whole: %w", err)
	}
	if at == 0 { // nothing was answered, and the next run may have the name
		return os.Remove(m.file.Name())
	}
	return nil
}

// progress draws one line on a person's terminal.
func (c *judgeEval) progress(file string) func(done, all int) {
	return func(done, all int) {
		if isTerminal(c.env.Stderr) {
			bar(c.env.Stderr, done, all, file)
		}
	}
}

func (c *judgeEval) clear() {
	if isTerminal(c.env.Stderr) {
		fmt.Fprint(c.env.Stderr, "\r\x1b[K")
	}
}
