package client

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// reply is what a gate may answer: exactly one of these is set.
type reply struct {
	decision *protocol.Decision
	progress *protocol.Progress
	receipt  *protocol.CancelReceipt
}

// statusHeader is the server's own mark on a message that no service wrote.
const statusHeader = "Status"

// readReply reads the answer to ask id of agent. Whatever is not whole, or is
// about another ask or agent, is an error: the client library hands a reply
// that it cannot place to the only open request, so a stray or forged one may
// end up here.
func readReply(id, agent string, msg *nats.Msg) (reply, error) {
	code, text := msg.Header.Get(protocol.HeaderErrorCode), msg.Header.Get(protocol.HeaderError)
	switch {
	case msg.Header.Get(statusHeader) != "":
		return reply{}, junk("status %s of the server", msg.Header.Get(statusHeader))
	case code != "" || text != "":
		return reply{}, readFault(id, code, text, msg.Data)
	case len(msg.Data) == 0:
		return reply{}, junk("empty body")
	}
	kind, err := kindOf(msg.Data)
	if err != nil {
		return reply{}, err
	}
	var r reply
	switch kind {
	case kindDecision:
		r.decision, err = hold(protocol.ReadDecisionFor(id, agent, msg.Data))
	case kindProgress:
		if r.progress, err = hold(protocol.Read[protocol.Progress](msg.Data)); err == nil {
			err = about(id, r.progress.Ask)
		}
	case kindReceipt:
		if r.receipt, err = hold(protocol.Read[protocol.CancelReceipt](msg.Data)); err == nil {
			err = about(id, r.receipt.Ask)
		}
	default:
		return reply{}, readFault(id, "", "", msg.Data)
	}
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", ErrReply, err)
	}
	return r, nil
}

func hold[M any](m M, err error) (*M, error) { return &m, err }

type kind int

const (
	_ kind = iota
	kindDecision
	kindProgress
	kindReceipt
	kindFault
)

// kindOf tells the replies apart by the one field that each alone has. A body
// that has two of them says yes and not-yet at once, and is none.
func kindOf(data []byte) (kind, error) {
	if len(data) > protocol.CarrierMaxBytes {
		return 0, junk("%d bytes, the limit is %d", len(data), protocol.CarrierMaxBytes)
	}
	var head struct {
		Result    jsontext.Value `json:"result"`
		Status    jsontext.Value `json:"status"`
		Cancelled jsontext.Value `json:"cancelled"`
		Error     jsontext.Value `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return 0, junk("%v", err)
	}
	found := kind(0)
	for k, v := range map[kind]jsontext.Value{kindDecision: head.Result, kindProgress: head.Status, kindReceipt: head.Cancelled, kindFault: head.Error} {
		switch {
		case len(v) == 0:
		case found != 0:
			return 0, junk("it says two things at once")
		default:
			found = k
		}
	}
	if found == 0 {
		return 0, junk("none of the contract's messages")
	}
	return found, nil
}

// readFault reads an error reply: in the body, or in the headers alone as the
// micro services of NATS write them. Always an error.
func readFault(id, code, text string, data []byte) error {
	e, err := protocol.Read[protocol.ErrorReply](data)
	if err != nil {
		return junk("error reply without a readable cause: %s %s", code, text)
	}
	if e.Ask != "" && e.Ask != id {
		return fmt.Errorf("%w: %w", ErrReply, about(id, e.Ask))
	}
	fault := e.Error
	fault.Message = protocol.Safe(fault.Message, protocol.MaxReason, false)
	fault.Remedy = protocol.Safe(fault.Remedy, protocol.MaxReason, false)
	// A gate that cannot work at this moment says nothing about the ask.
	if fault.Code == protocol.CodeUnavailable {
		return silence{&fault}
	}
	return &fault
}

func about(want, got string) error {
	if want != got {
		return fmt.Errorf("%w: it is about ask %q, not %q", protocol.ErrMismatch, protocol.Safe(got, protocol.MaxToken, false), want)
	}
	return nil
}

func junk(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrReply, protocol.Safe(fmt.Sprintf(format, args...), 400, false))
}
