package node

import (
	"cmp"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Account is one of the accounts that a node is divided into. Only our own
// services live in Core; whoever else reaches it crosses an account border,
// where the server itself rewrites the reply subject.
type Account string

// The accounts.
const (
	Core     Account = "CORE"
	Agents   Account = "AGENTS"
	Children Account = "CHILDREN"
	Desk     Account = "DESK"
	Audit    Account = "AUDIT"
	System   Account = "SYS"
)

// Accounts is every account, in the order in which they are made.
var Accounts = []Account{System, Core, Agents, Children, Desk, Audit}

// roleSystem is the authority's own role: it hands account JWTs to a running
// server. It is never issued to anybody.
const roleSystem protocol.Role = "system"

// Sizes and times that the table sets.
const (
	// BorderPayload is the largest message, body and headers in bytes, that a
	// credential outside Core may send: a protocol message of 256 KiB and room
	// for headers.
	BorderPayload = 272 << 10
	// AgentPayload is that of an agent's: it also uploads its project's modules. An
	// ask that is larger than one may be is refused by whoever reads it.
	AgentPayload = 1 << 20
	// borderSubscriptions bounds what one credential outside Core costs the server.
	borderSubscriptions = 128
	// replyWindow is how long a judge may answer a request.
	replyWindow = 2 * time.Minute
	// replyCount is how many messages a judge may send to one reply subject. Two
	// links on one connection both answer the same discovery request, so one is
	// too few; a question of the gate takes the first and drops the rest.
	replyCount = 16
)

// Responses lets a role answer on the reply subject of what it received, and
// is the one right that no list of subjects bounds: only a role that receives
// nothing but what gates and operators send may hold it.
type Responses struct {
	Max    int
	Within time.Duration
}

// Right is one row of the table: everything a role may do. Subjects hold
// {node}, which is filled in when the node's accounts are made, and
// {{name()}} and {{tag(link)}}, which the server fills in from the credential.
// An empty list means nothing at all.
type Right struct {
	Role      protocol.Role
	Account   Account
	For       string
	Publish   []string
	Subscribe []string
	Responses *Responses
	// Connections are the kinds of connection that may use the credential.
	Connections []string
	// Payload is the largest message in bytes that a role outside Core may send; 0 is
	// BorderPayload.
	Payload int64
}

// Rights is the permission table, one row for each role. The account JWTs with
// their scoped signing keys, the printed server configuration, the table in
// docs/permissions.md and the attack tests all come from it.
//
// No subject pins a queue group ("subject queue"): a template in the same list
// makes the server drop such an entry without a word.
func Rights() []Right {
	return []Right{
		operatorRight(), agentRight(), gateRight(), judgeRight(),
		terminalRight(), approverRight(), auditorRight(), childRight(), systemRight(),
	}
}

func operatorRight() Right {
	return Right{
		Role: protocol.RoleOperator, Account: Core,
		For: "writes policy, revokes grants, manages streams, discovers services",
		Publish: list(
			kvWrite(protocol.BucketPolicy), kvWrite(protocol.BucketPresence), kvWrite(protocol.BucketGrants),
			"$JS.API.>", "$JS.FC.>", "$JS.ACK.>", "$O."+protocol.ObjectsModules+".>", "$SRV.>",
			subject(protocol.KindConfirm, "*"),
		),
		Subscribe:   list(inbox(protocol.RoleOperator), subject(protocol.KindEvent, "*")),
		Connections: plainConnections(),
	}
}

func agentRight() Right {
	return Right{
		Role: protocol.RoleAgent, Account: Agents,
		For: "asks as itself and reads its own answers",
		Publish: list(
			subject(protocol.KindAsk, name), subject(protocol.KindCancel, name), subject(protocol.KindProject, name),
		),
		Subscribe:   list(inbox(protocol.RoleAgent)),
		Connections: plainConnections(),
		Payload:     AgentPayload,
	}
}

func gateRight() Right {
	return Right{
		Role: protocol.RoleGate, Account: Core,
		For: "rules on asks, walks the chain, records and answers",
		Publish: list(
			protocol.CrossAccountPrefix+">",
			answerInboxes(),
			subject(protocol.KindLink, "*"), subject(protocol.KindWorker, "*", "*"), subject(protocol.KindTerminal, "*"),
			subject(protocol.KindDecision, ">"), subject(protocol.KindReview, ">"), subject(protocol.KindEvent, "*"),
			"$SRV.>",
			kvRead(protocol.BucketPolicy), kvRead(protocol.BucketPresence),
			kvRead(protocol.BucketPending), kvWrite(protocol.BucketPending),
			// Read through the leader: a revoked grant must not live on at a replica.
			"$JS.API.STREAM.MSG.GET.KV_"+protocol.BucketGrants, kvWrite(protocol.BucketGrants),
			// Likewise: an upload that was acknowledged is known to every gate.
			"$JS.API.STREAM.MSG.GET.KV_"+protocol.BucketProjects, "$JS.API.STREAM.INFO.KV_"+protocol.BucketProjects, kvWrite(protocol.BucketProjects),
			// Modules are read a message at a time, and never written: no consumer, no put.
			"$JS.API.STREAM.MSG.GET.OBJ_"+protocol.ObjectsModules,
			"$JS.API.STREAM.INFO."+protocol.StreamDecisions, "$JS.API.STREAM.MSG.GET."+protocol.StreamDecisions,
		),
		Subscribe: list(
			subject(protocol.KindAsk, "*"), subject(protocol.KindCancel, "*"),
			subject(protocol.KindProject, "*"), subject(protocol.KindRelay, "*"), subject(protocol.KindWithdraw, "*"),
			subject(protocol.KindQuery, name, "*"), subject(protocol.KindLog, name, "*"),
			subject(protocol.KindConfirm, name),
			inbox(protocol.RoleGate), "$SRV.>",
		),
		Connections: plainConnections(),
	}
}

func judgeRight() Right {
	return Right{
		Role: protocol.RoleJudge, Account: Core,
		For: "answers for its links; asks back through capabilities",
		Publish: list(
			subject(protocol.KindQuery, "*", "*"), subject(protocol.KindLog, "*", "*"),
		),
		Subscribe: list(
			subject(protocol.KindLink, "{{tag("+tagLink+")}}"), subject(protocol.KindWorker, "{{tag("+tagLink+")}}", "*"),
			inbox(protocol.RoleJudge), "$SRV.>",
		),
		Responses:   &Responses{Max: replyCount, Within: replyWindow},
		Connections: plainConnections(),
	}
}

func terminalRight() Right {
	return Right{
		Role: protocol.RoleTerminal, Account: Core,
		For: "the end of the chain: takes asks and approvers' answers",
		Publish: list(
			protocol.CrossAccountPrefix+">",
			answerInboxes(),
			subject(protocol.KindEvent, "*"), subject(protocol.KindReview, ">"),
			kvRead(protocol.BucketPending), kvWrite(protocol.BucketPending),
			// That the node has a parent is this terminal's to say, under its own name.
			kvKey(protocol.BucketPresence, protocol.PresenceParent+name),
			// A late answer is told what was decided.
			"$JS.API.STREAM.INFO."+protocol.StreamDecisions, "$JS.API.STREAM.MSG.GET."+protocol.StreamDecisions,
		),
		Subscribe: list(
			subject(protocol.KindTerminal, "*"), subject(protocol.KindAnswer, "*", "*"),
			inbox(protocol.RoleTerminal), "$SRV.>",
		),
		Connections: plainConnections(),
	}
}

func approverRight() Right {
	return Right{
		Role: protocol.RoleApprover, Account: Desk,
		For: "sees pending asks, answers them under its own name, is present",
		Publish: list(
			subject(protocol.KindAnswer, name, "*"),
			kvGet(bus.BorderAPI, protocol.BucketPending),
			// What is frozen stands beside the policy, and is shown on every prompt.
			kvGet(bus.BorderAPI, protocol.BucketPolicy),
			kvKey(protocol.BucketPresence, name),
		),
		Subscribe:   list(inbox(protocol.RoleApprover), subject(protocol.KindEvent, "*")),
		Connections: append(plainConnections(), "WEBSOCKET"),
	}
}

func auditorRight() Right {
	return Right{
		Role: protocol.RoleAuditor, Account: Audit,
		For:         "reads the record, changes nothing",
		Publish:     list(auditRead(protocol.StreamDecisions), auditRead(protocol.StreamReview)),
		Subscribe:   list(inbox(protocol.RoleAuditor)),
		Connections: plainConnections(),
	}
}

func childRight() Right {
	return Right{
		Role: protocol.RoleChild, Account: Children,
		For:         "a child node's terminal asks this node",
		Publish:     list(subject(protocol.KindRelay, name), subject(protocol.KindWithdraw, name)),
		Subscribe:   list(inbox(protocol.RoleChild)),
		Connections: plainConnections(),
	}
}

func systemRight() Right {
	return Right{
		Role: roleSystem, Account: System,
		For:         "hands account JWTs to a running server; never issued",
		Publish:     list("$SYS.REQ.CLAIMS.UPDATE"),
		Subscribe:   list(inbox(roleSystem)),
		Connections: plainConnections(),
	}
}

// RightOf returns the row of role. ok is false for a role that the table does
// not name: it has no rights.
func RightOf(role protocol.Role) (Right, bool) {
	for _, r := range Rights() {
		if r.Role == role {
			return r, true
		}
	}
	return Right{}, false
}

// The tags of a credential. A gate's says which key signs operators' credentials:
// what it is handed as an operator's word it can check without asking anybody who
// could be lied for.
const (
	tagLink   = "link"
	tagRole   = "role"
	tagSigner = "signer"
	name      = "{{name()}}"
)

func plainConnections() []string { return []string{"STANDARD", "IN_PROCESS"} }

func inbox(r protocol.Role) string { return "_INBOX." + string(r) + "." + name + ".>" }

// answerInboxes are where gates and terminals, which hold no right to answer
// wherever they are asked from, may answer inside Core.
func answerInboxes() []string {
	return []string{"_INBOX.judge.>", "_INBOX.gate.>", "_INBOX.operator.>"}
}

func subject(k protocol.Kind, tokens ...string) string {
	return strings.Join(append([]string{protocol.SubjectRoot, "{node}", string(k)}, tokens...), ".")
}

func kvGet(api, bucket string) []string {
	return []string{api + ".DIRECT.GET.KV_" + bucket, api + ".DIRECT.GET.KV_" + bucket + ".>"}
}

// kvRead is what bind, get and watch need, and no more. It includes making a
// consumer, whose deliver subject the asker chooses: never give it to a role
// outside Core.
func kvRead(bucket string) []string {
	return append(kvGet("$JS.API", bucket),
		"$JS.API.STREAM.INFO.KV_"+bucket,
		"$JS.API.CONSUMER.CREATE.KV_"+bucket+".>",
		"$JS.API.CONSUMER.DELETE.KV_"+bucket+".>",
		"$JS.FC.KV_"+bucket+".>",
	)
}

func kvWrite(bucket string) string { return "$KV." + bucket + ".>" }

func kvKey(bucket, key string) string { return "$KV." + bucket + "." + key }

func auditRead(stream string) []string {
	var out []string
	for _, b := range auditBorders(stream) {
		out = append(out, cmp.Or(b.Local, b.Subject))
	}
	return out
}

// list flattens strings and string slices into one list.
func list(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			out = append(out, v)
		case []string:
			out = append(out, v...)
		default:
			panic("node: the permission table holds something that is no subject")
		}
	}
	return out
}
