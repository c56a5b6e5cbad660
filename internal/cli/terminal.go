package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
	"github.com/assent-dev/assent/services/terminal/human"
	"github.com/assent-dev/assent/services/terminal/parent"
)

// parentFlags name the node above this one.
type parentFlags struct{ url, node, creds string }

func (f *parentFlags) flags(fl *pflag.FlagSet) {
	fl.StringVar(&f.url, "parent", "", "address of the parent node's NATS: what nobody here decides is decided there")
	fl.StringVar(&f.node, "parent-node", "", "name of the parent node")
	fl.StringVar(&f.creds, "parent-creds", "", "credentials file of role child with this node's name, issued at the parent")
}

// config is what the flags say of the parent of node; nil for none.
func (f *parentFlags) config(node string, log *slog.Logger) (*parent.Config, error) {
	if f.url+f.node+f.creds == "" {
		return nil, nil
	}
	if f.url == "" || f.node == "" || f.creds == "" {
		return nil, usagef("a parent node takes all three: --parent URL, --parent-node NAME and --parent-creds FILE")
	}
	if err := protocol.CheckToken("parent-node", f.node); err != nil {
		return nil, usagef("--parent-node: %w", err)
	}
	return &parent.Config{Node: node, Parent: f.node, URL: f.url, Creds: f.creds, Logger: log}, nil
}

// terminalService runs the terminals of a node under the terminal's name; above,
// if not nil, is the node's parent.
func terminalService(node, name string, above *parent.Config, log *slog.Logger) (service, error) {
	var relay *parent.Terminal
	if above != nil {
		var err error
		if relay, err = parent.New(*above); err != nil {
			return service{}, fmt.Errorf("the parent node: %w", err)
		}
	}
	return service{name: "terminal", run: func(ctx context.Context, nc *nats.Conn, ready func()) error {
		s, err := newTerminal(ctx, nc, node, relay, log)
		if err != nil {
			return err
		}
		if relay == nil {
			return s.Run(ctx, ready)
		}
		return withParent(ctx, nc, name, relay, func(ctx context.Context) error { return s.Run(ctx, ready) })
	}}, nil
}

func newTerminal(ctx context.Context, nc *nats.Conn, node string, relay *parent.Terminal, log *slog.Logger) (*terminal.Service, error) {
	subjects, err := protocol.NewSubjects(node)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	open, err := pending.Open(ctx, js)
	if err != nil {
		return nil, unprepared(err)
	}
	decisions, err := record.Open(ctx, js, subjects)
	if err != nil {
		return nil, unprepared(err)
	}
	person := human.New(open, decisions, terminal.Notifier(nc, subjects, log))
	terminals := []terminal.Terminal{person, deny.Terminal{}}
	if relay != nil {
		terminals = append(terminals, relay)
	}
	return terminal.New(nc, node, log, person, terminals...)
}

// withParent runs serve beside the connection to the parent, which outlives it:
// what is asked while serve drains is still relayed. serve begins once the gates
// can know of the parent; whether it answers holds nothing up.
func withParent(ctx context.Context, nc *nats.Conn, name string, relay *parent.Terminal, serve func(context.Context) error) error {
	rctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		relay.Run(rctx, func(ctx context.Context, s protocol.ParentSign) error { return signParent(ctx, nc, name, s) }, func() { close(begun) })
	}()
	defer func() { cancel(); <-ended }()
	select {
	case <-begun:
	case <-ctx.Done():
		return nil
	}
	return serve(ctx)
}

// signParent stores a terminal's sign that its node has a parent.
func signParent(ctx context.Context, nc *nats.Conn, name string, s protocol.ParentSign) error {
	body, err := protocol.Write(s)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	if _, err := js.Publish(ctx, "$KV."+protocol.BucketPresence+"."+protocol.PresenceParent+name, body); err != nil {
		return fmt.Errorf("storing the sign of the parent: %w", err)
	}
	return nil
}
