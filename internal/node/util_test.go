package node_test

import (
	"testing"

	"github.com/nats-io/nats.go"
)

type connected struct {
	*nats.Conn
	creds []byte
}

// answerAll answers everything on subject with body until the test is over.
func answerAll(t *testing.T, nc *nats.Conn, subject, body string) {
	t.Helper()
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(body)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
