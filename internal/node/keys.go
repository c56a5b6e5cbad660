package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// keys is everything secret of a node, made once. The operator signs accounts,
// each scope signs the credentials of one role. The accounts' own seeds are
// thrown away when made: nothing needs them, so nobody can steal them.
type keys struct {
	V    int    `json:"v"`
	Node string `json:"node"`
	// Operator signs the operator's JWT, Signer the accounts.
	Operator string `json:"operator"`
	Signer   string `json:"signer"`
	// Accounts are public keys; Scopes are seeds, one a role.
	Accounts map[Account]string       `json:"accounts"`
	Scopes   map[protocol.Role]string `json:"scopes"`
	// OperatorJWT is what a server trusts.
	OperatorJWT string `json:"operator_jwt"`
}

const keysVersion = 1

// loadKeys reads the keys of the store, or makes them when there are none and
// node names one. A store of another node is refused: its account JWTs speak of
// that node's subjects.
func loadKeys(dir, node string) (*keys, error) {
	path := filepath.Join(dir, "keys.json")
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		if node == "" {
			return nil, fmt.Errorf("%w: %s; run `assent up` or `assent creds init` first, or name the right store", ErrNoAuthority, dir)
		}
		return makeKeys(path, node)
	}
	if err != nil {
		return nil, err
	}
	k := &keys{}
	if err := json.Unmarshal(b, k); err != nil {
		return nil, fmt.Errorf("%w: %s: %w; restore it from a copy", ErrStoreAccess, path, jsonwords.Of(err))
	}
	if k.V != keysVersion {
		return nil, fmt.Errorf("%w: %s has version %d and this program knows %d; use the program that made it", ErrStoreAccess, path, k.V, keysVersion)
	}
	if node != "" && k.Node != node {
		return nil, fmt.Errorf("%w: %s belongs to node %q, not %q; use --node %s or another store", ErrNodeMismatch, dir, k.Node, node, k.Node)
	}
	return k, k.complete(path)
}

func makeKeys(path, node string) (*keys, error) {
	if err := protocol.CheckToken("node", node); err != nil {
		return nil, err
	}
	k := &keys{V: keysVersion, Node: node, Accounts: map[Account]string{}, Scopes: map[protocol.Role]string{}}
	return k, k.complete(path)
}

// complete makes what is missing (a new store, or a role or account that a newer
// table added) and writes the file if it made anything.
func (k *keys) complete(path string) error {
	made := 0
	if k.Operator == "" {
		for _, seed := range []*string{&k.Operator, &k.Signer} {
			s, _, err := newSeed(nkeys.PrefixByteOperator)
			if err != nil {
				return err
			}
			*seed = s
			made++
		}
	}
	for _, acc := range Accounts {
		if k.Accounts[acc] != "" {
			continue
		}
		_, pub, err := newSeed(nkeys.PrefixByteAccount)
		if err != nil {
			return err
		}
		k.Accounts[acc] = pub
		made++
	}
	for _, r := range Rights() {
		if k.Scopes[r.Role] != "" {
			continue
		}
		s, _, err := newSeed(nkeys.PrefixByteAccount)
		if err != nil {
			return err
		}
		k.Scopes[r.Role] = s
		made++
	}
	if made == 0 {
		return nil
	}
	if err := k.signOperator(); err != nil {
		return err
	}
	b, err := json.Marshal(k, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("writing keys: %w", err)
	}
	return WritePrivate(path, append(b, '\n'))
}

// signOperator makes the JWT that a server trusts: only the signing keys sign,
// so the operator's own key can be taken off the machine.
func (k *keys) signOperator() error {
	op, err := nkeys.FromSeed([]byte(k.Operator))
	if err != nil {
		return fmt.Errorf("reading the operator's key: %w", err)
	}
	pub, err := op.PublicKey()
	if err != nil {
		return fmt.Errorf("reading the operator's key: %w", err)
	}
	signer, err := public(k.Signer)
	if err != nil {
		return err
	}
	c := jwt.NewOperatorClaims(pub)
	c.Name = "assent-" + k.Node
	c.SigningKeys.Add(signer)
	c.StrictSigningKeyUsage = true
	c.SystemAccount = k.Accounts[System]
	k.OperatorJWT, err = c.Encode(op)
	if err != nil {
		return fmt.Errorf("signing the operator: %w", err)
	}
	return nil
}

func (k *keys) signAccount(c *jwt.AccountClaims) (string, error) {
	kp, err := nkeys.FromSeed([]byte(k.Signer))
	if err != nil {
		return "", fmt.Errorf("reading the operator's signing key: %w", err)
	}
	defer kp.Wipe()
	tok, err := c.Encode(kp)
	if err != nil {
		return "", fmt.Errorf("signing account %s: %w", c.Name, err)
	}
	return tok, nil
}

func (k *keys) signUser(role protocol.Role, c *jwt.UserClaims) (string, error) {
	kp, err := nkeys.FromSeed([]byte(k.Scopes[role]))
	if err != nil {
		return "", fmt.Errorf("reading the signing key of role %s: %w", role, err)
	}
	defer kp.Wipe()
	tok, err := c.Encode(kp)
	if err != nil {
		return "", fmt.Errorf("signing a credential: %w", err)
	}
	return tok, nil
}

func (k *keys) scopePublic(role protocol.Role) (string, error) { return public(k.Scopes[role]) }

func public(seed string) (string, error) {
	kp, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("reading a key: %w", err)
	}
	defer kp.Wipe()
	pub, err := kp.PublicKey()
	if err != nil {
		return "", fmt.Errorf("reading a key: %w", err)
	}
	return pub, nil
}

func newSeed(prefix nkeys.PrefixByte) (seed, pub string, err error) {
	kp, err := nkeys.CreatePair(prefix)
	if err != nil {
		return "", "", fmt.Errorf("making a key: %w", err)
	}
	defer kp.Wipe()
	b, err := kp.Seed()
	if err != nil {
		return "", "", fmt.Errorf("making a key: %w", err)
	}
	pub, err = kp.PublicKey()
	if err != nil {
		return "", "", fmt.Errorf("making a key: %w", err)
	}
	return string(b), pub, nil
}
