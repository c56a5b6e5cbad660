//go:build faults

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
	"github.com/assent-dev/assent/services/terminal/human"
)

// part is one component that can be killed and started again.
type part struct {
	kind, name  string
	start, kill func()
	leave       func() // ends it in order; nil for a server
}

func (f *fleet) makeParts() []*part {
	var out []*part
	for i := range nodetest.Servers {
		out = append(out, &part{kind: "server", name: fmt.Sprintf("server-%d", i+1),
			start: func() { f.cluster.Start(i) }, kill: func() { f.cluster.Stop(i) }})
	}
	for _, n := range []string{"1", "2"} {
		out = append(out,
			f.service("gate", protocol.RoleGate, "gate-"+n, f.runGate("gate-"+n)),
			f.service("terminal", protocol.RoleTerminal, "terminal-"+n, f.runTerminal),
			f.service("judge", protocol.RoleJudge, "first-"+n, f.runLink("first")),
			f.service("judge", protocol.RoleJudge, "second-"+n, f.runLink("second")))
	}
	return append(out, f.service("auditor", protocol.RoleAuditor, "auditor-1", f.runAuditor))
}

// running is one life of a service.
type running struct {
	nc     *nats.Conn
	cancel context.CancelFunc
	done   chan error
}

// run serves on nc until ctx ends, and calls ready when it serves.
type run func(ctx context.Context, nc *nats.Conn, ready func()) error

// service is a part of which kill leaves nothing but what it had written: its
// connection is closed under its hands, and what it does from there on reaches
// nobody.
func (f *fleet) service(kind string, role protocol.Role, name string, serve run) *part {
	creds := f.cluster.Creds(f.t, role, name, node.IssueOptions{Links: linksOf(kind, name)})
	var now *running
	start := func() {
		nodetest.CheckFor(f.t, settleTime, 100*time.Millisecond, func() (err error) {
			now, err = f.launch(name, creds, serve)
			return err
		})
	}
	kill := func() {
		now.nc.Close()
		now.cancel()
		<-now.done
	}
	leave := func() {
		now.cancel()
		if err := <-now.done; err != nil {
			f.t.Errorf("%s left with %v", name, err)
		}
		now.nc.Close()
	}
	return &part{kind: kind, name: name, start: start, kill: kill, leave: leave}
}

func linksOf(kind, name string) []string {
	if kind != "judge" {
		return nil
	}
	link, _, _ := strings.Cut(name, "-")
	return []string{link}
}

// launch is what a supervisor does: a service that cannot start ends, and is
// started again.
func (f *fleet) launch(name string, creds []byte, serve run) (*running, error) {
	nc, err := f.cluster.Dial(bus.Config{CredsBytes: creds, Logger: f.log.With("part", name)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{nc: nc, cancel: cancel, done: make(chan error, 1)}
	ready := make(chan struct{})
	go func() { r.done <- serve(ctx, nc, func() { close(ready) }) }()
	select {
	case <-ready:
		return r, nil
	case err = <-r.done:
	case <-time.After(settleTime / 2):
		err = fmt.Errorf("not ready within %s", settleTime/2)
		nc.Close()
		cancel()
		<-r.done
	}
	cancel()
	nc.Close()
	return nil, fmt.Errorf("%s does not start: %w", name, err)
}

func (f *fleet) runGate(name string) run {
	return func(ctx context.Context, nc *nats.Conn, ready func()) error {
		g, err := gate.New(ctx, nc, gate.Config{Node: nodetest.Name, Name: name, Logger: f.log})
		if err != nil {
			return err
		}
		return g.Run(ctx, ready)
	}
}

func (f *fleet) runTerminal(ctx context.Context, nc *nats.Conn, ready func()) error {
	js, err := bus.JetStream(nc)
	if err != nil {
		return err
	}
	open, err := pending.Open(ctx, js)
	if err != nil {
		return err
	}
	decisions, err := record.Open(ctx, js, f.cluster.Subjects)
	if err != nil {
		return err
	}
	person := human.New(open, decisions, terminal.Notifier(nc, f.cluster.Subjects, f.log))
	s, err := terminal.New(nc, nodetest.Name, f.log, person, person, deny.Terminal{})
	if err != nil {
		return err
	}
	return s.Run(ctx, ready)
}

// runLink serves a link that decides the commands under its own name, and needs
// a moment for it, so that it is killed at work.
func (f *fleet) runLink(name string) run {
	judge := func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
		}
		switch command := commandOf(r.Ask); {
		case strings.HasPrefix(command, name+"-allow "):
			return link.Allow("it is as " + name + " likes it"), nil
		case strings.HasPrefix(command, name+"-deny "):
			return link.Deny(name + " does not like it"), nil
		}
		return link.Defer("not for " + name), nil
	}
	return func(ctx context.Context, nc *nats.Conn, ready func()) error {
		return link.Serve(ctx, nc, name, judge, link.Node(nodetest.Name), link.Ready(ready), link.Logger(f.log))
	}
}

func (f *fleet) runAuditor(ctx context.Context, nc *nats.Conn, ready func()) error {
	return auditor.Run(ctx, nc, auditor.Config{Node: nodetest.Name, Dir: f.dir, Logger: f.log, Ready: ready})
}

// leave ends everything in order, so that what is left then has leaked.
func (f *fleet) leave() {
	f.person.leave()
	for _, a := range f.agents {
		a.nc.Close()
	}
	for _, p := range f.parts {
		if p.leave != nil {
			p.leave()
		}
	}
}
