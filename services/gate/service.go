package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/projects"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ServiceName is the gate's name in micro discovery.
const ServiceName = "assent-gate"

// Bounds of what one gate does at once. What comes over them is refused at once.
const (
	maxAsks     = 16384 // requests that wait here, not asks: those are on disk
	maxRelays   = 4096
	maxCancels  = 1024
	maxQueries  = 1024
	maxUploads  = 64
	maxConfirms = 64
	startupTime = 30 * time.Second
)

// Config is what an operator sets of a gate.
type Config struct {
	// Node is the node it serves.
	Node string
	// Name is the gate's own, as in its credentials; a subject token.
	Name string
	// Logger; slog.Default without one.
	Logger *slog.Logger
	// Metrics takes the gate's counters; nil = not exported.
	Metrics prometheus.Registerer
	// Modules are the permission modules that every ruling is under; nil = none.
	Modules Modules
}

// Gate decides the asks of one node, together with any number of other gates.
// Its source of truth is NATS alone: the policy and the pending asks in their
// buckets, the decisions in their stream.
type Gate struct {
	node, name string
	nc         *nats.Conn
	connection *connection
	subjects   protocol.Subjects
	log        *slog.Logger
	failSafe   *prometheus.CounterVec
	senders    bus.Identities

	policy       *authority
	files        *files
	uploads      *limits
	withdrawals  *limits
	pending      *pending.Store
	recorder     *recorder
	grants       *grants.Store
	review       *review
	capabilities *capabilities
	presence     *presence
	presenceKV   jetstream.KeyValue
	links        *links
	mirror       *mirror
	limits       *limits
	waiters      *waiters
	desk         *desk
	serving      atomic.Bool
	again        *again
	stopping     chan struct{}
	times        times

	modules  Modules
	toldLock sync.Mutex
	told     map[string]bool // what was said of modules, once each
}

// New binds a gate to the streams and buckets of its node, which must exist.
// The connection stays the caller's.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Gate, error) {
	subjects, err := protocol.NewSubjects(cfg.Node)
	if err != nil {
		return nil, err
	}
	if err := protocol.CheckToken("gate", cfg.Name); err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	g := &Gate{
		node: cfg.Node, name: cfg.Name, nc: nc, connection: newConnection(nc), subjects: subjects, log: log.With("gate", cfg.Name),
		failSafe:     newFailSafe(cfg.Metrics),
		capabilities: newCapabilities(cfg.Name, subjects),
		presence:     newPresence(),
		links:        &links{nc: nc, node: cfg.Node},
		mirror:       newMirror(),
		limits:       newLimits(),
		uploads:      newLimits(),
		withdrawals:  newLimits(),
		waiters:      newWaiters(),
		desk:         newDesk(),
		again:        newAgain(),
		stopping:     make(chan struct{}),
		times:        standardTimes,
		modules:      cfg.Modules,
		told:         map[string]bool{},
	}
	return g, g.bind(ctx)
}

func (g *Gate) bind(ctx context.Context) error {
	js, err := jetstream.New(g.nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	if g.pending, err = pending.Open(ctx, js); err != nil {
		return err
	}
	decisions, err := record.Open(ctx, js, g.subjects)
	if err != nil {
		return err
	}
	rules, err := layers.Open(ctx, js)
	if err != nil {
		return err
	}
	uploaded, err := projects.New(g.nc)
	if err != nil {
		return err
	}
	g.files = newFiles(uploaded)
	if g.presenceKV, err = js.KeyValue(ctx, protocol.BucketPresence); err != nil {
		return fmt.Errorf("opening bucket %s: %w", protocol.BucketPresence, err)
	}
	if g.grants, err = grants.New(g.nc); err != nil {
		return err
	}
	g.recorder = &recorder{Reader: decisions, nc: g.nc, subjects: g.subjects}
	g.review, err = newReview(g.nc, js, g.subjects, g.name, func(id string, err error) {
		g.count("review", "unrecorded")
		g.log.Error("review record is lost", "ask", id, "err", err)
	})
	if err != nil {
		return err
	}
	g.policy = &authority{layers: rules, log: g.log, life: g.connection.number, changed: g.ready, freezes: newFreezes(), freezing: g.freezing}
	return nil
}

// Run serves until ctx ends and then drains: requests that wait are answered,
// asks that are carried are released for another gate. ready, if not nil, is
// called once when the gate serves.
func (g *Gate) Run(ctx context.Context, ready func()) error {
	if g.modules != nil {
		g.modules.Changed(g.newModules)
		g.tellModules(ctx, false)
	}
	watching, stop := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	var subs []*bus.Sub
	defer func() { g.drain(subs) }() // also what the watches took up before an early end
	// Links can query and log before the first is asked, which may be as soon as
	// the pending asks are seen; asks come last.
	err := g.subscribe(&subs, g.forLinks)
	if err == nil {
		err = g.follow(ctx, watching, &watchers)
	}
	if err == nil {
		err = g.subscribe(&subs, g.forOperators)
	}
	if err == nil {
		err = g.subscribe(&subs, g.forAgents)
	}
	if err != nil {
		return err
	}
	service, err := micro.AddService(g.nc, micro.Config{Name: ServiceName, Version: version.Version, Description: "decides asks", Metadata: map[string]string{"node": g.node, "gate": g.name}})
	if err != nil {
		return fmt.Errorf("registering the gate: %w", err)
	}
	defer service.Stop()
	g.serving.Store(true)
	g.ready()
	g.log.Info("gate serves", "node", g.node)
	if ready != nil {
		ready()
	}
	<-ctx.Done()
	return nil
}

// follow starts the watches and returns when the policy, the approvers that are
// there and the pending asks are known: a gate answers nothing before.
func (g *Gate) follow(ctx, watching context.Context, watchers *sync.WaitGroup) error {
	rules, people, asks := newSignal(), newSignal(), newSignal()
	watchers.Go(func() { g.connection.follow(watching) })
	watchers.Go(func() {
		g.followBucket(watching, g.policy.layers.Bucket(), func(ctx context.Context, heard func(uint64)) error { return g.policy.watch(ctx, heard, rules.give) })
	})
	watchers.Go(func() {
		g.followBucket(watching, g.presenceKV, func(ctx context.Context, heard func(uint64)) error { return g.watchPresence(ctx, heard, people.give) })
	})
	watchers.Go(func() {
		select {
		case <-rules.given: // what is taken up is ruled again: not without a policy
			g.followPending(watching, asks.give)
		case <-watching.Done():
		}
	})
	watchers.Go(func() { g.links.discover(watching, g.policy.chain) })
	watchers.Go(func() { g.sweep(watching) })
	for range revisitors {
		watchers.Go(func() { g.revisit(watching) })
	}

	limit := time.NewTimer(startupTime)
	defer limit.Stop()
	for _, known := range []signal{rules, people, asks} {
		select {
		case <-known.given:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("policy or pending asks could not be read within %s: is JetStream up, and are these the gate's credentials?", startupTime)
		}
	}
	return nil
}

// followPending keeps the mirror until ctx ends.
func (g *Gate) followPending(ctx context.Context, ready func()) {
	for ctx.Err() == nil {
		life, cancel := g.connection.within(ctx)
		g.pending.Watch(life, g.seen, func() {
			for _, id := range g.mirror.prune() {
				g.gone(id)
			}
			g.newPolicy() // what came while this gate was not looking
			ready()
		}, func(err error) {
			g.mirror.broke()
			g.log.Warn("watch broke and is begun anew", "what", "pending", "err", err)
		})
		cancel()
		g.mirror.broke()
	}
}

// signal is given once and stays given.
type signal struct {
	given chan struct{}
	give  func()
}

func newSignal() signal {
	c := make(chan struct{})
	return signal{given: c, give: sync.OnceFunc(func() { close(c) })}
}

// endpoint is one subject that a gate serves.
type endpoint struct {
	subject, queue    string
	limit             int
	handler, overflow bus.Handler
}

// forLinks are the capabilities' subjects.
func (g *Gate) forLinks() ([]endpoint, error) {
	queries, err := g.subjects.Queries(g.name)
	if err != nil {
		return nil, err
	}
	logs, err := g.subjects.Logs(g.name)
	if err != nil {
		return nil, err
	}
	return []endpoint{
		{queries, "", maxQueries, g.serveQuery, g.dropFull},
		{logs, "", maxQueries, g.serveLog, g.dropFull},
	}, nil
}

// forOperators are what operators ask this gate alone.
func (g *Gate) forOperators() ([]endpoint, error) {
	confirms, err := g.subjects.Confirm(g.name)
	return []endpoint{{confirms, "", maxConfirms, g.serveConfirm, g.dropFull}}, err
}

// forAgents are what agents and child nodes send, asks last.
func (g *Gate) forAgents() ([]endpoint, error) {
	return []endpoint{
		{g.subjects.All(protocol.KindCancel), protocol.QueueGate, maxCancels, g.serveCancel, g.dropFull},
		{g.subjects.All(protocol.KindWithdraw), protocol.QueueGate, maxCancels, g.serveWithdraw, g.dropFull},
		{g.subjects.All(protocol.KindProject), protocol.QueueGate, maxUploads, g.serveProject, g.refuseFull},
		{g.subjects.All(protocol.KindRelay), protocol.QueueGate, maxRelays, g.serveRelay, g.refuseFull},
		{g.subjects.All(protocol.KindAsk), protocol.QueueGate, maxAsks, g.serveAsk, g.refuseFull},
	}, nil
}

func (g *Gate) subscribe(subs *[]*bus.Sub, endpoints func() ([]endpoint, error)) error {
	all, err := endpoints()
	if err != nil {
		return err
	}
	for _, e := range all {
		sub, err := bus.Subscribe(g.nc, e.subject, e.queue, e.limit, e.handler, e.overflow)
		if err != nil {
			return err
		}
		*subs = append(*subs, sub)
	}
	return nil
}

// drain leaves without losing anything: asks first stop coming in, those who
// wait are answered, and what is carried is released while its links can still
// query and log.
func (g *Gate) drain(subs []*bus.Sub) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	close(g.stopping)
	var errs []error
	for i := len(subs) - 1; i >= 0; i-- {
		if i == 1 {
			g.desk.stop()
		}
		errs = append(errs, subs[i].Drain(ctx))
	}
	g.desk.stop()
	errs = append(errs, g.review.outbox.Drain(ctx))
	if err := errors.Join(errs...); err != nil {
		g.log.Error("gate did not drain", "err", err)
		return
	}
	g.log.Info("gate has drained")
}

// watchPresence follows which approvers are there, and calls ready when those
// of this moment are known.
func (g *Gate) watchPresence(ctx context.Context, heard func(uint64), ready func()) error {
	w, err := g.presenceKV.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watching presence: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.Updates():
			if e != nil {
				heard(e.Revision())
			}
			switch {
			case !open:
				return layers.ErrWatch
			case e == nil:
				heard(0)
				ready()
			case e.Operation() != jetstream.KeyValuePut:
				g.presence.gone(e.Key())
			default:
				came, err := g.presence.put(e.Key(), e.Value(), e.Created())
				if came {
					g.tellModules(ctx, true)
				}
				if err != nil {
					g.count("presence", "broken")
					g.log.Warn("presence cannot be read; it counts for nothing", "err", err)
				}
			}
		}
	}
}

// ready says that a gate serves, and by the policy of this moment: when it begins
// to, and whenever the policy changes. Before it serves it says nothing. What waits is ruled
// again.
func (g *Gate) ready() {
	if g.serving.Load() {
		g.notify(protocol.Notice{Kind: protocol.NoticeReady})
	}
	g.newPolicy()
}

// notify sends a live notice. It is a nudge that nobody needs: losing one costs
// nothing.
func (g *Gate) notify(n protocol.Notice) {
	n.Node, n.At = g.node, time.Now().UTC()
	subject, err := g.subjects.Event(n.Kind)
	if err != nil {
		return
	}
	body, err := protocol.Write(n)
	if err != nil {
		return
	}
	if err := g.nc.Publish(subject, body); err != nil {
		g.log.Debug("notice not sent", "kind", n.Kind, "err", err)
	}
}
