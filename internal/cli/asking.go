package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Times of one ask from this machine.
const (
	// connectPatience is how long to look for the NATS server, which may be in
	// the middle of a restart.
	connectPatience = 2 * time.Second
	// withdrawTime bounds the withdrawal of an ask that nobody waits for any more.
	withdrawTime = 2 * time.Second
	// lateTime bounds hearing a decision that fell just before the withdrawal.
	lateTime = 2 * time.Second
	// closeTime bounds the drain before the process ends.
	closeTime = time.Second
)

// asker is an agent's connection for one ask.
type asker struct {
	nc     *nats.Conn
	client *client.Client
	// forbidden ends an ask at once when the server forbids the subject: it says
	// so beside the request, which would otherwise wait for an answer in vain.
	forbidden context.Context
	refuse    context.CancelCauseFunc
}

// dialAgent connects as the agent that the credentials name.
func dialAgent(ctx context.Context, at place, face string, opts ...client.Option) (*asker, error) {
	creds, err := os.ReadFile(at.Creds)
	if err != nil {
		return nil, fmt.Errorf("reading the agent's credentials: %w: `assent creds issue --role agent` makes some", err)
	}
	who, err := bus.ParseCreds(creds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.Creds, err)
	}
	a := &asker{}
	a.forbidden, a.refuse = context.WithCancelCause(context.Background())
	cfg := bus.Config{
		URL: at.NATS, CredsBytes: creds, Role: protocol.RoleAgent, Client: "agent/" + who.Name + " (" + face + ")",
		// What goes wrong stands in the answer; a log beside it would only garble it.
		Logger: quietLog(),
		Violation: func(err error) {
			a.refuse(fmt.Errorf("the server forbids it (%w): the credentials are for another node or agent: check --node and --creds", err))
		},
	}
	if a.nc, err = connectSoon(ctx, cfg); err != nil {
		return nil, err
	}
	if a.client, err = client.New(a.nc, at.Node, who.Name, opts...); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// carrying hands the client what the project has of its own, should the gate lack
// it.
func carrying(p project.Project) []client.Option {
	policy, modules, ok := p.Own()
	if !ok {
		return nil
	}
	return []client.Option{client.ProjectOwn(policy, modules...)}
}

// connectSoon tries again while no server answers; refused credentials are
// final.
func connectSoon(ctx context.Context, cfg bus.Config) (*nats.Conn, error) {
	var nc *nats.Conn
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(connectPatience))
	err := backoff.Retry(func() (err error) {
		if nc, err = bus.Connect(ctx, cfg); err != nil && !errors.Is(err, bus.ErrNoServer) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(wait, ctx))
	return nc, err
}

// ask asks until ctx ends. An ask that ends without a decision is withdrawn, so
// that nobody is asked for a call that will not run; if it was decided in that
// moment, that decision holds.
func (a *asker) ask(ctx context.Context, ask protocol.Ask) (protocol.Decision, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(a.forbidden, func() { stop(context.Cause(a.forbidden)) })()
	d, err := a.client.Ask(ctx, ask)
	if err == nil || !mayBePending(err) {
		return d, err
	}
	late, state := a.withdraw(ask, whyWithdrawn(ctx))
	switch state {
	case decidedLate:
		return late, nil
	case withdrawn:
		return protocol.Decision{}, &withdrawnError{cause: err}
	default:
		return protocol.Decision{}, err
	}
}

// withdrawnError is an ask that ended while it was pending: a gate was there
// and took the withdrawal, even where none had shown a sign of life yet.
type withdrawnError struct {
	// stage is where it was pending, in words for people; "" when that is not known.
	stage string
	cause error
}

func (e *withdrawnError) Error() string {
	what := ""
	switch ended := errors.Is(e.cause, client.ErrEnded); {
	case ended && errors.Is(e.cause, context.DeadlineExceeded):
		what = "no decision in time"
	case ended && errors.Is(e.cause, context.Canceled):
		what = "interrupted"
	default:
		return e.cause.Error()
	}
	if e.stage == "" {
		return what + ": the ask was still pending at the gate and is withdrawn"
	}
	return what + ": the ask was still waiting for " + e.stage + " and is withdrawn"
}

func (e *withdrawnError) Unwrap() error { return e.cause }

// mayBePending: only the gate's own refusal, an ask that was never sent and the
// lack of any gate mean that nothing can be waiting.
func mayBePending(err error) bool {
	var fault *protocol.Fault
	return !errors.As(err, &fault) && !errors.Is(err, client.ErrAsk) && !errors.Is(err, nats.ErrNoResponders) &&
		!errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrPermissionViolation)
}

func whyWithdrawn(ctx context.Context) string {
	switch err := context.Cause(ctx); {
	case err == nil:
		return "the asking side could not read an answer"
	case errors.Is(err, context.DeadlineExceeded):
		return "the asking side's own time is over"
	default:
		return "the asking side was interrupted"
	}
}

// What became of an ask that nobody waits for any more.
type withdrawal int

const (
	unheard     withdrawal = iota // nobody said
	withdrawn                     // a gate withdrew it
	decidedLate                   // it was decided just before
)

// withdraw has a time of its own: the ask's is over.
func (a *asker) withdraw(ask protocol.Ask, why string) (late protocol.Decision, state withdrawal) {
	ctx, stop := context.WithTimeout(context.Background(), withdrawTime)
	defer stop()
	switch done, err := a.client.Cancel(ctx, ask.ID, why); {
	case err != nil:
		return protocol.Decision{}, unheard
	case done:
		return protocol.Decision{}, withdrawn
	}
	ctx, stop = context.WithTimeout(context.Background(), lateTime)
	defer stop()
	late, err := a.client.Ask(ctx, ask)
	if err != nil {
		return protocol.Decision{}, unheard
	}
	return late, decidedLate
}

// close flushes: what was said last, a withdrawal perhaps, is not lost with the
// process. A drain would wait for messages that nobody takes any more, and each
// call of the agent would be 10 ms slower for it.
func (a *asker) close() {
	if a.nc.IsConnected() {
		// It fails only where the server is gone: then nobody is left to be told.
		_ = a.nc.FlushTimeout(closeTime)
	}
	a.nc.Close()
	a.refuse(nil)
}

// sayFailed tells an agent why there is no decision on ask id, and what to do.
func sayFailed(id string, err error) string {
	var fault *protocol.Fault
	if errors.As(err, &fault) {
		return (&protocol.ErrorReply{Ask: id, Error: *fault}).Say()
	}
	d := protocol.Decision{Ask: id, Result: protocol.FinalDeny, Outcome: protocol.Unavailable, Reason: err.Error()}
	switch {
	case errors.Is(err, client.ErrAsk), errors.Is(err, project.ErrPolicy):
		d.Outcome = protocol.Invalid
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(err, client.ErrEnded):
		d.Outcome = protocol.Expired
	case errors.Is(err, errInterrupted):
		d.Outcome = protocol.Cancelled
	}
	return d.Say()
}

// errInterrupted is the cause of an ask that a signal ended.
var errInterrupted = errors.New("interrupted")

// stageForPeople says where a pending ask is, as "a person" or "judge x".
func stageForPeople(stage string) string {
	kind, name, _ := strings.Cut(protocol.Safe(stage, 100, false), ":")
	switch {
	case kind == "terminal" && name == string(protocol.TerminalHuman):
		return "a person"
	case kind == "terminal" && name == string(protocol.TerminalParent):
		return "the parent node"
	case kind == "link":
		return "judge " + name
	case kind == "terminal":
		return "the terminal (" + name + ")"
	default:
		return kind
	}
}
