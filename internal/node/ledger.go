package node

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Credential is one issued credential, as the ledger remembers it. It holds no
// secret.
type Credential struct {
	// Key is the public key, the credential's identity to the server.
	Key    string        `json:"key"`
	Role   protocol.Role `json:"role"`
	Name   string        `json:"name"`
	Links  []string      `json:"links,omitempty"`
	Issued time.Time     `json:"issued"`
	// Expires and Revoked are the zero time for never.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Live says whether the credential is neither revoked nor expired at now.
func (c Credential) Live(now time.Time) bool { return c.Revoked.IsZero() && !c.expired(now) }

func (c Credential) expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

func (c Credential) account() Account {
	acc, err := accountOf(c.Role)
	if err != nil {
		return ""
	}
	return acc
}

// ledger is every credential ever issued, in order. Revocations in the account
// JWTs are made from it.
type ledger struct {
	V      int          `json:"v"`
	Issued []Credential `json:"issued"`

	path string
	now  func() time.Time
}

func loadLedger(path string) (*ledger, error) {
	l := &ledger{V: 1, path: path, now: time.Now}
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, l); err != nil {
		// Going on without it would forget every revocation.
		return nil, fmt.Errorf("%w: %s: %w; restore it from a copy: without it revoked credentials would live again", ErrStoreAccess, path, jsonwords.Of(err))
	}
	return l, nil
}

func (l *ledger) save() error {
	b, err := json.Marshal(l, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		return fmt.Errorf("writing the list of credentials: %w", err)
	}
	return WritePrivate(l.path, append(b, '\n'))
}

func (l *ledger) live(role protocol.Role, name string) []Credential {
	var out []Credential
	for _, c := range l.Issued {
		if c.Role == role && c.Name == name && c.Live(l.now()) {
			out = append(out, c)
		}
	}
	return out
}
