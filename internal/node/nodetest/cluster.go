package nodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Servers is how many servers a Cluster has: each stream has a replica on each,
// and one of them may be away.
const Servers = 3

const (
	clusterTime = 30 * time.Second
)

// Cluster is one node on three nats-servers in this process, each from the
// configuration that `assent node config` prints, with a folder of its own.
// Safe for concurrent use but for Stop and Start of one server.
type Cluster struct {
	// Subjects builds the subjects of this node.
	Subjects protocol.Subjects

	t       testing.TB
	auth    *node.Authority
	log     *slog.Logger
	servers [Servers]*clusterServer
}

type clusterServer struct {
	cfg  node.ServerConfig
	file string
	srv  *server.Server // nil while it is stopped
}

// StartCluster runs the servers and makes the streams, with three replicas
// each, until the test is over. What a server has acknowledged survives Stop;
// it does not survive a crash of the machine, which no test can play.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	dir := Dir(t)
	auth, err := node.OpenAuthority(dir, Name)
	if err != nil {
		t.Fatalf("making keys: %v", err)
	}
	subjects, err := protocol.NewSubjects(Name)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Subjects: subjects, t: t, auth: auth, log: slog.New(slog.DiscardHandler)}
	ports := freePorts(t, 2*Servers)
	var routes []string
	for _, port := range ports[Servers:] {
		routes = append(routes, "nats://"+port)
	}
	for i := range c.servers {
		name := fmt.Sprintf("n%d", i+1)
		c.servers[i] = &clusterServer{file: filepath.Join(dir, name+".conf"), cfg: node.ServerConfig{
			Name: name, Listen: ports[i], Store: filepath.Join(dir, name),
			Cluster: node.Cluster{Name: "assent", Listen: ports[Servers+i], Routes: routes},
		}}
	}
	t.Cleanup(c.stopAll)
	for i := range c.servers {
		c.Start(i)
	}
	c.prepare()
	return c
}

// prepare makes the streams as soon as the servers have found each other.
func (c *Cluster) prepare() {
	c.t.Helper()
	nc := c.Connect(c.t, protocol.RoleOperator, "prepare")
	js, err := bus.JetStream(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	CheckFor(c.t, clusterTime, 20*time.Millisecond, c.Healthy)
	CheckFor(c.t, clusterTime, 100*time.Millisecond, func() error {
		// A request that no server leads stays unanswered: a short bound, and again.
		ctx, cancel := context.WithTimeout(context.Background(), clusterTime/6)
		defer cancel()
		return node.EnsureStreams(ctx, js, Name, node.StreamLimits{Replicas: Servers})
	})
	CheckFor(c.t, clusterTime, 20*time.Millisecond, c.Healthy)
}

// Start runs server i, which is stopped, on its folder and its ports. It returns
// when clients can connect, which may be before its replicas have caught up:
// see Healthy.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	s := c.servers[i]
	var b bytes.Buffer
	if err := c.auth.WriteConfig(&b, s.cfg); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(s.file, b.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(s.file)
	if err != nil {
		c.t.Fatalf("the printed configuration does not read: %v", err)
	}
	opts.NoSigs, opts.NoLog = true, true
	opts.SyncAlways = false // no test loses the machine, and a disk is shared
	if s.srv, err = server.NewServer(opts); err != nil {
		c.t.Fatal(err)
	}
	s.srv.Start()
	if !s.srv.ReadyForConnections(clusterTime) {
		c.t.Fatalf("server %s takes no connections within %s", s.cfg.Name, clusterTime)
	}
}

// Stop ends server i: whoever is connected to it is cut off.
func (c *Cluster) Stop(i int) {
	s := c.servers[i]
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}

func (c *Cluster) stopAll() {
	for i := range c.servers {
		c.Stop(i)
	}
}

// Healthy says why not every replica of every stream on every server is up to
// date. Until it is nil, the loss of another server may be the loss of a
// majority.
func (c *Cluster) Healthy() error {
	var errs []error
	for _, s := range c.servers {
		if s.srv == nil {
			errs = append(errs, fmt.Errorf("server %s is stopped", s.cfg.Name))
			continue
		}
		if h := s.srv.Healthz(&server.HealthzOptions{}); h.Status != "ok" {
			errs = append(errs, fmt.Errorf("server %s: %s %s", s.cfg.Name, h.Status, h.Error))
		}
		if n := s.srv.NumRoutes(); n == 0 {
			errs = append(errs, fmt.Errorf("server %s has no fellows", s.cfg.Name))
		}
	}
	return errors.Join(errs...)
}

// URL is where clients connect: all servers, so that they find another when
// theirs is gone.
func (c *Cluster) URL() string {
	urls := make([]string, 0, Servers)
	for i := range c.servers {
		urls = append(urls, c.URLOf(i))
	}
	return strings.Join(urls, ",")
}

// URLOf is where server i listens, whether it runs or not.
func (c *Cluster) URLOf(i int) string { return "nats://" + c.servers[i].cfg.Listen }

// Creds issues credentials, as Node.Creds does.
func (c *Cluster) Creds(t testing.TB, role protocol.Role, name string, opts ...node.IssueOptions) []byte {
	t.Helper()
	return issue(t, c.auth, role, name, opts)
}

// Connect connects with new credentials to any of the servers; the connection
// ends with the test.
func (c *Cluster) Connect(t testing.TB, role protocol.Role, name string, opts ...node.IssueOptions) *nats.Conn {
	t.Helper()
	nc, err := c.Dial(bus.Config{URL: c.URL(), CredsBytes: c.Creds(t, role, name, opts...)})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// Dial connects as cfg says, to any of the servers unless it names some. The
// connection is the caller's to close.
func (c *Cluster) Dial(cfg bus.Config) (*nats.Conn, error) {
	if cfg.URL == "" {
		cfg.URL = c.URL()
	}
	if cfg.Logger == nil {
		cfg.Logger = c.log
	}
	return bus.Connect(context.Background(), cfg)
}

// freePorts finds n addresses on which nobody listens, all at once so that none
// comes twice.
func freePorts(t testing.TB, n int) (out []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out
}
