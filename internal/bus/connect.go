package bus

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// InProcess is a NATS server in this process.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// Config says where and as whom to connect.
type Config struct {
	// URL is where the server listens: nats://host:port, several with commas.
	// Not needed with InProcess.
	URL string
	// InProcess connects without a socket.
	InProcess InProcess
	// Creds is a credentials file; CredsBytes its content, and goes first.
	Creds      string
	CredsBytes []byte
	// Role and Name, when set, must be those of the credentials: a service that
	// was handed another's credentials says so at once.
	Role protocol.Role
	Name string
	// Client names the connection in the server's lists; default role and name.
	Client string
	// Logger takes everything that happens to the connection. Default slog.Default.
	Logger *slog.Logger
	// Violation is called, from the connection's own goroutine, for each subject
	// that the server did not allow. Publishing does not fail on its own: the
	// refusal comes later and only here and in the log.
	Violation func(error)
	// Closed is called once when the connection is closed for good: by Close or
	// Drain, or because the server refuses the credentials. err is nil for the
	// former.
	Closed func(err error)
	// NoEcho keeps a connection's own messages from its own subscriptions.
	NoEcho bool
	// Timeout is for the first connection; default 5 s.
	Timeout time.Duration
}

// Reconnecting and liveness.
const (
	defaultTimeout = 5 * time.Second
	reconnectWait  = 250 * time.Millisecond
	pingInterval   = 15 * time.Second
	drainTimeout   = 30 * time.Second
	flusherTimeout = 10 * time.Second
)

// Connect connects once and fails with ErrNoServer, ErrRefused or ErrCreds when
// it cannot. After that the connection comes back by itself, without end,
// unless the server refuses its credentials; what is published meanwhile fails
// and is never sent late.
func Connect(ctx context.Context, cfg Config) (*nats.Conn, error) {
	creds, err := cfg.creds()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkHolder(creds); err != nil {
		return nil, err
	}
	if cfg.URL == "" && cfg.InProcess == nil {
		return nil, fmt.Errorf("%w: no address was given; use --nats URL, ASSENT_NATS, or --store for a local node", ErrNoServer)
	}
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	if until, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(until))
	}
	if err := ctx.Err(); err != nil || timeout <= 0 {
		return nil, fmt.Errorf("connecting to NATS: %w", context.Cause(ctx))
	}
	deadline := time.Now().Add(timeout)
	for {
		nc, err := nats.Connect(cfg.URL, cfg.options(creds, timeout)...)
		if err == nil {
			return nc, nil
		}
		if !overtaken(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return nil, cfg.explain(err, creds)
		}
	}
}

// overtaken: on a machine under load the server's first sign of life may come
// before its answer to the greeting, which the client takes for a fault.
func overtaken(err error) bool { return strings.Contains(err.Error(), "expected 'PONG', got 'PING'") }

func (cfg Config) creds() (Creds, error) {
	if len(cfg.CredsBytes) > 0 {
		return ParseCreds(cfg.CredsBytes)
	}
	if cfg.Creds == "" {
		return Creds{}, fmt.Errorf("%w: none were given; use --creds FILE or ASSENT_CREDS", ErrCreds)
	}
	return ReadCreds(cfg.Creds)
}

func (cfg Config) checkHolder(c Creds) error {
	if cfg.Role != "" && cfg.Role != c.Role {
		return fmt.Errorf("%w: they are for the role %s, and %s is needed; issue them with `assent creds issue --role %s`", ErrCreds, c.Role, cfg.Role, cfg.Role)
	}
	if cfg.Name != "" && cfg.Name != c.Name {
		return fmt.Errorf("%w: they are for %q and not for %q; use that name, or issue credentials for this one", ErrCreds, c.Name, cfg.Name)
	}
	return nil
}

// options are the only ones with which anything of ours connects.
func (cfg Config) options(c Creds, timeout time.Duration) []nats.Option {
	client := cfg.Client
	if client == "" {
		client = string(c.Role) + "/" + c.Name
	}
	w := newWatch(cfg, client)
	opts := []nats.Option{
		nats.Name(client),
		nats.UserCredentialBytes(c.raw),
		nats.CustomInboxPrefix(c.inbox),
		nats.Timeout(timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.DrainTimeout(drainTimeout),
		// A socket that takes nothing must not hold a service for the client's own minute.
		nats.FlusherTimeout(flusherTimeout),
		// The buffer would send after a break what was said before it: an old ask,
		// an old answer.
		nats.ReconnectBufSize(-1),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(w.failed),
		nats.DisconnectErrHandler(w.disconnected),
		nats.ReconnectHandler(w.reconnected),
		nats.ClosedHandler(w.closed),
	}
	if cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(looseServer{cfg.InProcess}))
	}
	if cfg.NoEcho {
		opts = append(opts, nats.NoEcho())
	}
	return opts
}

// explain turns a failed connection into its cause and its remedy.
func (cfg Config) explain(err error, c Creds) error {
	at := cfg.URL
	if at == "" {
		at = "the server in this process"
	}
	text := strings.ToLower(err.Error())
	switch {
	case !c.Expires.IsZero() && time.Now().After(c.Expires):
		return fmt.Errorf("%w of %s %s: they expired at %s; issue new ones with `assent creds issue`", ErrRefused, c.Role, c.Name, c.Expires.Format(time.RFC3339))
	case refused(err), strings.Contains(text, "authorization"), strings.Contains(text, "authentication"):
		return fmt.Errorf("%w of %s %s at %s (%w): they were revoked, or belong to another node; issue new ones there with `assent creds issue`", ErrRefused, c.Role, c.Name, at, err)
	default:
		return fmt.Errorf("%w at %s (%w): start it with `assent up`, or name the right address with --nats", ErrNoServer, at, err)
	}
}
