package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Config says how a node runs.
type Config struct {
	// Store is the folder that holds everything: keys, streams, the lock.
	Store string
	// Listen is host:port; port 0 picks one. Empty: no socket, only connections
	// from this process.
	Listen string
	// Node is the node's name in subjects. A store belongs to one node for good.
	Node string
	// Logger takes the server's log. Default slog.Default.
	Logger *slog.Logger
	// NoSyncAlways leaves writing to the disk to the operating system: a crash of
	// the machine may then lose decisions that were acknowledged. For tests.
	NoSyncAlways bool
	// MaxPayload is the largest message in bytes; default 1 MiB, since services
	// wrap an ask of up to 256 KiB in messages of their own. Whoever is not a
	// service of ours is bound to BorderPayload whatever stands here.
	MaxPayload int32
	// MaxStore bounds the streams on disk, in bytes; 0 is three quarters of what
	// is free. When it is reached nothing can be recorded, and so nothing allowed.
	MaxStore int64
	// Streams bounds the streams one by one.
	Streams StreamLimits
}

const (
	defaultMaxPayload = 1 << 20
	lockName          = "lock"
	readyTimeout      = 20 * time.Second
	lookWait          = 300 * time.Millisecond
)

// Node is a NATS server in this process with everything that Assent needs on
// it: accounts, rights, streams. Safe for concurrent use.
type Node struct {
	cfg  Config
	log  *slog.Logger
	auth *Authority
	srv  *server.Server
	lock *lockFile

	stop    sync.Once
	stopErr error
}

// Start runs a node until Shutdown. When it returns, streams and buckets are
// there and clients can connect. It fails with ErrStoreInUse, ErrStoreAccess,
// ErrExposed, ErrNodeMismatch, ErrPortInUse or ErrNotReady.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Store == "" {
		return nil, fmt.Errorf("%w: no store was named; use --store DIR", ErrStoreAccess)
	}
	n := &Node{cfg: cfg, log: cfg.Logger}
	if n.log == nil {
		n.log = slog.Default()
	}
	if err := protocol.CheckToken("node", cfg.Node); err != nil {
		return nil, err
	}
	if err := ensurePrivateDir(cfg.Store); err != nil {
		return nil, err
	}
	var err error
	// A command that looks whether a node runs holds the lock for a moment.
	if n.lock, err = lock(filepath.Join(cfg.Store, lockName), lookWait); err != nil {
		return nil, err
	}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Shutdown(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	var err error
	if n.auth, err = OpenAuthority(n.cfg.Store, n.cfg.Node); err != nil {
		return err
	}
	opts, err := n.options()
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	n.srv = srv
	if err := n.run(ctx); err != nil {
		return err
	}
	n.auth.attach(n.pushHere)
	if err := n.ensureStreams(ctx); err != nil {
		return err
	}
	return writeAddress(n.cfg.Store, Address{NATS: n.ClientURL(), Node: n.cfg.Node, PID: os.Getpid()})
}

// run starts the server and waits until it serves or says why it does not.
func (n *Node) run(ctx context.Context) error {
	fatal := make(chan string, 1)
	n.srv.SetLoggerV2(&serverLog{log: n.log, fatal: fatal}, n.log.Enabled(ctx, slog.LevelDebug-4), false, false)
	go n.srv.Start()
	ready := make(chan bool, 1)
	go func() { ready <- n.srv.ReadyForConnections(readyTimeout) }()
	select {
	case text := <-fatal:
		return n.gaveUp(text)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotReady, context.Cause(ctx))
	case ok := <-ready:
		if !ok || !n.srv.JetStreamEnabled() {
			select {
			case text := <-fatal:
				return n.gaveUp(text)
			default:
				return fmt.Errorf("%w within %s; see the log", ErrNotReady, readyTimeout)
			}
		}
		return nil
	}
}

// gaveUp is why the server did not start. Somebody may have taken the port
// since it was tried.
func (n *Node) gaveUp(text string) error {
	if strings.Contains(text, syscall.EADDRINUSE.Error()) {
		return portInUse(n.cfg.Listen)
	}
	return fmt.Errorf("%w: %s", ErrNotReady, text)
}

func portInUse(listen string) error {
	return fmt.Errorf("%w: %s; is a node running already? choose another with --listen (port 0 picks one)", ErrPortInUse, listen)
}

// options are those of the embedded server. The printed configuration
// (WriteConfig) says the same.
func (n *Node) options() (*server.Options, error) {
	host, port, err := listenAddress(n.cfg.Listen)
	if err != nil {
		return nil, err
	}
	accounts, err := n.auth.AccountJWTs()
	if err != nil {
		return nil, err
	}
	operator, system, err := n.auth.trust()
	if err != nil {
		return nil, err
	}
	resolver, err := resolverIn(filepath.Join(n.cfg.Store, "accounts"), accounts)
	if err != nil {
		return nil, err
	}
	maxPayload := n.cfg.MaxPayload
	if maxPayload == 0 {
		maxPayload = defaultMaxPayload
	}
	return &server.Options{
		ServerName: "assent-" + n.cfg.Node,
		Host:       host, Port: port, DontListen: n.cfg.Listen == "",
		// Signals belong to the program, not to the server in it.
		NoSigs:           true,
		TrustedOperators: []*jwt.OperatorClaims{operator},
		SystemAccount:    system, AccountResolver: resolver,
		JetStream: true, StoreDir: n.cfg.Store, SyncAlways: !n.cfg.NoSyncAlways,
		JetStreamMaxStore:      n.cfg.MaxStore,
		DisableJetStreamBanner: true,
		MaxPayload:             maxPayload,
	}, nil
}

// resolverIn fills dir with the account JWTs and gives it to the server, which
// keeps it up to date from then on.
func resolverIn(dir string, accounts map[string]string) (*server.DirAccResolver, error) {
	if err := ensurePrivateDir(dir); err != nil {
		return nil, err
	}
	for pub, tok := range accounts {
		if err := replacePrivate(filepath.Join(dir, pub+".jwt"), []byte(tok), false); err != nil {
			return nil, err
		}
	}
	r, err := server.NewDirAccResolver(dir, 0, 2*time.Minute, server.NoDelete)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	return r, nil
}

// listenAddress splits and tries the address, so that a taken port is told as
// such and before anything runs.
func listenAddress(listen string) (host string, port int, err error) {
	if listen == "" {
		return "", 0, nil
	}
	host, p, err := net.SplitHostPort(listen)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil {
		return "", 0, fmt.Errorf("%w: --listen %q: want HOST:PORT, as 127.0.0.1:4222", ErrRequest, listen)
	}
	l, err := net.Listen("tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", 0, portInUse(listen)
	}
	if err != nil {
		return "", 0, fmt.Errorf("%w: cannot listen on %s: %w; choose another with --listen", ErrRequest, listen, err)
	}
	if err := l.Close(); err != nil {
		return "", 0, fmt.Errorf("%w: cannot listen on %s: %w", ErrRequest, listen, err)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func (n *Node) ensureStreams(ctx context.Context) error {
	nc, err := n.auth.privateConn(ctx, protocol.RoleOperator, bus.Config{InProcess: n, Logger: n.log})
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	return EnsureStreams(ctx, js, n.cfg.Node, n.cfg.Streams)
}

// pushHere is the authority's way to the server of this process.
func (n *Node) pushHere(ctx context.Context, tokens []string) error {
	nc, err := n.auth.systemConn(ctx, bus.Config{InProcess: n, Logger: n.log})
	if err != nil {
		return err
	}
	defer nc.Close()
	return pushClaims(ctx, nc, tokens)
}

// Authority is the one that makes this node's credentials.
func (n *Node) Authority() *Authority { return n.auth }

// Name is the node's name in subjects.
func (n *Node) Name() string { return n.cfg.Node }

// ClientURL is where clients connect; "" for a node that does not listen.
func (n *Node) ClientURL() string {
	if n.cfg.Listen == "" {
		return ""
	}
	return n.srv.ClientURL()
}

// InProcessConn connects without a socket; see bus.Config.InProcess.
func (n *Node) InProcessConn() (net.Conn, error) { return n.srv.InProcessConn() }

// Connect connects to this node from within, with the credentials given.
func (n *Node) Connect(ctx context.Context, creds []byte) (*nats.Conn, error) {
	return bus.Connect(ctx, bus.Config{InProcess: n, CredsBytes: creds, Logger: n.log})
}

// Shutdown ends the node. Services must have drained before: it cuts whoever is
// still connected, flushes the streams, and lets go of the store. Calling it
// again returns what the first call did.
func (n *Node) Shutdown(context.Context) error {
	n.stop.Do(func() {
		var errs []error
		if n.auth != nil {
			n.auth.attach(nil)
		}
		if n.srv != nil {
			n.srv.Shutdown()
			n.srv.WaitForShutdown()
			errs = append(errs, removeAddress(n.cfg.Store))
		}
		if n.lock != nil {
			errs = append(errs, n.lock.release())
		}
		n.stopErr = errors.Join(errs...)
	})
	return n.stopErr
}
