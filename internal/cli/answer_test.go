package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

const someID = "01KBB2X0G6Y3N2M4P5Q6R7S8T9"

func TestAnswerRefusesWhatDoesNotGoTogether(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"an allow that aborts":   {[]string{someID, "allow", "--abort"}, "--abort goes with deny"},
		"a deny with an edit":    {[]string{someID, "deny", "--input", "{}"}, "--input goes with allow"},
		"another word":           {[]string{someID, "yes"}, "say allow or deny"},
		"an input that is none":  {[]string{someID, "allow", "--input", "@nope"}, "name a file"},
		"too little of an id":    {[]string{someID[:5], "deny"}, "at least 6"},
		"letters no id has":      {[]string{"ilouilou", "deny"}, "assent pending"},
		"more than an id":        {[]string{someID + "0", "deny"}, "26 characters"},
		"one argument":           {[]string{someID}, "takes ASK and allow|deny, got 1 argument:"},
		"an argument to nothing": {[]string{someID, "deny", "please"}, "got 3 arguments"},
	} {
		env, out, errs := testEnv()
		code := Main(env, append([]string{"answer"}, row.args...), Answer)
		if code != ExitUsage || out.Len() > 0 || !strings.Contains(errs.String(), row.want) {
			t.Errorf("%s: exit %d, %q; want %q", name, code, errs, row.want)
		}
	}
}

func TestOneIDIsTheOnlyOneThatFits(t *testing.T) {
	t.Parallel()
	a, b := "01KBB2X0G6Y3N2M4P5Q6R7S8T9", "01KBB2X0G7Y3N2M4P5Q6R7S8TA"
	for part, want := range map[string]string{a[:10]: a, a[18:]: a, b[20:]: b, a: a} {
		if got, err := oneID(part, []string{a, b}, "there"); err != nil || got != want {
			t.Errorf("%s: %q, %v", part, got, err)
		}
	}
	for part, want := range map[string]string{a[:8]: a + ", " + b, "ZZZZZZ": "there", "Y3N2M4": "there"} {
		if got, err := oneID(part, []string{a, b}, "there"); err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want an error with %q", part, got, err, want)
		}
	}
}

func TestALaterAnswerIsToldWhoWasFirst(t *testing.T) {
	t.Parallel()
	r := protocol.AnswerReceipt{AnsweredBy: "oncall-1", Verdict: protocol.FinalDeny, At: time.Now()}
	if got := whoWasFirst(r); !strings.HasPrefix(got, " (oncall-1 was first: deny at 20") {
		t.Errorf("got %q", got)
	}
	if got := whoWasFirst(protocol.AnswerReceipt{}); got != "" {
		t.Errorf("nobody: got %q", got)
	}
}
