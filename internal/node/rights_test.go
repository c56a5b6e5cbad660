package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const askID = "01K7ZZZZZZZZZZZZZZZZZZZZZZ"

// who holds which right: each subject with the roles that may use it, as the
// holder "me". Every role that is not named must be refused.
type who struct {
	subject string
	queue   string
	roles   string
}

var mayPublish = []who{
	{subject: "assent.v1.main.ask.me", roles: "agent"},
	{subject: "assent.v1.main.ask.other"},
	{subject: "assent.v1.main.ask.me.more"},
	{subject: "assent.v1.main.ask"},
	{subject: "assent.v1.other.ask.me"},
	{subject: "assent.v1.main.cancel.me", roles: "agent"},
	{subject: "assent.v1.main.cancel.other"},
	{subject: "assent.v1.main.project.me", roles: "agent"},
	{subject: "assent.v1.main.project.other"},
	{subject: "assent.v1.main.relay.me", roles: "child"},
	{subject: "assent.v1.main.relay.other"},
	{subject: "assent.v1.main.withdraw.me", roles: "child"},
	{subject: "assent.v1.main.withdraw.other"},
	{subject: "assent.v1.main.confirm.g1", roles: "operator"},
	{subject: "assent.v1.main.link.l1", roles: "gate"},
	{subject: "assent.v1.main.worker.l1.w1", roles: "gate"},
	{subject: "assent.v1.main.terminal.human", roles: "gate"},
	{subject: "assent.v1.main.query.g1.cap", roles: "judge"},
	{subject: "assent.v1.main.log.g1.cap", roles: "judge"},
	{subject: "assent.v1.main.answer.me." + askID, roles: "approver"},
	{subject: "assent.v1.main.answer.other." + askID},
	{subject: "assent.v1.main.event.ready", roles: "gate terminal"},
	{subject: "assent.v1.main.decision." + askID + ".a1.bash.allow", roles: "gate"},
	{subject: "assent.v1.main.review." + askID + ".gate_error", roles: "gate terminal"},
	{subject: "$KV.ASSENT_POLICY.fleet", roles: "operator"},
	{subject: "$KV.ASSENT_PENDING." + askID, roles: "gate terminal"},
	{subject: "$KV.ASSENT_GRANTS.a1." + askID, roles: "operator gate"},
	{subject: "$JS.API.STREAM.MSG.GET.KV_ASSENT_GRANTS", roles: "operator gate"},
	{subject: "$JS.API.CONSUMER.CREATE.KV_ASSENT_GRANTS.x", roles: "operator"},
	{subject: "$KV.ASSENT_PROJECTS.a1.00", roles: "gate"},
	{subject: "$JS.API.STREAM.MSG.GET.KV_ASSENT_PROJECTS", roles: "operator gate"},
	{subject: "$JS.API.STREAM.INFO.KV_ASSENT_PROJECTS", roles: "operator gate"},
	{subject: "$JS.API.CONSUMER.CREATE.KV_ASSENT_PROJECTS.x", roles: "operator"},
	{subject: "$JS.API.STREAM.PURGE.KV_ASSENT_PROJECTS", roles: "operator"},
	{subject: "$KV.ASSENT_PRESENCE.me", roles: "operator approver"},
	{subject: "$KV.ASSENT_PRESENCE.other", roles: "operator"},
	{subject: "$KV.ASSENT_PRESENCE.parent.me", roles: "operator terminal"},
	{subject: "$KV.ASSENT_PRESENCE.parent.other", roles: "operator"},
	{subject: "$O.ASSENT_MODULES.C.x", roles: "operator"},
	{subject: "$O.ASSENT_MODULES.M.x", roles: "operator"},
	{subject: "$KV.ASSENT_POLICY.modules", roles: "operator"},
	{subject: "$JS.API.STREAM.MSG.GET.OBJ_ASSENT_MODULES", roles: "operator gate"},
	{subject: "$JS.API.CONSUMER.CREATE.OBJ_ASSENT_MODULES.x", roles: "operator"},
	{subject: "$JS.API.STREAM.MSG.DELETE.OBJ_ASSENT_MODULES", roles: "operator"},
	{subject: "$JS.API.STREAM.PURGE.OBJ_ASSENT_MODULES", roles: "operator"},
	{subject: "JS.CORE.API.STREAM.MSG.GET.OBJ_ASSENT_MODULES"},
	{subject: "JS.CORE.API.DIRECT.GET.OBJ_ASSENT_MODULES"},
	{subject: "$JS.API.STREAM.NAMES", roles: "operator"},
	{subject: "$JS.API.STREAM.DELETE.ASSENT_NONE", roles: "operator"},
	{subject: "$JS.API.STREAM.PURGE.ASSENT_NONE", roles: "operator"},
	{subject: "$JS.API.STREAM.MSG.DELETE.ASSENT_NONE", roles: "operator"},
	{subject: "$JS.API.STREAM.MSG.GET.ASSENT_DECISIONS", roles: "operator gate terminal"},
	{subject: "$JS.API.CONSUMER.CREATE.ASSENT_DECISIONS.x", roles: "operator"},
	{subject: "$JS.API.CONSUMER.CREATE.KV_ASSENT_PENDING.x", roles: "operator gate terminal"},
	{subject: "$JS.API.CONSUMER.MSG.NEXT.ASSENT_DECISIONS.auditor", roles: "operator"},
	{subject: "$JS.ACK.ASSENT_DECISIONS.auditor.1.1.1.1.0", roles: "operator auditor"},
	{subject: "JS.CORE.API.STREAM.DELETE.ASSENT_DECISIONS"},
	{subject: "JS.CORE.API.STREAM.PURGE.ASSENT_DECISIONS"},
	{subject: "JS.CORE.API.STREAM.MSG.DELETE.ASSENT_DECISIONS"},
	{subject: "JS.CORE.API.CONSUMER.CREATE.ASSENT_DECISIONS.x"},
	{subject: "JS.CORE.API.CONSUMER.CREATE.KV_ASSENT_PENDING.x"},
	{subject: "JS.CORE.API.CONSUMER.DELETE.ASSENT_DECISIONS.auditor"},
	{subject: "JS.CORE.API.CONSUMER.MSG.NEXT.ASSENT_DECISIONS.other"},
	{subject: "JS.CORE.API.CONSUMER.MSG.NEXT.ASSENT_DECISIONS.auditor", roles: "auditor"},
	{subject: "JS.CORE.API.STREAM.MSG.GET.ASSENT_REVIEW", roles: "auditor"},
	{subject: "JS.CORE.API.STREAM.MSG.GET.KV_ASSENT_POLICY"},
	{subject: "JS.CORE.API.DIRECT.GET.KV_ASSENT_PENDING", roles: "approver"},
	{subject: "JS.CORE.API.DIRECT.GET.KV_ASSENT_PENDING.$KV.ASSENT_PENDING." + askID, roles: "approver"},
	{subject: "JS.CORE.API.DIRECT.GET.KV_ASSENT_POLICY", roles: "approver"},
	{subject: "JS.CORE.API.DIRECT.GET.KV_ASSENT_POLICY.$KV.ASSENT_POLICY.freeze.all", roles: "approver"},
	{subject: "JS.CORE.API.DIRECT.GET.KV_ASSENT_GRANTS"},
	{subject: "_R_.abc.def", roles: "gate terminal"},
	{subject: "_INBOX.agent.a1.x"},
	{subject: "_INBOX.gate.g1.x", roles: "gate terminal"},
	{subject: "_INBOX.judge.j1.x", roles: "gate terminal"},
	{subject: "_INBOX.approver.p1.x"},
	{subject: "_INBOX.operator.o1.x", roles: "gate terminal"},
	{subject: "$SRV.PING", roles: "operator gate"},
	{subject: "$SYS.REQ.CLAIMS.UPDATE"},
	{subject: "$SYS.REQ.SERVER.PING"},
	{subject: "anything"},
}

var maySubscribe = []who{
	{subject: ">"},
	{subject: "_INBOX.>"},
	{subject: "_INBOX.*.*.*"},
	{subject: "_INBOX.agent.me.>", roles: "agent"},
	{subject: "_INBOX.agent.other.>"},
	{subject: "_INBOX.agent.*.x"},
	{subject: "_INBOX.gate.me.>", roles: "gate"},
	{subject: "_INBOX.gate.other.>"},
	{subject: "_INBOX.judge.me.>", roles: "judge"},
	{subject: "_INBOX.judge.other.>"},
	{subject: "_INBOX.terminal.me.>", roles: "terminal"},
	{subject: "_INBOX.approver.me.>", roles: "approver"},
	{subject: "_INBOX.auditor.me.>", roles: "auditor"},
	{subject: "_INBOX.operator.me.>", roles: "operator"},
	{subject: "_INBOX.child.me.>", roles: "child"},
	{subject: "_R_.>"},
	{subject: "assent.v1.main.>"},
	{subject: "assent.v1.main.ask.*", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.ask.me", queue: "gate", roles: "gate"},
	// To the server ">" is a token like others here, so that "*" lets it in. No
	// subject of ours goes deeper, so it yields nothing more.
	{subject: "assent.v1.main.ask.>", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.cancel.*", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.project.*", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.relay.*", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.withdraw.*", queue: "gate", roles: "gate"},
	{subject: "assent.v1.main.confirm.me", roles: "gate"},
	{subject: "assent.v1.main.confirm.other"},
	{subject: "assent.v1.main.confirm.*"},
	{subject: "assent.v1.main.link.l1", queue: "l1", roles: "judge"},
	{subject: "assent.v1.main.link.Upper_Link", queue: "Upper_Link", roles: "judge"},
	{subject: "assent.v1.main.link.upper_link", queue: "upper_link"},
	{subject: "assent.v1.main.link.l2", queue: "l2"},
	{subject: "assent.v1.main.link.*"},
	{subject: "assent.v1.main.link.>"},
	{subject: "assent.v1.main.worker.l1.w1", roles: "judge"},
	{subject: "assent.v1.main.worker.Upper_Link.w1", roles: "judge"},
	{subject: "assent.v1.main.worker.l2.w1"},
	{subject: "assent.v1.main.worker.*.w1"},
	{subject: "assent.v1.main.worker.>"},
	{subject: "assent.v1.main.query.me.*", roles: "gate"},
	{subject: "assent.v1.main.query.other.*"},
	{subject: "assent.v1.main.query.*.*"},
	{subject: "assent.v1.main.log.me.*", roles: "gate"},
	{subject: "assent.v1.main.log.other.*"},
	{subject: "assent.v1.main.terminal.*", queue: "terminal", roles: "terminal"},
	{subject: "assent.v1.main.answer.*.*", queue: "terminal", roles: "terminal"},
	{subject: "assent.v1.main.event.*", roles: "operator approver"},
	{subject: "assent.v1.main.decision.>"},
	{subject: "assent.v1.main.review.>"},
	{subject: "$KV.>"},
	{subject: "$JS.>"},
	{subject: "$SRV.PING", roles: "gate judge terminal"},
	{subject: "$SYS.>"},
}

func connectMe(t *testing.T, n *nodetest.Node, role protocol.Role) *nats.Conn {
	t.Helper()
	opts := node.IssueOptions{}
	if role == protocol.RoleJudge {
		opts.Links = []string{"l1", "Upper_Link"}
	}
	return n.Connect(t, role, "me", opts)
}

// refusedNow says whether the server refused what nc sent since the last call:
// the refusal comes before the answer to the flush.
func refusedNow(t *testing.T, nc *nats.Conn, verb, subject string) bool {
	t.Helper()
	if err := nc.FlushTimeout(5 * time.Second); err != nil {
		t.Fatalf("flush: %v", err)
	}
	err := nc.LastError()
	return err != nil && strings.Contains(err.Error(), fmt.Sprintf("%s %q", verb, subject))
}

func TestEachRoleMayPublishItsOwnSubjectsAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, role := range protocol.Roles {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, nodetest.Quiet())
			nc := connectMe(t, n, role)
			granted := 0
			for _, w := range mayPublish {
				if err := nc.Publish(w.subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				allowed := !refusedNow(t, nc, "Publish to", w.subject)
				if want := slices.Contains(strings.Fields(w.roles), string(role)); allowed != want {
					t.Errorf("publish %s: allowed %v, want %v", w.subject, allowed, want)
				}
				if allowed {
					granted++
				}
			}
			if granted == 0 {
				t.Error("the role may do nothing of what is tested")
			}
		})
	}
}

func TestEachRoleMaySubscribeToItsOwnSubjectsAndNoOthers(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	for _, role := range protocol.Roles {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			nc := connectMe(t, n, role)
			granted := 0
			for _, w := range maySubscribe {
				for _, queue := range []string{"", w.queue} {
					sub, err := nc.QueueSubscribeSync(w.subject, queue)
					if queue == "" {
						sub, err = nc.SubscribeSync(w.subject)
					}
					if err != nil {
						t.Fatal(err)
					}
					allowed := !refusedNow(t, nc, "Subscription to", w.subject)
					if want := slices.Contains(strings.Fields(w.roles), string(role)); allowed != want {
						t.Errorf("subscribe %s queue %q: allowed %v, want %v", w.subject, queue, allowed, want)
					}
					if allowed {
						granted++
						if err := sub.Unsubscribe(); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if granted == 0 {
				t.Error("the role may do nothing of what is tested")
			}
		})
	}
}

func TestAJudgeOfEveryLinkMayServeAnyLink(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	nc := n.Connect(t, protocol.RoleJudge, "all", node.IssueOptions{Links: []string{"*"}})
	for subject, want := range map[string]bool{
		"assent.v1.main.link.a": true, "assent.v1.main.link.Any_Thing-9": true,
		"assent.v1.main.worker.a.w1": true, "assent.v1.main.worker.a": false, "assent.v1.main.link.a.b": false, "assent.v1.main.terminal.human": false,
	} {
		if _, err := nc.QueueSubscribeSync(subject, "q"); err != nil {
			t.Fatal(err)
		}
		if got := !refusedNow(t, nc, "Subscription to", subject); got != want {
			t.Errorf("%s: allowed %v, want %v", subject, got, want)
		}
	}
}
