package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Trust is by what an operator's word is known: an operator's credential is of
// Account, and signed by one of Signers. The zero value trusts nobody.
type Trust struct {
	Account string
	Signers []string
}

// TrustOf is whom the holder of c trusts: a gate those that its credential names,
// an operator whoever issued its own. None where the credential does not say.
func TrustOf(c bus.Creds) Trust {
	if c.Role != protocol.RoleOperator {
		return Trust{Account: c.Account, Signers: c.Signers}
	}
	own, err := jwt.DecodeUserClaims(c.Token())
	if err != nil {
		return Trust{}
	}
	return Trust{Account: own.IssuerAccount, Signers: []string{own.Issuer}}
}

// Known says whether there is anybody to trust.
func (t Trust) Known() bool { return t.Account != "" && len(t.Signers) > 0 }

// sealed is a list as it is stored: its text, an operator's token, and the
// signature of the text by the key that the token names.
type sealed struct {
	V         int    `json:"v"`
	List      string `json:"list"`
	Token     string `json:"token"`
	Signature []byte `json:"signature"`
}

// domain keeps a signature from meaning anything else: an operator's key also
// answers a server's nonce when it connects.
const domain = "assent fleet modules, version 1\n"

// seal signs a list as the operator that holds c.
func seal(c bus.Creds, l List) ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing the list of modules: %w", err)
	}
	sig, err := c.Sign(append([]byte(domain), text...))
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(sealed{V: listVersion, List: string(text), Token: c.Token(), Signature: sig}, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing the list of modules: %w", err)
	}
	if len(b) > maxSealed {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", ErrList, len(b), maxSealed)
	}
	return b, nil
}

// open reads a list that trust vouches for, and says which operator signed it.
// Nothing of the list is looked at before its signature. Errors wrap ErrSeal or
// ErrList.
func (t Trust) open(data []byte) (l List, by string, err error) {
	if !t.Known() {
		return List{}, "", fmt.Errorf("%w: these credentials say nobody whose signature counts: issue new ones (`assent creds issue --role gate`)", ErrSeal)
	}
	if len(data) > maxSealed {
		return List{}, "", fmt.Errorf("%w: it has %d bytes, at most %d", ErrSeal, len(data), maxSealed)
	}
	var s sealed
	if err := json.Unmarshal(data, &s); err != nil {
		return List{}, "", fmt.Errorf("%w: %w", ErrSeal, jsonwords.Of(err))
	}
	if s.V != listVersion {
		return List{}, "", fmt.Errorf("%w: it has version %d and this program knows %d", ErrSeal, s.V, listVersion)
	}
	if by, err = t.signed(s); err != nil {
		return List{}, "", err
	}
	if err := json.Unmarshal([]byte(s.List), &l); err != nil {
		return List{}, "", fmt.Errorf("%w: %w", ErrList, jsonwords.Of(err))
	}
	return l, by, l.check()
}

// signed verifies the token and the signature, and returns the operator's name.
func (t Trust) signed(s sealed) (string, error) {
	// The token's own signature is verified by reading it.
	who, err := jwt.DecodeUserClaims(s.Token)
	if err != nil {
		return "", fmt.Errorf("%w: its token does not verify", ErrSeal)
	}
	switch {
	// Whoever makes up a token can write any account into it: only the issuer counts.
	case !slices.Contains(t.Signers, who.Issuer):
		return "", fmt.Errorf("%w: the key %s signs no operators here", ErrSeal, protocol.Safe(who.Issuer, 60, false))
	case who.IssuerAccount != t.Account, role(who) != protocol.RoleOperator, !protocol.ValidToken(who.Name):
		return "", fmt.Errorf("%w: its token is not an operator's", ErrSeal)
	}
	key, err := nkeys.FromPublicKey(who.Subject)
	if err != nil {
		return "", fmt.Errorf("%w: its token names no key", ErrSeal)
	}
	if key.Verify(append([]byte(domain), s.List...), s.Signature) != nil {
		return "", fmt.Errorf("%w: the signature is not %s's", ErrSeal, who.Name)
	}
	return who.Name, nil
}

func role(u *jwt.UserClaims) (out protocol.Role) {
	for _, tag := range u.Tags {
		if v, ok := strings.CutPrefix(tag, "role:"); ok {
			out = protocol.Role(v)
		}
	}
	return out
}
