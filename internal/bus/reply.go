package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// maxFaultText bounds what an error reply says, in bytes.
const maxFaultText = 500

// Reply answers m with one message. Whoever calls it has checked m's reply
// subject: an answer goes wherever that points.
func Reply[M any, P protocol.Message[M]](nc *nats.Conn, m *nats.Msg, v M) error {
	body, err := protocol.Write[M, P](v)
	if err != nil {
		return fmt.Errorf("writing the reply on %s: %w", m.Subject, err)
	}
	return ReplyWith(nc, m, body)
}

// ReplyWith answers m with a message that is written already.
func ReplyWith(nc *nats.Conn, m *nats.Msg, body []byte) error {
	if err := nc.PublishMsg(&nats.Msg{Subject: m.Reply, Data: body}); err != nil {
		return fmt.Errorf("sending the reply on %s: %w", m.Subject, err)
	}
	return nil
}

// ReplyFault answers m with an error reply: headers as the micro services of
// NATS write them, and always a body. ask is "" where the id could not be read.
func ReplyFault(nc *nats.Conn, m *nats.Msg, ask string, f protocol.Fault) error {
	f.Message = protocol.Safe(f.Message, maxFaultText, false)
	body, err := protocol.Write(protocol.ErrorReply{Ask: ask, Error: f})
	if err != nil {
		return fmt.Errorf("writing the error reply on %s: %w", m.Subject, err)
	}
	msg := &nats.Msg{Subject: m.Reply, Data: body, Header: nats.Header{}}
	msg.Header.Set(protocol.HeaderErrorCode, string(f.Code))
	msg.Header.Set(protocol.HeaderError, f.Message)
	if err := nc.PublishMsg(msg); err != nil {
		return fmt.Errorf("sending the error reply on %s: %w", m.Subject, err)
	}
	return nil
}
