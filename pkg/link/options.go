package link

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Defaults of Serve.
const (
	DefaultNode        = "main"
	DefaultVersion     = "0.0.0"
	DefaultConcurrency = 8
	// DefaultGrace is a little more than the gate's default patience with a link.
	DefaultGrace = 10 * time.Second
)

// FailureBusy is the failure of a defer that was given because as many asks as
// the link may judge at once were already being judged.
const FailureBusy = "busy"

// What a link says of itself for discovery, beside its name, node and version.
const (
	// MetadataHealth is the key under which a link announces HealthOK, or why it
	// cannot work.
	MetadataHealth = "health"
	HealthOK       = "ok"
	// maxHealth bounds the announced reason, in bytes.
	maxHealth = 200
)

// Option changes how Serve serves.
type Option func(*config)

type config struct {
	node        string
	version     string
	concurrency int
	grace       time.Duration
	health      string
	log         *slog.Logger
	ready       func()
}

// Node is the node whose gates may ask; DefaultNode without it.
func Node(name string) Option { return func(c *config) { c.node = name } }

// Version is the link's version, as semantic versioning writes it, for those
// who list running links.
func Version(v string) Option { return func(c *config) { c.version = v } }

// Concurrency is how many asks the link judges at once; the next one is
// answered at once with a defer whose failure is FailureBusy.
func Concurrency(n int) Option { return func(c *config) { c.concurrency = n } }

// Grace is how long Serve waits, after its context has ended, for asks that are
// being judged; then it ends their contexts.
func Grace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// Unhealthy announces that the link cannot work, and why, as those see who list
// running links; it is asked all the same. Put no secret into the reason.
func Unhealthy(reason string) Option {
	return func(c *config) { c.health = protocol.Safe(reason, maxHealth, false) }
}

// Logger takes what went wrong; slog.Default without it.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// Ready is called once, when the link takes asks and has announced itself.
func Ready(f func()) Option { return func(c *config) { c.ready = f } }

func newConfig(opts []Option) (config, error) {
	c := config{node: DefaultNode, version: DefaultVersion, concurrency: DefaultConcurrency, grace: DefaultGrace, health: HealthOK, log: slog.Default(), ready: func() {}}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case !protocol.ValidToken(c.node):
		return c, fmt.Errorf("%w: node %q is no token", ErrName, c.node)
	case c.concurrency < 1:
		return c, fmt.Errorf("%w: concurrency is %d, want at least 1", ErrName, c.concurrency)
	case c.grace <= 0:
		return c, fmt.Errorf("%w: grace is %s, want more than nothing", ErrName, c.grace)
	case c.log == nil || c.ready == nil:
		return c, fmt.Errorf("%w: no logger, or nobody to tell", ErrName)
	}
	return c, nil
}
