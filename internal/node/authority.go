package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/pkg/protocol"
)

// authorityWait is how long an operation waits for another process that works
// on the same keys.
const authorityWait = 5 * time.Second

// Authority makes and withdraws the credentials of one node. Its source of
// truth is the folder auth of the store: keys, the ledger of what was issued,
// and the account JWTs made from both. Any number of processes may use one
// store; each operation holds a lock and reads anew. Safe for concurrent use.
type Authority struct {
	store string
	dir   string
	node  string

	mu   sync.Mutex
	push pusher // how to tell the server of this process; nil without one
}

// OpenAuthority opens the keys in store, made anew if there are none and node
// names one. With node "" the store must have keys already (ErrNoAuthority).
// It refuses files that others may read (ErrExposed) and the store of another
// node (ErrNodeMismatch).
func OpenAuthority(store, node string) (*Authority, error) {
	if node != "" {
		if err := protocol.CheckToken("node", node); err != nil {
			return nil, err
		}
	}
	a := &Authority{store: store, dir: filepath.Join(store, "auth")}
	if node == "" {
		// Only look: an error in a name must not leave a folder behind.
		if err := checkPrivate(a.dir); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%w: %s; run `assent up` or `assent creds init` first, or name the right store", ErrNoAuthority, store)
			}
			return nil, err
		}
	} else {
		for _, dir := range []string{store, a.dir} {
			if err := ensurePrivateDir(dir); err != nil {
				return nil, err
			}
		}
	}
	err := a.locked(node, func(k *keys, led *ledger) error {
		a.node = k.Node
		_, err := a.resign(k, led)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Node is the name of the node whose authority this is.
func (a *Authority) Node() string { return a.node }

// IssueOptions widen or bound a credential.
type IssueOptions struct {
	// Links are the links that a judge may serve; "*" is every link. Only a
	// judge has them, and needs at least one.
	Links []string
	// Expires is when the server stops to accept the credential; the zero time
	// is never.
	Expires time.Time
	// Again issues a further credential although one of this role and name is
	// live: for a second process, or to replace one before revoking it. The
	// older ones live on until they are revoked.
	Again bool
}

// Issue makes a credential (a NATS creds file: JWT and seed) for role and name.
// It needs no running server. The credential is in the ledger, on disk, before
// it is returned. Without opts.Again a live one of the same role and name is
// ErrExists.
func (a *Authority) Issue(role protocol.Role, name string, opts IssueOptions) ([]byte, error) {
	if err := checkIssue(role, name, opts); err != nil {
		return nil, err
	}
	// As the token says it: to the second.
	opts.Expires = opts.Expires.UTC().Truncate(time.Second)
	var creds []byte
	err := a.locked("", func(k *keys, led *ledger) error {
		if live := led.live(role, name); len(live) > 0 && !opts.Again {
			return fmt.Errorf("%w: %s %s (%s, issued %s); revoke it first, or ask for another one explicitly",
				ErrExists, role, name, live[0].Key, live[0].Issued.Format(time.RFC3339))
		}
		b, key, err := k.issue(role, name, opts)
		if err != nil {
			return err
		}
		led.Issued = append(led.Issued, Credential{
			Key: key, Role: role, Name: name, Links: opts.Links,
			Issued: led.now().UTC().Truncate(time.Second), Expires: opts.Expires,
		})
		if err := led.save(); err != nil {
			return err
		}
		creds = b
		return nil
	})
	return creds, err
}

func checkIssue(role protocol.Role, name string, opts IssueOptions) error {
	if _, err := protocol.ParseRole(string(role)); err != nil {
		return err
	}
	if err := protocol.CheckToken("name", name); err != nil {
		return err
	}
	if role == protocol.RoleJudge && len(opts.Links) == 0 {
		return fmt.Errorf("%w: a judge's credential is bound to its links; name them (--link NAME, or '*' for every link)", ErrRequest)
	}
	if role != protocol.RoleJudge && len(opts.Links) > 0 {
		return fmt.Errorf("%w: only a judge has links, not the role %s", ErrRequest, role)
	}
	for _, l := range opts.Links {
		if l == "*" {
			continue
		}
		if err := protocol.CheckToken("link", l); err != nil {
			return err
		}
	}
	if !opts.Expires.IsZero() && !opts.Expires.After(time.Now()) {
		return fmt.Errorf("%w: its expiry %s is past", ErrRequest, opts.Expires.Format(time.RFC3339))
	}
	return nil
}

// issue signs one credential. It writes nothing.
func (k *keys) issue(role protocol.Role, name string, opts IssueOptions) (creds []byte, key string, err error) {
	acc, err := accountOf(role)
	if err != nil {
		return nil, "", err
	}
	seed, pub, err := newSeed(nkeys.PrefixByteUser)
	if err != nil {
		return nil, "", err
	}
	c := jwt.NewUserClaims(pub)
	c.Name = name
	c.IssuerAccount = k.Accounts[acc]
	c.SetScoped(true)
	// Appended and not Added: TagList.Add lower-cases, and a link's name is part
	// of a subject, where case counts.
	c.Tags = append(c.Tags, tagRole+":"+string(role))
	for _, l := range opts.Links {
		c.Tags = append(c.Tags, tagLink+":"+l)
	}
	if role == protocol.RoleGate {
		signer, err := k.scopePublic(protocol.RoleOperator)
		if err != nil {
			return nil, "", err
		}
		c.Tags = append(c.Tags, tagSigner+":"+signer)
	}
	if !opts.Expires.IsZero() {
		c.Expires = opts.Expires.Unix()
	}
	tok, err := k.signUser(role, c)
	if err != nil {
		return nil, "", err
	}
	creds, err = jwt.FormatUserConfig(tok, []byte(seed))
	if err != nil {
		return nil, "", fmt.Errorf("writing a credential: %w", err)
	}
	return creds, pub, nil
}

// List returns every credential ever issued, oldest first.
func (a *Authority) List() ([]Credential, error) {
	var out []Credential
	err := a.locked("", func(_ *keys, led *ledger) error {
		out = append(out, led.Issued...)
		return nil
	})
	return out, err
}

// AccountJWTs are the account JWTs as a server needs them, by public key.
func (a *Authority) AccountJWTs() (map[string]string, error) {
	var out map[string]string
	err := a.locked("", func(k *keys, led *ledger) error {
		var err error
		out, err = a.resign(k, led)
		return err
	})
	return out, err
}

// locked runs f on the keys and the ledger as they are on disk now, while no
// other process changes them.
func (a *Authority) locked(node string, f func(*keys, *ledger) error) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, err := lock(filepath.Join(a.dir, "lock"), authorityWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	k, err := loadKeys(a.dir, node)
	if err != nil {
		return err
	}
	led, err := loadLedger(filepath.Join(a.dir, "issued.json"))
	if err != nil {
		return err
	}
	return f(k, led)
}

// resign returns every account's JWT, signing anew those that no longer say
// what table, keys and ledger say.
func (a *Authority) resign(k *keys, led *ledger) (map[string]string, error) {
	out := map[string]string{}
	for _, acc := range Accounts {
		want, err := accountClaims(acc, k.Node, k, led)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(a.dir, string(acc)+".jwt")
		tok, err := readPrivate(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !saysTheSame(string(tok), want) {
			fresh, err := k.signAccount(want)
			if err != nil {
				return nil, err
			}
			tok = []byte(fresh)
			if err := replacePrivate(path, tok, false); err != nil {
				return nil, err
			}
		}
		out[k.Accounts[acc]] = string(tok)
	}
	return out, nil
}

func saysTheSame(tok string, want *jwt.AccountClaims) bool {
	have, err := jwt.DecodeAccountClaims(tok)
	if err != nil || have.Subject != want.Subject {
		return false
	}
	h, errH := digest(have)
	w, errW := digest(want)
	return errH == nil && errW == nil && bytes.Equal(h, w)
}

// digest is over what an account says, not over when it was signed.
func digest(c *jwt.AccountClaims) ([]byte, error) {
	body := c.Account
	body.GenericFields = jwt.GenericFields{}
	b, err := json.Marshal(&body, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("comparing accounts: %w", err)
	}
	sum := sha256.Sum256(append(b, c.Name...))
	return sum[:], nil
}

// attach tells the authority of the server in this process; nil when it ends.
func (a *Authority) attach(p pusher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.push = p
}

// trust is what a server must know: whom to trust, and its system account.
func (a *Authority) trust() (*jwt.OperatorClaims, string, error) {
	var op *jwt.OperatorClaims
	var system string
	err := a.locked("", func(k *keys, _ *ledger) error {
		var err error
		if op, err = jwt.DecodeOperatorClaims(k.OperatorJWT); err != nil {
			return fmt.Errorf("reading the operator's token: %w", err)
		}
		system = k.Accounts[System]
		return nil
	})
	return op, system, err
}
