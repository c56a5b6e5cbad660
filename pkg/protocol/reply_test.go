package protocol

import (
	"errors"
	"strings"
	"testing"
)

// replyAttacks are reply subjects that no service may answer on, whoever asks:
// the answer would be a write where the asker has no right to write.
var replyAttacks = map[string]string{
	"none":                              "",
	"the JetStream API":                 "$JS.API.STREAM.PURGE.ASSENT_DECISIONS",
	"an acknowledgement":                "$JS.ACK.ASSENT_DECISIONS.auditor.1.2.3.4.5",
	"the policy bucket":                 "$KV.ASSENT_POLICY.fleet",
	"the module store":                  "$O.ASSENT_MODULES.C.x",
	"the system account":                "$SYS.REQ.SERVER.PING",
	"a service's statistics":            "$SRV.INFO",
	"a decision's slot":                 "assent.v1.main.decision." + askID + ".ci-42.bash.allow",
	"an answer":                         "assent.v1.main.answer.oncall-1." + askID,
	"a link":                            "assent.v1.main.link.model-judge",
	"one level's wildcard":              "*",
	"every level's wildcard":            ">",
	"every inbox":                       "_INBOX.>",
	"an inbox of no role":               "_INBOX.x.y",
	"an inbox without a role":           "_INBOX..x.y",
	"the root of the inboxes":           "_INBOX",
	"a look-alike of the inboxes":       "_INBOXES.gate.g1.x",
	"inboxes in another case":           "_inbox.gate.g1.x",
	"a role that only begins like one":  "_INBOX.gates.g1.x",
	"a role in another case":            "_INBOX.Gate.g1.x",
	"a name missing":                    "_INBOX.gate.",
	"a role alone":                      "_INBOX.gate",
	"a name alone":                      "_INBOX.gate.g1",
	"a name with an empty token":        "_INBOX.gate..x",
	"a token missing at the end":        "_INBOX.gate.g1.",
	"an empty token within":             "_INBOX.gate.g1..x",
	"a wildcard for the name":           "_INBOX.gate.*.x",
	"a wildcard at the end":             "_INBOX.gate.g1.>",
	"a wildcard within a token":         "_INBOX.gate.g1.a*b",
	"a blank":                           "_INBOX.gate.g1.a b",
	"a line break that adds a command":  "_INBOX.gate.g1.x 0\r\n\r\nPUB $KV.ASSENT_POLICY.fleet 0",
	"a tab":                             "_INBOX.gate.g1.a\tb",
	"a NUL":                             "_INBOX.gate.g1.a\x00b",
	"a vertical tab":                    "_INBOX.gate.g1.a\vb",
	"another script":                    "_INBOX.gate.g1.é",
	"a dollar within":                   "_INBOX.gate.g1.$JS",
	"a token of 65 bytes":               "_INBOX.gate.g1." + strings.Repeat("a", 65),
	"a blank before":                    " _INBOX.gate.g1.x",
	"the border's prefix alone":         "_R_",
	"the border's prefix and a dot":     "_R_.",
	"the border's prefix without a dot": "_R_x.y",
	"the border's prefix, empty token":  "_R_..x",
	"the border, a token missing":       "_R_.a.",
	"the border, a wildcard":            "_R_.a.*",
	"the border, every wildcard":        "_R_.>",
	"the border, a blank":               "_R_.a b",
	"the border, a line break":          "_R_.a\nb",
	"the border in another case":        "_r_.a.b",
	"the border behind an inbox":        "_INBOX._R_.a.b",
	"the gateways' prefix":              "_GR_.a.b.c",
}

func TestReplyAttacksAreNoReplies(t *testing.T) {
	for name, reply := range replyAttacks {
		if ReplyAcross(reply) {
			t.Errorf("%s (%q) counts as made at an account border", name, reply)
		}
		for _, r := range Roles {
			if ReplyFrom(r, reply) {
				t.Errorf("%s (%q) counts as an inbox of %s", name, reply, r)
			}
		}
	}
}

// TestReplyFrom: an inbox is good for its own role only, and never counts as one
// that the server made.
func TestReplyFrom(t *testing.T) {
	for _, owner := range Roles {
		prefix, err := InboxPrefix(owner, "x-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, reply := range []string{prefix + ".Xq3b9Lf2Tz", prefix + ".5kQhF0Zy9uD2Wc7Vb1Nn3M.8Rt2LpQa", prefix + ".a.b.c"} {
			for _, asked := range Roles {
				if got := ReplyFrom(asked, reply); got != (asked == owner) {
					t.Errorf("ReplyFrom(%s, %s) = %v", asked, reply, got)
				}
			}
			if ReplyAcross(reply) {
				t.Errorf("ReplyAcross(%s)", reply)
			}
		}
	}
}

func TestReplyFromARoleThatIsNone(t *testing.T) {
	for _, r := range []Role{"", "*", ">", "gate.g1", "Gate", "system"} {
		for _, reply := range []string{"_INBOX." + string(r) + ".a.b", "_INBOX..a.b", "_INBOX.gate.g1.x"} {
			if ReplyFrom(r, reply) {
				t.Errorf("ReplyFrom(%q, %q)", r, reply)
			}
		}
	}
}

func TestReplyAcross(t *testing.T) {
	for _, reply := range []string{"_R_.a", "_R_.qLNcXb.4vTZmA", "_R_.qLNcXb.4vTZmA.wDsW8a2R.T", "_R_.A-b_9.0"} {
		if !ReplyAcross(reply) {
			t.Errorf("ReplyAcross(%q) = false", reply)
		}
		for _, r := range Roles {
			if ReplyFrom(r, reply) {
				t.Errorf("ReplyFrom(%s, %q)", r, reply)
			}
		}
	}
}

func TestInboxPrefix(t *testing.T) {
	for _, r := range Roles {
		if got, err := InboxPrefix(r, "x-1"); err != nil || got != "_INBOX."+string(r)+".x-1" {
			t.Errorf("%s: %q, %v", r, got, err)
		}
		for name, token := range badTokens {
			if got, err := InboxPrefix(r, token); !errors.Is(err, ErrToken) || got != "" {
				t.Errorf("%s of %s: %q, %v", name, r, got, err)
			}
		}
	}
	for _, r := range []Role{"", "*", "gate.g1", "Gate"} {
		if got, err := InboxPrefix(r, "x"); !errors.Is(err, ErrEnum) || got != "" {
			t.Errorf("role %q: %q, %v", r, got, err)
		}
	}
}
