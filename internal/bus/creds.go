package bus

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Creds is what a credentials file says about itself. Nothing of it is
// verified here: the server does that.
type Creds struct {
	// Key is the public key, as the server states it to services.
	Key     string
	Role    protocol.Role
	Name    string
	Links   []string
	Expires time.Time // the zero time is never

	inbox string
	raw   []byte
}

// ReadCreds reads a credentials file. Errors wrap ErrCreds.
func ReadCreds(path string) (Creds, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Creds{}, fmt.Errorf("%w: %w; issue one with `assent creds issue`, or name the right file", ErrCreds, err)
	}
	c, err := ParseCreds(b)
	if err != nil {
		return Creds{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCreds reads the content of a credentials file. Errors wrap ErrCreds and
// never show the content: it holds a secret.
func ParseCreds(b []byte) (Creds, error) {
	const remedy = "issue one with `assent creds issue`"
	tok, err := nkeys.ParseDecoratedJWT(b)
	if err != nil {
		return Creds{}, fmt.Errorf("%w: not a NATS credentials file; %s", ErrCreds, remedy)
	}
	u, err := jwt.DecodeUserClaims(tok)
	if err != nil {
		return Creds{}, fmt.Errorf("%w: its token cannot be read; %s", ErrCreds, remedy)
	}
	kp, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		return Creds{}, fmt.Errorf("%w: it holds no key; %s", ErrCreds, remedy)
	}
	kp.Wipe()
	c := Creds{Key: u.Subject, Name: u.Name, raw: b}
	for _, tag := range u.Tags {
		if v, ok := strings.CutPrefix(tag, "role:"); ok {
			c.Role = protocol.Role(v)
		}
		if v, ok := strings.CutPrefix(tag, "link:"); ok {
			c.Links = append(c.Links, v)
		}
	}
	if u.Expires != 0 {
		c.Expires = time.Unix(u.Expires, 0).UTC()
	}
	if c.Role == "" || !protocol.ValidToken(string(c.Role)) || !protocol.ValidToken(c.Name) {
		return Creds{}, fmt.Errorf("%w: it names no role and holder of Assent; %s", ErrCreds, remedy)
	}
	c.inbox = "_INBOX." + string(c.Role) + "." + c.Name
	return c, nil
}
