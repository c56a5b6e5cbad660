package protocol

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func subjectsOf(tb testing.TB, node string) Subjects {
	tb.Helper()
	s, err := NewSubjects(node)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// built is one concrete subject of each builder, with what it must parse to.
type built struct {
	name  string
	build func(s Subjects, token string) (string, error)
	text  string
	kind  Kind
	// tokens are those after the kind; "" stands for the token handed in.
	tokens []string
}

func builders() []built {
	return []built{
		{"ask", Subjects.Ask, "assent.v1.main.ask.ci-42", KindAsk, []string{""}},
		{"cancel", Subjects.Cancel, "assent.v1.main.cancel.ci-42", KindCancel, []string{""}},
		{"project", Subjects.Project, "assent.v1.main.project.ci-42", KindProject, []string{""}},
		{"relay", Subjects.Relay, "assent.v1.main.relay.ci-42", KindRelay, []string{""}},
		{"confirm", Subjects.Confirm, "assent.v1.main.confirm.ci-42", KindConfirm, []string{""}},
		{"withdraw", Subjects.Withdraw, "assent.v1.main.withdraw.ci-42", KindWithdraw, []string{""}},
		{"link", Subjects.Link, "assent.v1.main.link.ci-42", KindLink, []string{""}},
		{"worker, its link", func(s Subjects, t string) (string, error) { return s.Worker(t, "w1") },
			"assent.v1.main.worker.ci-42.w1", KindWorker, []string{"", "w1"}},
		{"worker, its own name", func(s Subjects, t string) (string, error) { return s.Worker("l1", t) },
			"assent.v1.main.worker.l1.ci-42", KindWorker, []string{"l1", ""}},
		{"terminal", Subjects.Terminal, "assent.v1.main.terminal.ci-42", KindTerminal, []string{""}},
		{"event", Subjects.Event, "assent.v1.main.event.ci-42", KindEvent, []string{""}},
		{"query, its gate", func(s Subjects, t string) (string, error) { return s.Query(t, "cap1") },
			"assent.v1.main.query.ci-42.cap1", KindQuery, []string{"", "cap1"}},
		{"query, its capability", func(s Subjects, t string) (string, error) { return s.Query("g1", t) },
			"assent.v1.main.query.g1.ci-42", KindQuery, []string{"g1", ""}},
		{"log, its gate", func(s Subjects, t string) (string, error) { return s.Log(t, "cap1") },
			"assent.v1.main.log.ci-42.cap1", KindLog, []string{"", "cap1"}},
		{"log, its capability", func(s Subjects, t string) (string, error) { return s.Log("g1", t) },
			"assent.v1.main.log.g1.ci-42", KindLog, []string{"g1", ""}},
		{"answer", func(s Subjects, t string) (string, error) { return s.Answer(t, askID) },
			"assent.v1.main.answer.ci-42." + askID, KindAnswer, []string{"", askID}},
		{"decision", func(s Subjects, t string) (string, error) { return s.Decision(askID, t, "bash", FinalDeny) },
			"assent.v1.main.decision." + askID + ".ci-42.bash.deny", KindDecision, []string{askID, "", "bash", "deny"}},
		{"review", func(s Subjects, t string) (string, error) { return s.Review(askID, t) },
			"assent.v1.main.review." + askID + ".ci-42", KindReview, []string{askID, ""}},
	}
}

// badTokens are names that would address somebody else, or nobody.
var badTokens = map[string]string{
	"nothing": "", "a blank": " ", "a blank within": "a b", "a blank after": "a ", "a tab": "a\tb", "a line break": "a\nb", "a carriage return": "a\r",
	"a NUL": "a\x00", "one level's wildcard": "*", "a wildcard within": "a*", "every level's wildcard": ">", "a wildcard after": "a>",
	"a dollar": "$JS", "a slash": "a/b", "a colon": "a:b", "a percent": "%41",
	"65 bytes": strings.Repeat("a", 65), "an accent": "é", "a Cyrillic look-alike": "аgent", "an invisible character": "a\u200bb",
	"a full-width dot": "a\uff0eb", "invalid UTF-8": "a\xff",
}

var goodTokens = []string{
	"a", "Z", "0", "-", "_", "main", "ci-42", "g_7", "UPPER", "lower", "a-b_c-d", "__", "--", "v1", "assent", "ask", "deny", "null", "other", "true",
	askID, strings.Repeat("a", 64), strings.Repeat("-", 64),
}

func TestSubjectsRoundTrip(t *testing.T) {
	subjects := subjectsOf(t, "main")
	for _, b := range builders() {
		if got, err := b.build(subjects, "ci-42"); err != nil || got != b.text {
			t.Errorf("%s: %q, %v, want %q", b.name, got, err, b.text)
		}
		for _, token := range goodTokens {
			text, err := b.build(subjects, token)
			if err != nil {
				t.Errorf("%s of %q: %v", b.name, token, err)
				continue
			}
			got, err := ParseSubject(text)
			if err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
			want := Subject{Node: "main", Kind: b.kind, Tokens: slices.Clone(b.tokens)}
			want.Tokens[slices.Index(want.Tokens, "")] = token
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-built +parsed):\n%s", text, d)
			}
		}
	}
}

func TestBuildersRefuseBadTokens(t *testing.T) {
	subjects := subjectsOf(t, "main")
	for name, token := range badTokens {
		if ValidToken(token) {
			t.Errorf("%s: a token", name)
		}
		if got := TokenOr(token); got != OtherToken {
			t.Errorf("%s: TokenOr = %q", name, got)
		}
		if _, err := NewSubjects(token); !errors.Is(err, ErrToken) {
			t.Errorf("%s as a node: %v", name, err)
		}
		for _, b := range builders() {
			if got, err := b.build(subjects, token); !errors.Is(err, ErrToken) || got != "" {
				t.Errorf("%s in %s: %q, %v", name, b.name, got, err)
			}
		}
	}
	for _, b := range builders() {
		if b.kind == KindReview {
			continue // a dot splits an event's name, as it should
		}
		if got, err := b.build(subjects, "a.b"); !errors.Is(err, ErrToken) || got != "" {
			t.Errorf("a dot in %s: %q, %v", b.name, got, err)
		}
	}
	for _, token := range goodTokens {
		if !ValidToken(token) || TokenOr(token) != token {
			t.Errorf("%q is no token", token)
		}
	}
}

// TestZeroSubjectsBuildNone: a builder that nobody gave a node addresses nobody.
func TestZeroSubjectsBuildNone(t *testing.T) {
	for _, b := range builders() {
		if got, err := b.build(Subjects{}, "ci-42"); !errors.Is(err, ErrToken) || got != "" {
			t.Errorf("%s: %q, %v", b.name, got, err)
		}
	}
}

func TestBuildersRefuseWhatIsNoAsk(t *testing.T) {
	s := subjectsOf(t, "main")
	for _, id := range []string{"", "x", strings.ToLower(askID), askID + "0", "*", ">", askID[:25] + "."} {
		for name, build := range map[string]func() (string, error){
			"answer":      func() (string, error) { return s.Answer("oncall-1", id) },
			"decision":    func() (string, error) { return s.Decision(id, "ci-42", "bash", FinalDeny) },
			"decision of": func() (string, error) { return s.DecisionOf(id) },
			"review":      func() (string, error) { return s.Review(id, "gate_error") },
		} {
			if got, err := build(); !errors.Is(err, ErrAskID) || got != "" {
				t.Errorf("%s of %q: %q, %v", name, id, got, err)
			}
		}
	}
	for _, r := range []FinalChoice{0, FinalChoice(ChoiceDefer), 255} {
		if got, err := s.Decision(askID, "ci-42", "bash", r); !errors.Is(err, ErrEnum) || got != "" {
			t.Errorf("decision with result %d: %q, %v", r, got, err)
		}
	}
}

func TestDecisionWritesASurfaceThatIsNoTokenAsOther(t *testing.T) {
	s := subjectsOf(t, "main")
	for surface, want := range map[string]string{"bash": "bash", "external_directory": "external_directory", "": "other", "mcp/exa.search": "other",
		"*": "other", ">": "other", "поиск": "other", strings.Repeat("a", 65): "other", "a b": "other"} {
		got, err := s.Decision(askID, "ci-42", surface, FinalAllow)
		if err != nil || got != "assent.v1.main.decision."+askID+".ci-42."+want+".allow" {
			t.Errorf("%q: %q, %v", surface, got, err)
		}
	}
}

// TestDecisionsOnNamesOneAgentAlone: a name that is a wildcard names nobody.
func TestDecisionsOnNamesOneAgentAlone(t *testing.T) {
	s := subjectsOf(t, "main")
	if got, err := s.DecisionsOn("ci-42"); err != nil || got != "assent.v1.main.decision.*.ci-42.>" {
		t.Errorf("%q, %v", got, err)
	}
	for _, agent := range []string{"", "*", ">", "ci.42", strings.Repeat("a", 65)} {
		if got, err := s.DecisionsOn(agent); !errors.Is(err, ErrToken) || got != "" {
			t.Errorf("%q: %q, %v", agent, got, err)
		}
	}
}

// TestPatterns: what is subscribed to matches what is built and is itself no
// concrete subject.
func TestPatterns(t *testing.T) {
	s := subjectsOf(t, "main")
	must := func(p string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	patterns := []string{must(s.DecisionOf(askID)), must(s.Queries("g1")), must(s.Logs("g1"))}
	for _, b := range builders() {
		concrete, err := b.build(s, "ci-42")
		if err != nil {
			t.Fatal(err)
		}
		all := s.All(b.kind)
		patterns = append(patterns, all)
		if !subjectMatches(all, concrete) {
			t.Errorf("%s does not match %s", all, concrete)
		}
		if other, _ := b.build(subjectsOf(t, "main2"), "ci-42"); subjectMatches(all, other) {
			t.Errorf("%s matches another node's %s", all, other)
		}
	}
	for _, p := range patterns {
		if got, err := ParseSubject(p); !errors.Is(err, ErrSubject) {
			t.Errorf("%s parses as %v", p, got)
		}
	}
	for pattern, concrete := range map[string]string{
		patterns[0]: must(s.Decision(askID, "ci-42", "bash", FinalAllow)),
		patterns[1]: must(s.Query("g1", "c")),
		patterns[2]: must(s.Log("g1", "c")),
	} {
		if !subjectMatches(pattern, concrete) {
			t.Errorf("%s does not match %s", pattern, concrete)
		}
	}
	if other := must(s.Decision(otherID, "ci-42", "bash", FinalAllow)); subjectMatches(patterns[0], other) {
		t.Errorf("%s matches another ask's %s", patterns[0], other)
	}
	for _, other := range []string{must(s.Query("g2", "c")), must(s.Log("g1", "c"))} {
		if subjectMatches(patterns[1], other) {
			t.Errorf("%s matches %s", patterns[1], other)
		}
	}
}

// subjectMatches is NATS' matching, told slowly by a regular expression.
func subjectMatches(pattern, subject string) bool {
	p := regexp.QuoteMeta(pattern)
	p = strings.ReplaceAll(p, `\*`, `[^.]+`)
	if rest, ok := strings.CutSuffix(p, `>`); ok {
		p = rest + `.+`
	}
	return regexp.MustCompile(`^` + p + `$`).MatchString(subject)
}

func TestCheckEvent(t *testing.T) {
	for _, e := range []string{"accepted", "model_judge.decision", "permission_request.denied", "a.b.c.d", strings.Repeat("a", 64)} {
		if err := CheckEvent(e); err != nil {
			t.Errorf("%q: %v", e, err)
		}
	}
	for _, e := range []string{"", ".", "a.", ".a", "a..b", "a.b.c.d.e", "a.*", "a.>", "a b", strings.Repeat("a", 65)} {
		if err := CheckEvent(e); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", e, err)
		}
	}
}

func TestParseRole(t *testing.T) {
	for _, r := range Roles {
		if got, err := ParseRole(string(r)); err != nil || got != r {
			t.Errorf("%s: %q, %v", r, got, err)
		}
	}
	for _, r := range []string{"", "Agent", "agents", "agent ", "root", "system", "*", "agent.x"} {
		if got, err := ParseRole(r); !errors.Is(err, ErrEnum) || got != "" {
			t.Errorf("%q: %q, %v", r, got, err)
		}
	}
}

func TestParseTerminalKind(t *testing.T) {
	for _, k := range []TerminalKind{TerminalHuman, TerminalParent, TerminalDeny} {
		if got, err := ParseTerminalKind(string(k)); err != nil || got != k {
			t.Errorf("%s: %q, %v", k, got, err)
		}
	}
	for _, k := range []string{"", "auto", "Human", "allow"} {
		if got, err := ParseTerminalKind(k); !errors.Is(err, ErrEnum) || got != "" {
			t.Errorf("%q: %q, %v", k, got, err)
		}
	}
}
