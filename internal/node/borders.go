package node

import (
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Border is one subject that crosses from an account into Core (a service) or
// out of Core (a notice). Nothing else crosses.
type Border struct {
	Account Account
	// Subject is Core's, and the account's own unless Local differs.
	Subject string
	Local   string
	// Notice: Core publishes and the account listens. Otherwise the account
	// asks and Core answers, on a reply subject that the server has made.
	Notice bool
	// Streamed: several replies to one request. It costs the server memory for
	// each request until borderThreshold, so only batches of reads have it.
	Streamed bool
	For      string
}

// Borders is every crossing of an account border.
func Borders() []Border {
	out := []Border{
		{Account: Agents, Subject: subject(protocol.KindAsk, "*"), For: "asks"},
		{Account: Agents, Subject: subject(protocol.KindCancel, "*"), For: "withdrawals"},
		{Account: Agents, Subject: subject(protocol.KindProject, "*"), For: "project policy"},
		{Account: Children, Subject: subject(protocol.KindRelay, "*"), For: "asks of child nodes"},
		{Account: Children, Subject: subject(protocol.KindWithdraw, "*"), For: "asks that child nodes take back"},
		{Account: Desk, Subject: subject(protocol.KindAnswer, "*", "*"), For: "answers"},
		{Account: Desk, Subject: subject(protocol.KindEvent, "*"), Notice: true, For: "live notices"},
		apiBorder(Desk, "DIRECT.GET.KV_"+protocol.BucketPending, true, "all pending asks"),
		apiBorder(Desk, "DIRECT.GET.KV_"+protocol.BucketPending+".>", false, "one pending ask"),
		apiBorder(Desk, "DIRECT.GET.KV_"+protocol.BucketPolicy, true, "policy and freezes"),
		apiBorder(Desk, "DIRECT.GET.KV_"+protocol.BucketPolicy+".>", false, "one layer or freeze"),
		{Account: Desk, Subject: kvKey(protocol.BucketPresence, "*"), For: "presence"},
	}
	for _, stream := range []string{protocol.StreamDecisions, protocol.StreamReview} {
		out = append(out, auditBorders(stream)...)
	}
	return out
}

func auditBorders(stream string) []Border {
	durable := stream + "." + AuditorDurable
	return []Border{
		apiBorder(Audit, "STREAM.INFO."+stream, false, "state of the record"),
		apiBorder(Audit, "STREAM.MSG.GET."+stream, false, "one record by sequence"),
		apiBorder(Audit, "CONSUMER.INFO."+durable, false, "state of the auditor's consumer"),
		apiBorder(Audit, "CONSUMER.MSG.NEXT."+durable, true, "records not yet read"),
		{Account: Audit, Subject: "$JS.ACK." + durable + ".>", For: "records read"},
	}
}

// apiBorder is one request of Core's JetStream. The account calls it by another
// name: the server itself answers $JS.API.> in every account, and would answer
// first that JetStream is off there.
func apiBorder(acc Account, request string, streamed bool, what string) Border {
	return Border{
		Account: acc, Subject: "$JS.API." + request, Local: bus.BorderAPI + "." + request,
		Streamed: streamed, For: what,
	}
}
