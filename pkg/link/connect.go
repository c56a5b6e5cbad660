package link

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Connect opens a connection as the judge's credential called name, from the
// credentials file at creds, with that credential's private inbox: Serve needs
// one. It keeps trying to come back after a break for as long as it takes.
// opts come last. The caller closes the connection after Serve has returned.
func Connect(url, creds, name string, opts ...nats.Option) (*nats.Conn, error) {
	inbox, err := protocol.InboxPrefix(protocol.RoleJudge, name)
	if err != nil {
		return nil, fmt.Errorf("connecting as judge: %w", err)
	}
	all := append([]nats.Option{
		nats.Name("assent judge " + name),
		nats.UserCredentials(creds),
		nats.CustomInboxPrefix(inbox),
		nats.MaxReconnects(-1),
		// A verdict that waited out a break would come after its ask.
		nats.ReconnectBufSize(-1),
	}, opts...)
	nc, err := nats.Connect(url, all...)
	if err != nil {
		return nil, fmt.Errorf("connecting as judge %s to %s: %w", name, url, err)
	}
	return nc, nil
}

func checkInbox(nc *nats.Conn) error {
	prefix := nc.Opts.InboxPrefix
	if name, ok := strings.CutPrefix(prefix, "_INBOX."+string(protocol.RoleJudge)+"."); ok && protocol.ValidToken(name) {
		return nil
	}
	return fmt.Errorf("%w: its inbox is %q: connect with link.Connect, or with nats.CustomInboxPrefix(\"_INBOX.judge.NAME\")", ErrInbox, prefix)
}
