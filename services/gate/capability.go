package gate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of one capability, query and log together: how often it may be used,
// how fast (a burst, then so many a second), and how many bytes of records it may
// have kept. A judge must fill neither the gate's time nor its disk: with a full
// disk nothing is allowed. They are not shared along the chain: one link must not
// use up what the next needs.
const (
	maxUses      = 256
	maxBurst     = 64
	maxPerSecond = 32
	maxKept      = 128 << 10
)

// capability lets one worker of one link query the rules and write to the log
// about one ask, until the verdict or the deadline. The two subjects carry 128
// random bits each: who was not handed them cannot use them.
type capability struct {
	ask        protocol.Ask
	link       string
	deadline   time.Time
	query, log string
	tokens     [2]string
	accepted   chan struct{}
	pace       *rate.Limiter

	mu    sync.Mutex
	inbox string // whose it is: the first inbox that used it
	uses  int
	kept  int // bytes of records
	said  bool
}

// capabilities is the gate's table of what is out.
type capabilities struct {
	gate     string
	subjects protocol.Subjects

	mu  sync.Mutex
	out map[string]*capability // by token
}

func newCapabilities(gate string, subjects protocol.Subjects) *capabilities {
	return &capabilities{gate: gate, subjects: subjects, out: map[string]*capability{}}
}

// issue makes a capability for one attempt on one link.
func (t *capabilities) issue(p protocol.Pending, link string, deadline time.Time) *capability {
	c := &capability{
		ask: p.Ask, link: link, deadline: deadline, tokens: [2]string{secret(), secret()},
		accepted: make(chan struct{}), pace: rate.NewLimiter(maxPerSecond, maxBurst),
	}
	// The gate's name and a hex token are always tokens.
	c.query, _ = t.subjects.Query(t.gate, c.tokens[0])
	c.log, _ = t.subjects.Log(t.gate, c.tokens[1])
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out[c.tokens[0]], t.out[c.tokens[1]] = c, c
	return c
}

// revoke ends capabilities: after the verdict they answer nothing.
func (t *capabilities) revoke(cs ...*capability) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range cs {
		delete(t.out, c.tokens[0])
		delete(t.out, c.tokens[1])
	}
}

// use finds the capability of a request and binds it to its inbox. A fault says
// why it is refused.
func (t *capabilities) use(kind protocol.Kind, token, reply string, now time.Time) (*capability, *protocol.Fault) {
	t.mu.Lock()
	c := t.out[token]
	t.mu.Unlock()
	// A query token does not open the log, nor the other way round.
	if c == nil || kind == protocol.KindQuery && token != c.tokens[0] || kind == protocol.KindLog && token != c.tokens[1] {
		return nil, &protocol.Fault{Code: protocol.CodeForbidden, Message: "no such capability: it was never issued, or the ask has its verdict", Remedy: "use the subjects of the link request, while it is open"}
	}
	if !now.Before(c.deadline) {
		return nil, &protocol.Fault{Code: protocol.CodeExpired, Message: "the capability's deadline has passed"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := inboxOf(reply); c.inbox == "" {
		c.inbox = owner
	} else if c.inbox != owner {
		return nil, &protocol.Fault{Code: protocol.CodeForbidden, Message: "the capability belongs to another worker"}
	}
	if !c.pace.AllowN(now, 1) {
		return nil, &protocol.Fault{Code: protocol.CodeUnavailable, Message: "the capability is used too fast", Remedy: "wait a moment; ask less often for one ask"}
	}
	if c.uses++; c.uses > maxUses {
		return nil, &protocol.Fault{Code: protocol.CodeForbidden, Message: "the capability is used up", Remedy: "ask less often for one ask"}
	}
	return c, nil
}

// accept notes the worker's sign of life, once.
func (c *capability) accept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.said {
		c.said = true
		close(c.accepted)
	}
}

// write keeps a link's log record, stamped with the ask and the link. The
// gate's own events are refused: a link must not tell the gate's story.
func (g *Gate) write(ctx context.Context, c *capability, r protocol.LogRecord) (kept bool, fault *protocol.Fault) {
	if r.Event == protocol.EventAccepted {
		c.accept()
		return false, nil
	}
	if gatesOwn(r.Event) {
		return false, &protocol.Fault{Code: protocol.CodeForbidden, Message: "event " + r.Event + " is the gate's own", Remedy: "use an event name of the link's own, as my_link.decision"}
	}
	if r.Level == protocol.LevelDebug && !g.policy.current().DebugLog() {
		return false, nil
	}
	if !c.mayKeep(len(r.Event) + len(r.Fields)) {
		return false, &protocol.Fault{Code: protocol.CodeForbidden, Message: "this ask's records are full", Remedy: "write fewer and shorter records for one ask"}
	}
	if err := g.review.write(ctx, protocol.ReviewRecord{Event: r.Event, Ask: c.ask.ID, Link: c.link, Fields: r.Fields}); err != nil {
		return false, &protocol.Fault{Code: protocol.CodeUnavailable, Message: "the record could not be kept"}
	}
	return true, nil
}

// mayKeep takes n bytes of what may be kept, if there are as many.
func (c *capability) mayKeep(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept+n > maxKept {
		return false
	}
	c.kept += n
	return true
}

// gatesOwn says whether only gates and terminals write events of that name, or
// of one that a reader could take for it.
func gatesOwn(event string) bool {
	event = strings.ToLower(strings.NewReplacer(".", "_", "-", "_").Replace(event))
	for _, own := range []string{"authorizer_chain", "permission_request", "forwarded_permission", protocol.EventGateError, protocol.EventRateLimited} {
		if strings.HasPrefix(event, own) {
			return true
		}
	}
	return false
}

// inboxOf is the credential's part of a reply subject: _INBOX.judge.NAME.
func inboxOf(reply string) string {
	parts := strings.SplitN(reply, ".", 4)
	return strings.Join(parts[:min(3, len(parts))], ".")
}

func secret() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("gate: no randomness: " + err.Error()) // documented never to happen
	}
	return hex.EncodeToString(b[:])
}
