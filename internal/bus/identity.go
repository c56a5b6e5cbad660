package bus

import (
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/pkg/protocol"
)

// HeaderIdentity is the header in which the server states who sent a request
// over an account border. The server overwrites one that the sender has set.
// It is only as good as the border: inside an account anybody may set it.
const HeaderIdentity = "Nats-Request-Info"

// Identity is the sender of a request, as the server states it.
type Identity struct {
	// Account is the public key of the sender's account.
	Account string
	// Key is the public key of the sender's credential.
	Key string
	// Name is the name that the credential was issued for.
	Name string
	// Client is the connection's number on the server Server, Host where it
	// came from.
	Client uint64
	Server string
	Host   string
}

// IdentityOf reads the sender of a request that came over an account border.
// It refuses (ErrIdentity) a request whose reply subject the server has not
// made: its header would prove nothing.
func IdentityOf(msg *nats.Msg) (Identity, error) {
	stated, err := statement(msg)
	if err != nil {
		return Identity{}, err
	}
	return readIdentity(stated)
}

// Identities is IdentityOf for whoever hears the same senders again and again: a
// statement is read once. Safe for concurrent use; the zero value is ready.
type Identities struct {
	mu   sync.RWMutex
	read map[string]Identity // by the whole text of the statement
}

// Bounds of what is remembered: a statement is the server's, but its number is
// not.
const (
	maxIdentities = 4096
	maxStatement  = 2048
)

// Of is IdentityOf. The same text is the same sender, so what is remembered is
// never out of date; what is refused is not remembered.
func (i *Identities) Of(msg *nats.Msg) (Identity, error) {
	stated, err := statement(msg)
	if err != nil {
		return Identity{}, err
	}
	i.mu.RLock()
	id, known := i.read[stated]
	i.mu.RUnlock()
	if known {
		return id, nil
	}
	id, err = readIdentity(stated)
	if err == nil && len(stated) <= maxStatement {
		i.remember(stated, id)
	}
	return id, err
}

func (i *Identities) remember(stated string, id Identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.read == nil || len(i.read) >= maxIdentities {
		i.read = map[string]Identity{}
	}
	i.read[stated] = id
}

// statement is what the server states of a request's sender.
func statement(msg *nats.Msg) (string, error) {
	if !protocol.ReplyAcross(msg.Reply) {
		return "", fmt.Errorf("%w: it did not come over an account border", ErrIdentity)
	}
	values := msg.Header.Values(HeaderIdentity)
	if len(values) != 1 {
		return "", fmt.Errorf("%w: %d headers %s", ErrIdentity, len(values), HeaderIdentity)
	}
	return values[0], nil
}

func readIdentity(stated string) (Identity, error) {
	var h struct {
		Account string `json:"acc"`
		User    string `json:"user"`
		NameTag string `json:"name_tag"`
		ID      uint64 `json:"id"`
		Server  string `json:"server"`
		Host    string `json:"host"`
		Service string `json:"svc"`
	}
	if err := json.Unmarshal([]byte(stated), &h); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if h.Service != "" {
		// It crossed more than one border, and the header is about the first.
		return Identity{}, fmt.Errorf("%w: it came through another account", ErrIdentity)
	}
	if !nkeys.IsValidPublicAccountKey(h.Account) || !nkeys.IsValidPublicUserKey(h.User) || !protocol.ValidToken(h.NameTag) {
		return Identity{}, fmt.Errorf("%w: account, key or name is missing", ErrIdentity)
	}
	return Identity{Account: h.Account, Key: h.User, Name: h.NameTag, Client: h.ID, Server: h.Server, Host: h.Host}, nil
}
