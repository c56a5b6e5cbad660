// Package judge is the service that serves links: each answers one question
// about an ask with one verdict. It reads the judges' file and knows nothing of
// the policy but the links' names; a gate asks only those that its policy names.
//
// Start at Read for the file and at New and Run for the service. Each link's
// judgement lives in a folder of its own.
package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
)

// Deps is what the service works with. All but Log, Version and Ready are
// required.
type Deps struct {
	// NC is a connection with a judge's credential, issued for the file's links.
	// The service does not close it.
	NC   *nats.Conn
	Node string
	File File
	// Env looks up an environment variable, as os.LookupEnv: keys come from there.
	Env func(string) (string, bool)
	// Log takes what went wrong; slog.Default without it.
	Log *slog.Logger
	// Version is the links' version, as semantic versioning writes it.
	Version string
	// Ready is called once, when every link takes asks; optional.
	Ready func()
	// Metrics takes the service's counters; optional.
	Metrics prometheus.Registerer
}

// Judge serves the links of one file. Use New.
type Judge struct {
	deps    Deps
	links   []*served
	metrics *metrics
}

type served struct {
	name        string
	concurrency int
	judge       link.Link
	// server and model are what a self-test asks, in timeout.
	server  llm.Provider
	model   string
	timeout time.Duration
	vitals  *vitals
	// unable is why the link cannot work; "" when it can.
	unable string
}

// New makes the links. A link whose key is missing is made too: it takes no asks
// and announces why, and it says so here, loudly.
func New(d Deps) (*Judge, error) {
	if d.NC == nil || d.Env == nil || len(d.File.Links) == 0 {
		return nil, errors.New("judge: a connection, an environment and at least one link are needed")
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Ready == nil {
		d.Ready = func() {}
	}
	if d.Version == "" {
		d.Version = link.DefaultVersion
	}
	j := &Judge{deps: d, metrics: newMetrics(d.Metrics)}
	for _, name := range d.File.Names() {
		c := d.File.Links[name]
		if key, err := c.check(); err != nil {
			return nil, fmt.Errorf("%w: link %s: %s: %w", ErrConfig, name, key, err)
		}
		l, err := j.newLink(name, c)
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", name, err)
		}
		j.links = append(j.links, l)
	}
	return j, nil
}

// Run serves every link until ctx ends, then leaves without losing an ask. If
// one link cannot be served, all of them stop and Run returns why: a judge that
// serves half of its file looks well and is not.
func (j *Judge) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var ready atomic.Int64
	isReady := func() {
		if ready.Add(1) == int64(len(j.links)) {
			j.deps.Ready()
		}
	}
	for _, l := range j.links {
		group.Go(func() error { return j.serve(ctx, l, isReady) })
		if l.unable == "" {
			group.Go(func() error {
				l.keepTested(ctx, j.deps.Log.With("link", l.name))
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	return nil
}

func (j *Judge) serve(ctx context.Context, l *served, ready func()) error {
	opts := []link.Option{
		link.Node(j.deps.Node), link.Version(j.deps.Version), link.Concurrency(l.concurrency), link.Logger(j.deps.Log),
		link.Ready(ready), link.State(l.vitals.state, l.vitals.changed),
	}
	if l.unable != "" {
		opts = append(opts, link.Unhealthy(l.unable))
	}
	return link.Serve(ctx, j.deps.NC, l.name, l.judge, opts...)
}

func (j *Judge) newLink(name string, c LinkConfig) (*served, error) {
	log, unable := j.deps.Log.With("link", name), c.idle()
	if unable != "" {
		log.Warn("the link takes no asks", "cause", unable)
	}
	server, err := c.Server(j.deps.Env)
	if err != nil {
		log.Error("the link cannot reach its model and takes no asks", "error", err)
		server, unable = llm.Unavailable{Info: c.info(), Cause: err}, err.Error()
	}
	v := newVitals(name, log, j.metrics)
	guard := llm.NewGuard(server, llm.GuardConfig{
		Name: name, Breaker: c.Breaker.config(c.timeout()), Budget: c.Budget.config(), Price: c.Price.config(), Metrics: j.deps.Metrics, Changed: v.turned,
	})
	v.breaker = guard.State
	l, err := c.Link(v.watchModel(guard), log)
	if err != nil {
		return nil, err
	}
	return &served{
		name: name, concurrency: c.Concurrency, judge: v.watchLink(l), vitals: v,
		server: server, model: c.Model, timeout: c.timeout(), unable: unable,
	}, nil
}
