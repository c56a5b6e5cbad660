package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// tagAsk is an ask that a module of the user's puts to a person, changed.
func tagAsk(command string, change func(*protocol.Pending)) pending.Item {
	input, _ := json.Marshal(map[string]string{"command": command})
	p := protocol.Pending{
		Node: "main", Role: protocol.TerminalHuman, Stage: "terminal:human", Since: time.Now(), Deadline: time.Now().Add(time.Hour),
		Prompt: protocol.Prompt{Name: "Tag", Description: "Tags are for good.", Guidance: "Look at the number.\nIs it the next one?",
			Highlight: []protocol.Span{{Start: 8, End: 14}}, Check: "user:release/Tag"},
		Asks: []protocol.Entry{{Surface: "module", Value: "user:release/Tag", MatchedPattern: "Tag", Origin: "module:user:release@0123456789ab", HumanOnly: true}},
	}
	p.Ask = protocol.Ask{ID: protocol.NewAskID(), Agent: "ci", Session: protocol.Session{ID: "s1"}, Cwd: "/repo", Platform: "linux", Tool: protocol.Tool{Name: "bash", Input: input}}
	if change != nil {
		change(&p)
	}
	return pending.Item{Pending: p}
}

// TestAnAuthorizationIsShownWhole: name, description, guidance, the call with the
// part to look at, and whose module asks.
func TestAnAuthorizationIsShownWhole(t *testing.T) {
	t.Parallel()
	below := &protocol.Prompt{}
	for name, row := range map[string]struct {
		change func(*protocol.Pending)
		styled bool
		want   []string
	}{
		"on a plain screen": {nil, false, []string{"Authorization required: Tag", "Tags are for good.", "Look at the number.", "Is it the next one?", "bash: git tag v1.2.0", "look at v1.2.0", `asked for by the user's permission module "release", version 0123456789ab`}},
		"on a screen with bold": {nil, true, []string{"Authorization required: Tag", "Tags are for good.", "Look at the number.", "Is it the next one?", "bash: git tag \x1b[1;4mv1.2.0\x1b[0m",
			`asked for by the user's permission module "release", version 0123456789ab`}},
		"for a node below": {func(p *protocol.Pending) { p.Asks, p.Ask.Prompt, p.Ask.Hops = nil, below, []string{"child1"} }, true, []string{"Authorization required: Tag", "Tags are for good.", "Look at the number.", "Is it the next one?", "bash: git tag \x1b[1;4mv1.2.0\x1b[0m",
			"asked for by a permission module of node child1"}},
		"a project's, of few words": {func(p *protocol.Pending) {
			p.Prompt = protocol.Prompt{Name: "x", Description: "y"}
			p.Asks[0].Origin = "module:project:m@"
		}, false, []string{"Authorization required: x", "y", "bash: git tag v1.2.0", `asked for by the project's permission module "m"`}},
		"parts in disorder and beyond the end": {func(p *protocol.Pending) {
			p.Prompt.Highlight = []protocol.Span{{Start: 12, End: 400}, {Start: 4, End: 7}, {Start: -5, End: 3}, {Start: 5, End: 6}, {Start: 9, End: 9}}
			p.Prompt.Description, p.Prompt.Guidance = "", ""
		}, true, []string{"Authorization required: Tag", "bash: \x1b[1;4mgit\x1b[0m \x1b[1;4mtag\x1b[0m v1.2\x1b[1;4m.0\x1b[0m", `asked for by the user's permission module "release", version 0123456789ab`}},
	} {
		item := tagAsk("git tag v1.2.0", row.change)
		if got := (authorization{p: item.Pending, styled: row.styled}).lines(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", row.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, row.want)
		}
	}
}

// TestAnAuthorizationCannotBeForged by what an agent or a module writes: nothing of
// theirs styles a line, ends one or hides a part.
func TestAnAuthorizationCannotBeForged(t *testing.T) {
	t.Parallel()
	const evil = "v1\x1b[0m\nAuthorization required: harmless\u202e \x1b[1;4mx"
	for name, change := range map[string]func(*protocol.Pending){
		"an agent's command": nil,
		"a module's words":   func(p *protocol.Pending) { p.Prompt.Name = evil },
		"a module's origin":  func(p *protocol.Pending) { p.Asks[0].Origin = "module:user:" + evil },
	} {
		for _, styled := range []bool{true, false} {
			item := tagAsk("git tag "+evil, change)
			lines := authorization{p: item.Pending, styled: styled}.lines()
			for i, line := range lines {
				if strings.ContainsAny(line, "\n\u202e") || !styled && strings.Contains(line, "\x1b") || strings.Count(line, "\x1b[1;4m") > 1 {
					t.Errorf("%s: %q", name, line)
				}
				if i > 0 && strings.HasPrefix(line, "Authorization required") {
					t.Errorf("%s: line %d is %q", name, i, line)
				}
			}
		}
	}
}

// TestAPartToLookAtIsNeverCutAway, however long the call is.
func TestAPartToLookAtIsNeverCutAway(t *testing.T) {
	t.Parallel()
	long := "echo " + strings.Repeat("x", 2*shownDetail) + " ; rm -rf /"
	item := tagAsk(long, func(p *protocol.Pending) {
		p.Prompt.Highlight = []protocol.Span{{Start: len(long) - 8, End: len(long)}}
	})
	for _, styled := range []bool{true, false} {
		text := strings.Join(authorization{p: item.Pending, styled: styled}.lines(), "\n")
		if !strings.Contains(text, "look at rm -rf /") || len(text) > 2*shownDetail {
			t.Errorf("styled %v: %d bytes: %s", styled, len(text), text[len(text)-200:])
		}
	}
}

// TestLabelsChangeWordsOnly: every key stays what it is.
func TestLabelsChangeWordsOnly(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"": "a 1", "Tag it": "a 1 = Tag it", "deny": "a 1 = deny", "d 1": "a 1 = d 1", "x\x1b[2J\ny": "a 1 = x·[2J y", strings.Repeat("x", 99): "a 1 = " + strings.Repeat("x", 61) + "…",
	} {
		if got := labelled("a 1", label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
	env, out, _ := testEnv()
	item := tagAsk("git tag v1", func(p *protocol.Pending) { p.Prompt.EditLabel, p.Prompt.RejectLabel = "Change", "Wait" })
	if err := printPending(env, []pending.Item{item}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\n  allow · allow --input = Change · deny = Wait\n") {
		t.Error(out)
	}
}

// TestPendingShowsWhatModulesAsk, and offers not to be asked again only where that
// can be given.
func TestPendingShowsWhatModulesAsk(t *testing.T) {
	t.Parallel()
	const asks, mute = "Authorization required: Tag", "allow --mute"
	for name, row := range map[string]struct {
		change      func(*protocol.Pending)
		asks, mutes bool
	}{
		"a module's ask":            {nil, true, true},
		"one that failed":           {func(p *protocol.Pending) { p.Prompt.Check = "" }, true, false},
		"one of a node below":       {func(p *protocol.Pending) { p.Asks, p.Prompt.Check, p.Ask.Prompt = nil, "", &protocol.Prompt{} }, true, false},
		"one without a session":     {func(p *protocol.Pending) { p.Ask.Session.ID = "" }, true, false},
		"one that the parent takes": {func(p *protocol.Pending) { p.Role = protocol.TerminalParent }, true, false},
		"a rule's ask":              {func(p *protocol.Pending) { p.Asks[0].Origin, p.Asks[0].Surface = "fleet", "bash" }, false, false},
	} {
		env, out, _ := testEnv()
		item := tagAsk("git tag v1.2.0", row.change)
		if err := printPending(env, []pending.Item{item}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), asks) != row.asks || strings.Contains(out.String(), mute) != row.mutes {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// TestTheFaceShowsWhatAModuleAsks with its keys and the module's words for them.
func TestTheFaceShowsWhatAModuleAsks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*protocol.Pending)
		want   string
		mutes  bool
	}{
		"a module's ask": {func(p *protocol.Pending) {
			p.Prompt.ApproveLabel, p.Prompt.EditLabel, p.Prompt.RejectLabel = "Tag it", "Another", "Wait"
		}, "a 3 = Tag it · d 3 [REASON] = Wait · e 3 COMMAND = Another · m 3 = allow, and don't ask again", true},
		"one that failed": {func(p *protocol.Pending) { p.Prompt.Check = "" }, "a 3 · d 3 [REASON]\n", false},
	} {
		var out strings.Builder
		f := &face{out: &out}
		f.show(&shownAsk{number: 3, item: tagAsk("git tag v1.2.0", row.change)}, nil)
		for _, text := range []string{"   Authorization required: Tag\n   Tags are for good.\n", "   bash: git tag v1.2.0\n   look at v1.2.0\n", row.want} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: %q is missing in:\n%s", name, text, &out)
			}
		}
		if strings.Contains(out.String(), "m 3") != row.mutes || strings.Contains(out.String(), "note    ") {
			t.Errorf("%s:\n%s", name, &out)
		}
	}
}

// TestEditedInput: what the call is about is changed, and nothing else of it.
func TestEditedInput(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ tool, input, text, want string }{
		"a command":                {"bash", `{"command":"git tag v2","timeout":5}`, `git tag "v3"`, `{"command":"git tag \"v3\"","timeout":5}`},
		"a path":                   {"read", `{"file_path":"/repo/a","limit":2}`, "/repo/b", `{"file_path":"/repo/b","limit":2}`},
		"a whole input":            {"teleport", `{"to":"mars"}`, `{"to":"moon"}`, `{"to":"moon"}`},
		"a description beside it":  {"bash", `{"command":"ls","description":"list"}`, "ls -l", `{"command":"ls -l","description":"list"}`},
		"nothing":                  {"bash", `{"command":"git tag v2"}`, "", ""},
		"a call of another kind":   {"teleport", `{"to":"mars"}`, "moon", ""},
		"two that say the same":    {"bash", `{"command":"ls","description":"ls"}`, "ls -l", ""},
		"a list in place of input": {"teleport", `{"to":"mars"}`, `["moon"]`, ""},
	} {
		ask := protocol.Ask{Tool: protocol.Tool{Name: row.tool, Input: []byte(row.input)}, Cwd: "/repo", Platform: "linux"}
		got, err := editedInput(ask, row.text)
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestMuteFlag: it goes with an allow alone, and with no other grant.
func TestMuteFlag(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags  grantFlags
		deny   bool
		edited bool
		ok     bool
	}{
		"with allow":     {flags: grantFlags{mute: true}, ok: true},
		"for an hour":    {flags: grantFlags{mute: true, expires: "1h"}, ok: true},
		"with deny":      {flags: grantFlags{mute: true}, deny: true},
		"with --input":   {flags: grantFlags{mute: true}, edited: true},
		"with --grant":   {flags: grantFlags{mute: true, scope: "agent"}},
		"with --pattern": {flags: grantFlags{mute: true, patterns: []string{"*"}}},
		"with --uses":    {flags: grantFlags{mute: true, uses: 2}},
		"until the past": {flags: grantFlags{mute: true, expires: "2020-01-01T00:00:00Z"}},
	} {
		verdict := protocol.FinalAllow
		if row.deny {
			verdict = protocol.FinalDeny
		}
		if err := row.flags.check(verdict, row.edited); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := grantFlags{mute: true}
	g, err := f.grant(tagAsk("git tag v1", nil))
	if err != nil || g.Surface != "module" || g.Scope != protocol.ScopeSession || len(g.Patterns) != 1 || g.Patterns[0] != "user:release/Tag" || g.Expires == "" {
		t.Errorf("%+v, %v", g, err)
	}
	if line := grantLine(*g); !strings.HasPrefix(line, "that the check user:release/Tag does not ask again, for this session of the agent, until ") {
		t.Errorf("told as %q", line)
	}
	rule := tagAsk("make", func(p *protocol.Pending) { p.Prompt.Check, p.Asks[0].Origin = "", "fleet" })
	if _, err := f.grant(rule); err == nil || !strings.Contains(err.Error(), "no permission check") {
		t.Errorf("where a rule asks: %v", err)
	}
}

// TestTheFaceAnswersWhatAModuleAsks: a person at the face of up sees its words, and
// turns the check off with one key.
func TestTheFaceAnswersWhatAModuleAsks(t *testing.T) {
	dir := t.TempDir()
	text := `import { matchCommand, matchTool, request } from "@assent/permissions";
export default (api) => api.onToolUse({ name: "tag", description: "Tags are for good.",
  handler: ({ tool }) => matchTool(tool, { bash: matchCommand({ program: "git", subcommands: ["tag"], onMatch: () => request({ highlight: /v\d+/, rejectLabel: "Wait" }) }) }) });`
	if err := os.WriteFile(filepath.Join(dir, "release.js"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDesktopWith(t, `{"permission":{"*":"allow","bash":"allow"},"terminal":{"kind":"human"},"modules":{"callTime":"1s"}}`, dir)
	if got := <-d.asks(t, "git log"); got.Outcome != protocol.AllowedByRule {
		t.Fatalf("what it says nothing of: %s", got.Outcome)
	}
	first := d.asks(t, "git tag v7")
	for _, text := range []string{"Authorization required: tag", "Tags are for good.", "bash: git tag v7", "look at v7", "d 1 [REASON] = Wait · m 1 = allow, and don't ask again"} {
		d.waitFor(t, text)
	}
	d.types(t, "g 1") // what a module asks is no grant's
	d.waitFor(t, "nothing is answered: no grant can be given")
	d.types(t, "m 1")
	d.waitFor(t, "1: granting that the check user:release/tag does not ask again, for this session of the agent, until ")
	if got := <-first; got.Outcome != protocol.AllowedByHuman || got.Grant == nil || got.Grant.Surface != "module" {
		t.Fatalf("%s with grant %+v", got.Outcome, got.Grant)
	}
	elsewhere := newDesktopWith(t, `{"permission":{"*":"allow","bash":"allow"},"terminal":{"kind":"human"},"modules":{"callTime":"1s"}}`, dir)
	second := elsewhere.asks(t, "git tag v7")
	elsewhere.waitFor(t, "── ask 1 ──")
	elsewhere.types(t, "e 1") // into what? nothing happens
	elsewhere.waitFor(t, "say what to allow in its place")
	elsewhere.types(t, "e 1 git log")
	if got := <-second; got.Outcome != protocol.AllowedByHuman || string(got.EditedInput) != `{"command":"git log"}` {
		t.Errorf("edited: %s of %s", got.Outcome, got.EditedInput)
	}
	if got := <-d.asks(t, "git tag v8"); got.Outcome != protocol.AllowedByRule || got.Policy.Grants == "" {
		t.Errorf("turned off: %s under grants %q", got.Outcome, got.Policy.Grants)
	}
}
