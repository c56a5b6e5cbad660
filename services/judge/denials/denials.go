// Package denials remembers what a link has denied, so that an agent that asks
// the same again hears the same reason without a model.
//
// Denials only: Deny takes a reason and no verdict, so that no allow, defer or
// failure can come to stand here. A denial holds for exactly the facts it was
// given on, the policy revision, the link's own settings and its model, and for
// no call whose meaning stands in a file that may have changed since.
package denials

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Cache holds denials, bounded in number and age. A nil Cache holds none. Use
// New. Safe for concurrent use.
type Cache struct {
	held *lru.Cache[Key, denial]
	ttl  time.Duration
	now  func() time.Time
}

type denial struct {
	reason string
	until  time.Time
}

// Key stands for the facts of a call. The zero Key is of a call that must not
// be remembered, and finds nothing.
type Key [sha256.Size]byte

// New returns a cache of at most entries denials, each held for ttl from when
// it was given; the one not used for longest goes first. Without room or time it
// is nil, the cache that holds nothing.
func New(entries int, ttl time.Duration) *Cache {
	if entries < 1 || ttl <= 0 {
		return nil
	}
	held, err := lru.New[Key, denial](entries)
	if err != nil { // only for a size below 1
		return nil
	}
	return &Cache{held: held, ttl: ttl, now: time.Now}
}

// Lookup returns the reason of a denial that still holds.
func (c *Cache) Lookup(k Key) (reason string, ok bool) {
	if c == nil || k == (Key{}) {
		return "", false
	}
	d, ok := c.held.Get(k)
	switch {
	case !ok:
		return "", false
	case !c.now().Before(d.until):
		c.held.Remove(k)
		return "", false
	default:
		return d.reason, true
	}
}

// Deny remembers a denial that was given just now.
func (c *Cache) Deny(k Key, reason string) {
	if c == nil || k == (Key{}) || reason == "" || len(reason) > protocol.MaxReason {
		return
	}
	c.held.Add(k, denial{reason, c.now().Add(c.ttl)})
}

// Len is how many denials are held, those past their time included.
func (c *Cache) Len() int {
	if c == nil {
		return 0
	}
	return c.held.Len()
}

// subject is what a denial is about: everything that a link is handed, but for
// what changes with each ask.
type subject struct {
	Config   []string         `json:"config"`
	Revision uint64           `json:"revision"`
	Ask      protocol.Ask     `json:"ask"`
	Asks     []protocol.Entry `json:"asks"`
	Units    []protocol.Unit  `json:"units"`
}

// KeyOf is the key of r's facts without its ids, session and times. config is
// what else a denial hangs on: the link's name, its settings and its model. The
// zero Key where the policy's revision is not known, or where the call runs, or
// may run, a script of the host: what that does can change between two asks.
func KeyOf(r link.Request, config ...string) Key {
	if r.PolicyRevision == 0 || !scriptFree(r) {
		return Key{}
	}
	ask := r.Ask
	ask.ID, ask.Session, ask.Tool.CallID, ask.MaxWaitMS = "", protocol.Session{}, "", 0
	ask.Tool.Input = ask.Tool.Input.Clone()
	if err := ask.Tool.Input.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return Key{}
	}
	data, err := json.Marshal(subject{config, r.PolicyRevision, ask, r.Asks, r.Units}, json.Deterministic(true))
	if err != nil {
		return Key{}
	}
	return sha256.Sum256(data)
}

// String shows a key's first bytes, for logs.
func (k Key) String() string { return fmt.Sprintf("%x", k[:6]) }
