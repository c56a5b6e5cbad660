package protocol

import (
	"fmt"
	"strings"
)

// SubjectRoot stands before the node in every subject of the contract.
const SubjectRoot = "assent.v1"

// Streams, buckets and queue groups of a node.
const (
	StreamDecisions = "ASSENT_DECISIONS"
	StreamReview    = "ASSENT_REVIEW"

	BucketPolicy   = "ASSENT_POLICY"
	BucketPending  = "ASSENT_PENDING"
	BucketGrants   = "ASSENT_GRANTS"
	BucketPresence = "ASSENT_PRESENCE"
	BucketProjects = "ASSENT_PROJECTS"
	ObjectsModules = "ASSENT_MODULES"

	// KeyModules is where BucketPolicy holds the index of the fleet's permission
	// modules, beside the layers.
	KeyModules = "modules"

	QueueGate     = "gate"
	QueueTerminal = "terminal"

	// ServiceLink is the micro service name that every link registers.
	ServiceLink = "assent-link"
)

// Kind names what a subject is for: the token that follows the node.
type Kind string

// The kinds of subject.
const (
	KindAsk      Kind = "ask"
	KindCancel   Kind = "cancel"
	KindProject  Kind = "project"
	KindRelay    Kind = "relay"
	KindWithdraw Kind = "withdraw"
	KindConfirm  Kind = "confirm"
	KindLink     Kind = "link"
	KindWorker   Kind = "worker"
	KindQuery    Kind = "query"
	KindLog      Kind = "log"
	KindTerminal Kind = "terminal"
	KindAnswer   Kind = "answer"
	KindEvent    Kind = "event"
	KindDecision Kind = "decision"
	KindReview   Kind = "review"
)

// subjectTokens is how many tokens follow each kind. A review event may hold
// dots, so its count is the least; maxEventTokens bounds it.
var subjectTokens = map[Kind]int{
	KindAsk: 1, KindCancel: 1, KindProject: 1, KindRelay: 1, KindWithdraw: 1, KindConfirm: 1, KindLink: 1, KindWorker: 2,
	KindQuery: 2, KindLog: 2, KindTerminal: 1, KindAnswer: 2, KindEvent: 1,
	KindDecision: 4, KindReview: 2,
}

// Subject is a parsed subject. Tokens are those after the kind, in order.
type Subject struct {
	Node   string
	Kind   Kind
	Tokens []string
}

// maxEventTokens is how many tokens the name of a review-log event may have.
const maxEventTokens = 4

// ParseSubject reads a concrete subject (no wildcards) of the contract: known
// kind, valid tokens, an ask id and a result where they belong. Errors wrap
// ErrSubject.
func ParseSubject(s string) (Subject, error) {
	rest, ok := strings.CutPrefix(s, SubjectRoot+".")
	if !ok {
		return Subject{}, fmt.Errorf("%w: %q does not begin with %q", ErrSubject, clip(s, 120), SubjectRoot)
	}
	parts := strings.Split(rest, ".")
	if len(parts) < 2 {
		return Subject{}, fmt.Errorf("%w: %q names no node and kind", ErrSubject, clip(s, 120))
	}
	for _, p := range parts {
		if !ValidToken(p) {
			return Subject{}, fmt.Errorf("%w: %q holds %q, which is no token", ErrSubject, clip(s, 120), clip(p, 80))
		}
	}
	sub := Subject{Node: parts[0], Kind: Kind(parts[1]), Tokens: parts[2:]}
	want, known := subjectTokens[sub.Kind]
	if !known {
		return Subject{}, fmt.Errorf("%w: %q: unknown kind %q", ErrSubject, clip(s, 120), sub.Kind)
	}
	most := want
	if sub.Kind == KindReview {
		most = 1 + maxEventTokens
	}
	if n := len(sub.Tokens); n < want || n > most {
		return Subject{}, fmt.Errorf("%w: %q: %s takes %d tokens, not %d", ErrSubject, clip(s, 120), sub.Kind, want, n)
	}
	if err := sub.check(); err != nil {
		return Subject{}, fmt.Errorf("%w: %q: %s", ErrSubject, clip(s, 120), err)
	}
	return sub, nil
}

// check looks at the tokens that are more than names.
func (s Subject) check() error {
	switch s.Kind {
	case KindAnswer:
		return CheckAskID(s.Tokens[1])
	case KindReview:
		return CheckAskID(s.Tokens[0])
	case KindDecision:
		var result FinalChoice
		return first(CheckAskID(s.Tokens[0]), result.UnmarshalText([]byte(s.Tokens[3])))
	default:
		return nil
	}
}

// Subjects builds the subjects of one node. Use NewSubjects: it has checked the
// node's name. The builders panic on no input: each checks its tokens and
// returns an error that wraps ErrToken, ErrAskID or ErrEnum. The zero Subjects
// builds none.
type Subjects struct{ node string }

// NewSubjects returns the builder for node.
func NewSubjects(node string) (Subjects, error) {
	if err := CheckToken("node", node); err != nil {
		return Subjects{}, err
	}
	return Subjects{node: node}, nil
}

// Node is the name of the node whose subjects these are.
func (s Subjects) Node() string { return s.node }

// All matches every subject of kind on this node, for a subscription. For a
// kind that the contract does not know it is no valid subject.
func (s Subjects) All(k Kind) string {
	switch n := subjectTokens[k]; {
	case k == KindDecision || k == KindReview:
		return s.pattern(k, ">")
	default:
		return s.pattern(k, strings.TrimSuffix(strings.Repeat("*.", n), "."))
	}
}

// Ask is where agent asks.
func (s Subjects) Ask(agent string) (string, error) { return s.named(KindAsk, "agent", agent) }

// Cancel is where agent withdraws an ask.
func (s Subjects) Cancel(agent string) (string, error) { return s.named(KindCancel, "agent", agent) }

// Project is where agent uploads a project's policy.
func (s Subjects) Project(agent string) (string, error) { return s.named(KindProject, "agent", agent) }

// Relay is where a child node asks this node.
func (s Subjects) Relay(child string) (string, error) {
	return s.named(KindRelay, "child node", child)
}

// Withdraw is where a child node takes an ask back that it has relayed.
func (s Subjects) Withdraw(child string) (string, error) {
	return s.named(KindWithdraw, "child node", child)
}

// Confirm is where gate is asked whether it acts by a freeze.
func (s Subjects) Confirm(gate string) (string, error) { return s.named(KindConfirm, "gate", gate) }

// Link is where the judge called link is asked.
func (s Subjects) Link(link string) (string, error) { return s.named(KindLink, "link", link) }

// Worker is where one worker of the judge called link is asked, and no other:
// the second attempt goes there, for a queue group may pick the same stuck worker
// again.
func (s Subjects) Worker(link, worker string) (string, error) {
	if err := CheckToken("link", link); err != nil {
		return "", err
	}
	if err := CheckToken("worker", worker); err != nil {
		return "", err
	}
	return s.join(KindWorker, link, worker)
}

// Terminal is where a terminal of that kind is asked.
func (s Subjects) Terminal(kind string) (string, error) {
	return s.named(KindTerminal, "terminal kind", kind)
}

// Event is where live notices of that kind go.
func (s Subjects) Event(kind string) (string, error) { return s.named(KindEvent, "event kind", kind) }

// Query is the query capability's subject at gate.
func (s Subjects) Query(gate, capability string) (string, error) {
	return s.capability(KindQuery, gate, capability)
}

// Log is the log capability's subject at gate.
func (s Subjects) Log(gate, capability string) (string, error) {
	return s.capability(KindLog, gate, capability)
}

// Queries matches every query capability of one gate.
func (s Subjects) Queries(gate string) (string, error) { return s.gateAll(KindQuery, gate) }

// Logs matches every log capability of one gate.
func (s Subjects) Logs(gate string) (string, error) { return s.gateAll(KindLog, gate) }

// Answer is where approver answers ask id.
func (s Subjects) Answer(approver, id string) (string, error) {
	if err := CheckToken("approver", approver); err != nil {
		return "", err
	}
	if err := CheckAskID(id); err != nil {
		return "", err
	}
	return s.join(KindAnswer, approver, id)
}

// Decision is where the decision on ask id is recorded. A surface that is no
// token is written as OtherToken.
func (s Subjects) Decision(id, agent, surface string, result FinalChoice) (string, error) {
	if err := CheckAskID(id); err != nil {
		return "", err
	}
	if err := CheckToken("agent", agent); err != nil {
		return "", err
	}
	if !result.Valid() {
		return "", fmt.Errorf("%w: a decision's result is allow or deny", ErrEnum)
	}
	return s.join(KindDecision, id, agent, TokenOr(surface), result.String())
}

// DecisionOf matches whatever was decided on ask id, on any surface and with
// any result: the one look-up for "is this ask decided?".
func (s Subjects) DecisionOf(id string) (string, error) {
	if err := CheckAskID(id); err != nil {
		return "", err
	}
	return s.join(KindDecision, id, ">")
}

// DecisionsOn is where every decision on a call of agent is, whatever its ask.
func (s Subjects) DecisionsOn(agent string) (string, error) {
	if err := CheckToken("agent", agent); err != nil {
		return "", err
	}
	return s.join(KindDecision, "*", agent, ">")
}

// Review is where a review-log record on ask id goes. A dot in the event's
// name splits it into tokens.
func (s Subjects) Review(id, event string) (string, error) {
	if err := CheckAskID(id); err != nil {
		return "", err
	}
	if err := CheckEvent(event); err != nil {
		return "", err
	}
	return s.join(KindReview, id, event)
}

// CheckEvent accepts the name of a review-log event: up to four tokens with
// dots between them.
func CheckEvent(event string) error {
	parts := strings.Split(event, ".")
	if len(parts) > maxEventTokens {
		return fmt.Errorf("%w: event %q has more than %d tokens", ErrToken, clip(event, 80), maxEventTokens)
	}
	for _, p := range parts {
		if err := CheckToken("event", p); err != nil {
			return err
		}
	}
	return nil
}

func (s Subjects) named(k Kind, what, name string) (string, error) {
	if err := CheckToken(what, name); err != nil {
		return "", err
	}
	return s.join(k, name)
}

func (s Subjects) capability(k Kind, gate, capability string) (string, error) {
	if err := CheckToken("gate", gate); err != nil {
		return "", err
	}
	if err := CheckToken("capability", capability); err != nil {
		return "", err
	}
	return s.join(k, gate, capability)
}

func (s Subjects) gateAll(k Kind, gate string) (string, error) {
	if err := CheckToken("gate", gate); err != nil {
		return "", err
	}
	return s.join(k, gate, "*")
}

func (s Subjects) join(k Kind, tokens ...string) (string, error) {
	if err := CheckToken("node", s.node); err != nil {
		return "", err
	}
	return s.pattern(k, tokens...), nil
}

func (s Subjects) pattern(k Kind, tokens ...string) string {
	return strings.Join(append([]string{SubjectRoot, s.node, string(k)}, tokens...), ".")
}

// Role is what a credential lets its holder do; the table of rights by role
// stands in internal/node.
type Role string

// The roles.
const (
	RoleOperator Role = "operator"
	RoleAgent    Role = "agent"
	RoleGate     Role = "gate"
	RoleJudge    Role = "judge"
	RoleTerminal Role = "terminal"
	RoleApprover Role = "approver"
	RoleAuditor  Role = "auditor"
	RoleChild    Role = "child"
)

// Roles is every role, in the order in which people meet them.
var Roles = []Role{RoleOperator, RoleAgent, RoleGate, RoleJudge, RoleTerminal, RoleApprover, RoleAuditor, RoleChild}

// ParseRole reads a role's word.
func ParseRole(s string) (Role, error) {
	for _, r := range Roles {
		if string(r) == s {
			return r, nil
		}
	}
	return "", fmt.Errorf("%w: role %q: want one of %v", ErrEnum, clip(s, 40), Roles)
}

// InboxPrefix is the private inbox of one credential, without a trailing dot:
// nobody else may read or write below it.
func InboxPrefix(r Role, name string) (string, error) {
	if _, err := ParseRole(string(r)); err != nil {
		return "", err
	}
	if err := CheckToken("name", name); err != nil {
		return "", err
	}
	return "_INBOX." + string(r) + "." + name, nil
}

// CrossAccountPrefix begins every reply subject of a request that came over an
// account border: the server has rewritten it, so the asker did not choose it.
const CrossAccountPrefix = "_R_."

// ReplyFrom says whether reply is a reply subject that a service may answer
// when asked by role in the service's own account. A reply subject is an
// attack: a service with rights of its own would write wherever it points.
//
// A role that the contract does not know has no inbox.
func ReplyFrom(role Role, reply string) bool {
	if _, err := ParseRole(string(role)); err != nil {
		return false
	}
	rest, ok := strings.CutPrefix(reply, "_INBOX."+string(role)+".")
	return ok && plainSubject(rest) && strings.Contains(rest, ".")
}

// ReplyAcross says whether reply is one that the server made at an account
// border.
func ReplyAcross(reply string) bool {
	rest, ok := strings.CutPrefix(reply, CrossAccountPrefix)
	return ok && plainSubject(rest)
}

// plainSubject says whether s is tokens and dots alone. Clients and servers of
// NATS make inboxes and rewritten replies of nothing else.
func plainSubject(s string) bool {
	for t := range strings.SplitSeq(s, ".") {
		if !ValidToken(t) {
			return false
		}
	}
	return true
}
