package bus

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// BorderAPI is what the accounts outside CORE call CORE's JetStream API. Under
// its own name, $JS.API, each account's own would answer.
const BorderAPI = "JS.CORE.API"

// coreAPI is the name inside CORE.
const coreAPI = "$JS.API"

// JetStream is the node's JetStream for a connection made by Connect, whichever
// account its credentials are of.
func JetStream(nc *nats.Conn) (jetstream.JetStream, error) {
	js, err := jetstream.NewWithAPIPrefix(nc, apiOf(nc))
	if err != nil {
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	return js, nil
}

func apiOf(nc *nats.Conn) string {
	role, _, _ := strings.Cut(strings.TrimPrefix(nc.Opts.InboxPrefix, "_INBOX."), ".")
	switch protocol.Role(role) {
	case protocol.RoleAgent, protocol.RoleChild, protocol.RoleApprover, protocol.RoleAuditor:
		return BorderAPI
	default:
		return coreAPI
	}
}
