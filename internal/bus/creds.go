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
	// Account is the public key of the account that it is of, and Signers are the
	// keys whose signature makes an operator's credential there; only a gate's says.
	Account string
	Signers []string

	inbox string
	token string
	raw   []byte
}

// Token is the credential's public half: a JWT that says whose it is, and is
// signed by the account.
func (c Creds) Token() string { return c.token }

// Sign signs data with the credential's private half.
func (c Creds) Sign(data []byte) ([]byte, error) {
	kp, err := nkeys.ParseDecoratedNKey(c.raw)
	if err != nil {
		return nil, fmt.Errorf("%w: it holds no key", ErrCreds)
	}
	defer kp.Wipe()
	sig, err := kp.Sign(data)
	if err != nil {
		return nil, fmt.Errorf("%w: signing: %w", ErrCreds, err)
	}
	return sig, nil
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
	c := Creds{Key: u.Subject, Name: u.Name, Account: u.IssuerAccount, token: tok, raw: b}
	for _, tag := range u.Tags {
		if v, ok := strings.CutPrefix(tag, "role:"); ok {
			c.Role = protocol.Role(v)
		}
		if v, ok := strings.CutPrefix(tag, "link:"); ok {
			c.Links = append(c.Links, v)
		}
		if v, ok := strings.CutPrefix(tag, "signer:"); ok {
			c.Signers = append(c.Signers, v)
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
