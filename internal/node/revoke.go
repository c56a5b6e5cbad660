package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// pusher hands account JWTs to a running server and returns when it has taken
// them in.
type pusher func(ctx context.Context, tokens []string) error

// systemLife is how long the authority's own credential lives. It is made for
// one push, never handed out and so not in the ledger.
const systemLife = time.Minute

// Selector names credentials to revoke: by key, or all live ones of a role and
// name.
type Selector struct {
	Key  string
	Role protocol.Role
	Name string
}

func (s Selector) matches(c Credential) bool {
	if s.Key != "" {
		return c.Key == s.Key
	}
	return s.Role != "" && s.Name != "" && c.Role == s.Role && c.Name == s.Name
}

// Revoke withdraws credentials for good: the server cuts their connections and
// refuses new ones, now and after a restart. It returns those that it revoked.
// It is recorded on disk first; when a node runs on the store but does not
// confirm, the error is ErrNotConfirmed. An outside server is told by PushTo.
func (a *Authority) Revoke(ctx context.Context, sel Selector) ([]Credential, error) {
	var revoked []Credential
	var tokens []string
	err := a.locked("", func(k *keys, led *ledger) error {
		now := led.now()
		for i, c := range led.Issued {
			if sel.matches(c) && c.Live(now) {
				led.Issued[i].Revoked = now.UTC().Truncate(time.Second)
				revoked = append(revoked, led.Issued[i])
			}
		}
		if len(revoked) == 0 {
			return fmt.Errorf("%w: nothing live is called %s%s %s; see `assent creds list`", ErrUnknownCredential, sel.Key, sel.Role, sel.Name)
		}
		if err := led.save(); err != nil {
			return err
		}
		return collect(a, k, led, &tokens)
	})
	if err != nil {
		return nil, err
	}
	if err := a.tell(ctx, tokens); err != nil {
		return revoked, fmt.Errorf("revoked and recorded, but %w: %w; restart the server, or try again", ErrNotConfirmed, err)
	}
	return revoked, nil
}

func collect(a *Authority, k *keys, led *ledger, tokens *[]string) error {
	all, err := a.resign(k, led)
	if err != nil {
		return err
	}
	for _, tok := range all {
		*tokens = append(*tokens, tok)
	}
	return nil
}

// tell hands the account JWTs to the server that runs on this store, if one
// does: in this process, or at the address that its owner left in the store.
func (a *Authority) tell(ctx context.Context, tokens []string) error {
	a.mu.Lock()
	push := a.push
	a.mu.Unlock()
	if push != nil {
		return push(ctx, tokens)
	}
	if !held(filepath.Join(a.store, lockName)) {
		return nil
	}
	at, err := readAddress(a.store)
	if err != nil {
		return fmt.Errorf("a node runs on the store, but its address cannot be read: %w", err)
	}
	return a.PushTo(ctx, at.NATS)
}

// PushTo hands every account's JWT to the server at url: for a server that
// does not run on this store.
func (a *Authority) PushTo(ctx context.Context, url string) error {
	all, err := a.AccountJWTs()
	if err != nil {
		return err
	}
	nc, err := a.systemConn(ctx, bus.Config{URL: url})
	if err != nil {
		return err
	}
	defer nc.Close()
	tokens := make([]string, 0, len(all))
	for _, tok := range all {
		tokens = append(tokens, tok)
	}
	return pushClaims(ctx, nc, tokens)
}

// systemConn connects as the authority itself.
func (a *Authority) systemConn(ctx context.Context, cfg bus.Config) (*nats.Conn, error) {
	return a.privateConn(ctx, roleSystem, cfg)
}

// privateConn connects with a credential made for this one connection. It
// lives for a minute, leaves this process never, and is not in the ledger.
func (a *Authority) privateConn(ctx context.Context, role protocol.Role, cfg bus.Config) (*nats.Conn, error) {
	err := a.locked("", func(k *keys, _ *ledger) error {
		b, _, err := k.issue(role, "node", IssueOptions{Expires: time.Now().Add(systemLife)})
		cfg.CredsBytes = b
		return err
	})
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, cfg)
}

// pushClaims sends each JWT to the server and waits for it to be taken in.
func pushClaims(ctx context.Context, nc *nats.Conn, tokens []string) error {
	var errs []error
	for _, tok := range tokens {
		errs = append(errs, pushClaim(ctx, nc, tok))
	}
	return errors.Join(errs...)
}

func pushClaim(ctx context.Context, nc *nats.Conn, tok string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, "$SYS.REQ.CLAIMS.UPDATE", []byte(tok))
	if err != nil {
		return fmt.Errorf("handing an account to the server: %w", err)
	}
	var reply struct {
		Data *struct {
			Code int `json:"code"`
		} `json:"data"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return fmt.Errorf("handing an account to the server: reading its reply: %w", err)
	}
	if reply.Error != nil {
		return fmt.Errorf("the server refused an account: %s", reply.Error.Description)
	}
	if reply.Data == nil || reply.Data.Code != 200 {
		return errors.New("the server did not say that it took the account in")
	}
	return nil
}
