package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
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
// confirm, the error is ErrNotConfirmed. Whether any server was told at all is
// Tell's to say: a server that does not run on the store is not.
func (a *Authority) Revoke(ctx context.Context, sel Selector) ([]Credential, error) {
	r, err := a.Withdraw(sel)
	if err != nil {
		return nil, err
	}
	if _, err := a.Tell(ctx, ""); err != nil {
		return r.Now, fmt.Errorf("revoked and recorded, but %w; restart the server, or try again", err)
	}
	return r.Now, nil
}

// Withdrawal is what Withdraw found.
type Withdrawal struct {
	// Now are the credentials that it recorded as revoked.
	Now []Credential
	// Before are those that match and were revoked already, where none was live:
	// somebody says it again, perhaps because the server did not hear it.
	Before []Credential
}

// Withdraw records that credentials are revoked. It tells no server: until Tell
// has, a running one still takes them. What is revoked already may be withdrawn
// again; nothing that matches is ErrUnknownCredential.
func (a *Authority) Withdraw(sel Selector) (Withdrawal, error) {
	var w Withdrawal
	err := a.locked("", func(k *keys, led *ledger) error {
		now := led.now()
		for i, c := range led.Issued {
			switch {
			case !sel.matches(c):
			case c.Live(now):
				led.Issued[i].Revoked = now.UTC().Truncate(time.Second)
				w.Now = append(w.Now, led.Issued[i])
			case !c.Revoked.IsZero():
				w.Before = append(w.Before, c)
			}
		}
		switch {
		case len(w.Now) > 0:
			w.Before = nil
		case len(w.Before) > 0:
			return nil
		default:
			return fmt.Errorf("%w: nothing live is called %s; see `assent creds list`", ErrUnknownCredential, sel)
		}
		if err := led.save(); err != nil {
			return err
		}
		_, err := a.resign(k, led)
		return err
	})
	if err != nil {
		return Withdrawal{}, err
	}
	return w, nil
}

func (s Selector) String() string {
	return strings.Join(slices.DeleteFunc([]string{s.Key, string(s.Role), s.Name}, func(w string) bool { return w == "" }), " ")
}

// Tell hands every account's JWT, and with it every revocation, to the server
// at url, if there is one, and to the one that runs on this store, if one does:
// in this process, or at the address that its owner left in the store. It
// returns the addresses of those that confirmed; none and no error means that
// there was nobody to tell. One that does not confirm is ErrNotConfirmed. It
// may be repeated.
func (a *Authority) Tell(ctx context.Context, url string) (told []string, err error) {
	var errs []error
	note := func(at string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrNotConfirmed, at, err))
			return
		}
		told = append(told, at)
	}
	own, err := a.tellOwn(ctx)
	if own != "" {
		note(own, err)
	}
	if url != "" && url != own {
		note(url, a.PushTo(ctx, url))
	}
	return told, errors.Join(errs...)
}

// tellOwn tells the server that runs on this store; own is "" without one.
func (a *Authority) tellOwn(ctx context.Context) (own string, err error) {
	a.mu.Lock()
	push := a.push
	a.mu.Unlock()
	if push != nil {
		all, err := a.AccountJWTs()
		if err != nil {
			return ownServer, err
		}
		return ownServer, push(ctx, slices.Collect(maps.Values(all)))
	}
	if !held(filepath.Join(a.store, lockName)) {
		return "", nil
	}
	at, err := readAddress(a.store)
	if err != nil {
		return ownServer, fmt.Errorf("a node runs on the store, but its address cannot be read: %w", err)
	}
	return at.NATS, a.PushTo(ctx, at.NATS)
}

// ownServer stands for the address of the server that runs on the store where
// it cannot be named better.
const ownServer = "the server on this store"

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
	return pushClaims(ctx, nc, slices.Collect(maps.Values(all)))
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
