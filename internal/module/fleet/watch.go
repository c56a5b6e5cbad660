package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// lookEvery is how often a watch is examined for deafness.
	lookEvery = 5 * time.Second
	// againAfter is how long a watch that broke waits, and a module that could not
	// be read is left alone.
	againAfter = time.Second
)

// watcher follows the modules of a node for one gate.
type watcher struct {
	nc    *nats.Conn
	kv    jetstream.KeyValue
	trust Trust
	log   *slog.Logger
	take  func([]module.Source, []module.Problem)

	floor   Standing // the newest that ever verified
	loaded  map[string]module.Source
	told    []module.Problem
	sources []module.Source
	known   bool
}

// Watch follows the modules of the node until ctx ends, and hands take all that
// are in force, in their order, with what is wrong, whenever either changes: first
// those of this moment. take is called from the caller's goroutine, one at a time.
// A connection that comes back and a watch that breaks or is deaf begin anew. The
// only error is that of the start: the bucket is not there.
func Watch(ctx context.Context, nc *nats.Conn, trust Trust, log *slog.Logger, take func([]module.Source, []module.Problem)) error {
	js, err := bus.JetStream(nc)
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, protocol.BucketPolicy)
	if err != nil {
		return fmt.Errorf("opening bucket %s: %w", protocol.BucketPolicy, err)
	}
	w := &watcher{nc: nc, kv: kv, trust: trust, log: log, take: take, loaded: map[string]module.Source{}}
	for ctx.Err() == nil {
		w.life(ctx)
	}
	return nil
}

// life is one watch, from its beginning to what ends it.
func (w *watcher) life(ctx context.Context) {
	life, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	back := w.nc.StatusChanged(nats.CONNECTED)
	defer w.nc.RemoveStatusListener(back)
	ear := bus.NewEar(life, w.kv)
	deaf := make(chan struct{})
	go func() {
		defer close(deaf)
		if err := ear.Listen(life, lookEvery); err != nil {
			cancel(err)
		}
	}()
	err := w.follow(life, ear, back)
	why := context.Cause(life)
	cancel(nil)
	<-deaf
	switch {
	case ctx.Err() != nil, errors.Is(err, errBack):
		return
	case why == nil:
		why = err
	}
	w.log.Warn("watch broke and is begun anew", "what", "modules", "err", why)
	pause(ctx, againAfter)
}

// errBack: the connection was away, and what came meanwhile has to be read.
var errBack = errors.New("the connection came back")

func (w *watcher) follow(ctx context.Context, ear *bus.Ear, back <-chan nats.Status) error {
	updates, err := w.kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watching the list of modules: %w", err)
	}
	defer updates.Stop()
	if err := w.refresh(ctx); err != nil {
		return err
	}
	retry := time.NewTicker(againAfter)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-back:
			return errBack
		case <-retry.C:
			if w.incomplete() {
				err = w.refresh(ctx)
			}
		case e, open := <-updates.Updates():
			switch {
			case !open:
				return ErrWatch
			case e == nil:
				ear.Heard(0)
			default:
				ear.Heard(e.Revision())
				if e.Key() == protocol.KeyModules && e.Revision() > w.floor.Revision {
					err = w.refresh(ctx)
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// refresh brings what is in force up to what stands now.
func (w *watcher) refresh(ctx context.Context) error {
	now, err := read(ctx, w.kv, w.trust, w.floor)
	if err != nil {
		return err
	}
	if now.Revision != w.floor.Revision || !w.known {
		w.say(now)
	}
	w.floor = now
	sources, problems := w.load(ctx, now)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.known && slices.Equal(sources, w.sources) && slices.Equal(problems, w.told) {
		return nil
	}
	w.known, w.sources, w.told = true, sources, problems
	w.take(sources, problems)
	return nil
}

func (w *watcher) say(now Standing) {
	if now.Err != nil {
		w.log.Error("THE LIST OF THE FLEET'S MODULES DOES NOT COUNT: what was in force before stays so", "revision", now.Revision, "serial", now.List.Serial, "err", now.Err)
		return
	}
	if now.List.Serial > 0 {
		w.log.Info("fleet's modules", "serial", now.List.Serial, "modules", len(now.List.Modules), "signed_by", now.SignedBy)
	}
}

// load reads the modules of a list that are switched on. Of one whose code cannot
// be read the version before stays in force: it can only tighten.
func (w *watcher) load(ctx context.Context, now Standing) (sources []module.Source, problems []module.Problem) {
	if now.Err != nil {
		problems = append(problems, problem("", "the list of the fleet's modules does not count, and what was in force before stays so: "+now.Err.Error()))
	}
	kept := map[string]module.Source{}
	for _, e := range now.List.Modules {
		if !e.Enabled {
			continue
		}
		have, ok := w.loaded[e.Name]
		if !ok || have.Version() != e.Version {
			code, err := readBundle(ctx, w.nc, e.Version)
			switch {
			case err == nil:
				have, ok = module.Source{Name: e.Name, Level: module.LevelFleet, Code: code}, true
			case ok:
				problems = append(problems, problem(e.Name, "its new version cannot be read, and the one before stays in force: "+err.Error()))
			default:
				problems = append(problems, problem(e.Name, "it cannot be read: "+err.Error()))
			}
		}
		if ok {
			kept[e.Name] = have
			sources = append(sources, have)
		}
	}
	w.loaded = kept
	return sources, problems
}

// incomplete says whether a module that is in force could not be read.
func (w *watcher) incomplete() bool {
	for _, p := range w.told {
		if p.Module != "" {
			return true
		}
	}
	return false
}

func problem(name, text string) module.Problem {
	return module.Problem{Module: name, Level: module.LevelFleet, Message: protocol.Safe(text, 500, false)}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
