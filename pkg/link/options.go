package link

import (
	"context"
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
	// DefaultHealthEvery is how often a health check runs.
	DefaultHealthEvery = 5 * time.Second
)

// FailureBusy is the failure of a defer that was given because as many asks as
// the link may judge at once were already being judged. To a gate it is no
// verdict: it asks another worker.
const FailureBusy = protocol.FailureBusy

// What a link says of itself for discovery, beside its name, node and version.
const (
	// MetadataHealth is the key under which a link announces HealthOK, or why it
	// cannot work.
	MetadataHealth = "health"
	HealthOK       = "ok"
	// MetadataWorker is the key of the worker's own name, under which a gate can
	// ask it and no other worker of the link.
	MetadataWorker = "worker"
	// maxHealth bounds the announced reason, in bytes.
	maxHealth = 200
	// maxState bounds what State may add: keys, and bytes of a value.
	maxState = 16
)

// Option changes how Serve serves.
type Option func(*config)

type config struct {
	node        string
	version     string
	concurrency int
	grace       time.Duration
	unable      string
	check       func(context.Context) error
	healthEvery time.Duration
	state       func() map[string]string
	changed     <-chan struct{}
	log         *slog.Logger
	ready       func()
}

// Node is the node whose gates may ask; DefaultNode without it.
func Node(name string) Option { return func(c *config) { c.node = name } }

// Version is the link's version, as semantic versioning writes it, for those
// who list running links.
func Version(v string) Option { return func(c *config) { c.version = v } }

// Concurrency is how many asks the link judges at once; the next one is
// answered at once with a defer whose failure is FailureBusy, and gates ask another
// worker.
func Concurrency(n int) Option { return func(c *config) { c.concurrency = n } }

// Grace is how long Serve waits, after its context has ended, for asks that are
// being judged; then it ends their contexts.
func Grace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// Health is how the worker finds out whether it can work: check is called before
// it takes asks and then again and again (see HealthEvery), each time for 2 s at
// most. While it returns an error, does not return or panics, the worker is no
// member of the link's queue group: gates ask the link's other workers, and go on
// to the next link where there is none. It says why to those who list running
// links; put no secret into the error. Asks that it has taken up it ends. A worker
// all of whose asks are stuck past their deadline does the same without a check.
func Health(check func(context.Context) error) Option { return func(c *config) { c.check = check } }

// HealthEvery is how often the check of Health is called; DefaultHealthEvery
// without it.
func HealthEvery(d time.Duration) Option { return func(c *config) { c.healthEvery = d } }

// State adds to what the worker says of itself for discovery, for those who list
// running links: state is called before it is announced, then as often as the
// health check and whenever changed (which may be nil) delivers, and what is new is
// announced anew. Its keys are tokens other than those that Serve announces itself;
// no more than 16 are announced, their values cut short. Put no secret into it.
// state must not wait.
func State(state func() map[string]string, changed <-chan struct{}) Option {
	return func(c *config) { c.state, c.changed = state, changed }
}

// Unhealthy is Health for what does not mend while the process runs: it takes no
// asks, and says why. Put no secret into the reason.
func Unhealthy(reason string) Option {
	return func(c *config) { c.unable = protocol.Safe(reason, maxHealth, false) }
}

// Logger takes what went wrong; slog.Default without it.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// Ready is called once, when the link has announced itself and takes asks, or has
// said why it does not.
func Ready(f func()) Option { return func(c *config) { c.ready = f } }

func newConfig(opts []Option) (config, error) {
	c := config{node: DefaultNode, version: DefaultVersion, concurrency: DefaultConcurrency, grace: DefaultGrace, healthEvery: DefaultHealthEvery, log: slog.Default(), ready: func() {}}
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
	case c.healthEvery <= 0:
		return c, fmt.Errorf("%w: health is looked at every %s, want more than nothing", ErrName, c.healthEvery)
	case c.log == nil || c.ready == nil:
		return c, fmt.Errorf("%w: no logger, or nobody to tell", ErrName)
	}
	return c, nil
}
