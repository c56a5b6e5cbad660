package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bench"
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// benchPlace is a node that lives as long as a measurement.
type benchPlace struct {
	*node.Node
	subjects  protocol.Subjects
	inProcess bool
	conns     []*nats.Conn
}

// benchNodeName is the name of such a node, benchAgent that of who asks there.
const (
	benchNodeName = "bench"
	benchAgent    = "bench"
)

// ownNode measures on nodes of its own. The gate that neither reads nor rules
// has one to itself, of the same configuration: on one node the two would take
// each other's asks.
func (c *benchCommand) ownNode(ctx context.Context, plan bench.Plan) (r bench.Report, err error) {
	dir, err := os.MkdirTemp("", "assent-bench-")
	if err != nil {
		return r, fmt.Errorf("making a store for the measurement: %w", err)
	}
	defer os.RemoveAll(dir)
	ours, err := c.place(ctx, filepath.Join(dir, "ours"))
	if err != nil {
		return r, err
	}
	defer ours.close()
	bare, err := c.place(ctx, filepath.Join(dir, "bare"))
	if err != nil {
		return r, err
	}
	defer bare.close()
	if err := ours.putPolicy(ctx, bench.Policy(slices.Max(bench.Chains))); err != nil {
		return r, err
	}
	services, err := ours.services()
	if err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = runServices(ctx, quietLog(), services, func(ctx context.Context) (err error) {
		defer stop()
		works, err := c.works(ctx, ours, bare)
		if err != nil {
			return err
		}
		r, err = bench.Run(ctx, plan, works, c.progress)
		return err
	})
	return r, err
}

func (c *benchCommand) place(ctx context.Context, store string) (*benchPlace, error) {
	subjects, err := protocol.NewSubjects(benchNodeName)
	if err != nil {
		return nil, err
	}
	n, err := node.Start(ctx, node.Config{Store: store, Listen: "127.0.0.1:0", Node: benchNodeName, NoSyncAlways: c.noSync, Logger: quietLog()})
	if err != nil {
		return nil, err
	}
	return &benchPlace{Node: n, subjects: subjects, inProcess: c.inProcess}, nil
}

func (p *benchPlace) close() {
	for _, nc := range p.conns {
		nc.Close()
	}
	p.Shutdown(context.Background()) //nolint:errcheck // its folder goes in the next moment
}

// bus says how to connect as name.
func (p *benchPlace) bus(role protocol.Role, name string) (bus.Config, error) {
	var opts node.IssueOptions
	if role == protocol.RoleJudge {
		opts.Links = []string{"*"}
	}
	creds, err := p.Authority().Issue(role, name, opts)
	if err != nil {
		return bus.Config{}, err
	}
	cfg := bus.Config{CredsBytes: creds, Role: role, Name: name, Logger: quietLog()}
	if p.inProcess {
		cfg.InProcess = p
	} else {
		cfg.URL = p.ClientURL()
	}
	return cfg, nil
}

// connect connects as name; the connection ends with the node.
func (p *benchPlace) connect(ctx context.Context, role protocol.Role, name string) (*nats.Conn, error) {
	cfg, err := p.bus(role, name)
	if err != nil {
		return nil, err
	}
	nc, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p.conns = append(p.conns, nc)
	return nc, nil
}

func (p *benchPlace) putPolicy(ctx context.Context, doc []byte) error {
	nc, err := p.connect(ctx, protocol.RoleOperator, "bench")
	if err != nil {
		return err
	}
	js, err := bus.JetStream(nc)
	if err != nil {
		return err
	}
	store, err := layers.Open(ctx, js)
	if err != nil {
		return err
	}
	_, err = store.Put(ctx, policy.Fleet(), doc, layers.Entry{})
	return err
}

// services are the gate and its terminal.
func (p *benchPlace) services() ([]service, error) {
	end, err := terminalService(p.Name(), "bench", nil, quietLog())
	if err != nil {
		return nil, err
	}
	services := []service{end, gateService(p.Name(), "bench", gateModules{}, nil, quietLog())}
	for i, role := range []protocol.Role{protocol.RoleTerminal, protocol.RoleGate} {
		cfg, err := p.bus(role, "bench")
		if err != nil {
			return nil, err
		}
		services[i].bus = cfg
	}
	return services, nil
}

func (p *benchPlace) asker(ctx context.Context) (*bench.Asker, error) {
	nc, err := p.connect(ctx, protocol.RoleAgent, benchAgent)
	if err != nil {
		return nil, err
	}
	return bench.NewAsker(nc, p.subjects, benchAgent)
}

// works are what is measured: what NATS alone costs first.
func (c *benchCommand) works(ctx context.Context, ours, bare *benchPlace) ([]bench.Work, error) {
	asker, err := ours.asker(ctx)
	if err != nil {
		return nil, err
	}
	call, err := asker.Call("bash", bench.RuleInput)
	if err != nil {
		return nil, err
	}
	// What the gate answers is what the others answer too: the same size everywhere.
	d, err := call.Allowed(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := ours.raw(ctx, call, d)
	if err != nil {
		return nil, err
	}
	works := []bench.Work{raw, call.Work(bench.Ask)}
	var answers []protocol.Decision
	if !c.noChain {
		var chains []bench.Work
		if chains, answers, err = ours.chains(ctx, asker); err != nil {
			return nil, err
		}
		works = append(works, chains...)
	}
	least, err := bare.bare(ctx, d, answers)
	return sideBySide(works, least), err
}

// sideBySide puts the bare works before the one that they are the least of, so that
// they are measured in the same moments.
func sideBySide(works []bench.Work, least [][]bench.Work) []bench.Work {
	out := works[:1:1] // the raw round trip has none
	for i, w := range works[1:] {
		if i < len(least) {
			out = append(out, least[i]...)
		}
		out = append(out, w)
	}
	return out
}

func (p *benchPlace) raw(ctx context.Context, call bench.Call, d protocol.Decision) (bench.Work, error) {
	const link = "raw"
	subject, err := p.subjects.Link(link)
	if err != nil {
		return bench.Work{}, err
	}
	answers, err := p.connect(ctx, protocol.RoleJudge, link)
	if err != nil {
		return bench.Work{}, err
	}
	asks, err := p.connect(ctx, protocol.RoleGate, link)
	if err != nil {
		return bench.Work{}, err
	}
	return bench.RawWork(answers, asks, subject, call, d)
}

// bare is the gate that neither reads nor rules, on a node of its own, and what it
// is asked: d answers the call that a rule decides, chains those of the links.
func (p *benchPlace) bare(ctx context.Context, d protocol.Decision, chains []protocol.Decision) ([][]bench.Work, error) {
	gate, err := p.connect(ctx, protocol.RoleGate, "bench")
	if err != nil {
		return nil, err
	}
	asker, err := p.asker(ctx)
	if err != nil {
		return nil, err
	}
	call, err := asker.Call("bash", bench.RuleInput)
	if err != nil {
		return nil, err
	}
	works, calls := [][]bench.Work{{call.Work(bench.Bare)}}, []bench.BareCall{{Call: call, Decision: d}}
	if len(chains) > 0 {
		if err := p.links(ctx); err != nil {
			return nil, err
		}
	}
	for i, d := range chains {
		k := bench.Chains[i]
		plain, err := asker.Call("bash", bench.ChainInput(k))
		if err != nil {
			return nil, err
		}
		dutiful, err := asker.Call("bash", bench.DutifulInput(k))
		if err != nil {
			return nil, err
		}
		works = append(works, []bench.Work{plain.Work(bench.BareChain(k)), dutiful.Work(bench.DutifulChain(k))})
		calls = append(calls, bench.BareCall{Call: plain, Decision: d, Links: k}, bench.BareCall{Call: dutiful, Decision: d, Links: k, Dutiful: true})
	}
	return works, bench.ServeBare(gate, p.subjects, calls...)
}

// links serves those of the longest chain.
func (p *benchPlace) links(ctx context.Context) error {
	judge, err := p.connect(ctx, protocol.RoleJudge, "bench")
	if err != nil {
		return err
	}
	for place := range slices.Max(bench.Chains) {
		if err := bench.ServeLink(judge, p.subjects, place+1); err != nil {
			return err
		}
	}
	return nil
}

// chains are the asks that links decide, and how each is answered.
func (p *benchPlace) chains(ctx context.Context, asker *bench.Asker) (works []bench.Work, answers []protocol.Decision, err error) {
	if err := p.links(ctx); err != nil {
		return nil, nil, err
	}
	for _, k := range bench.Chains {
		call, err := asker.Call("bash", bench.ChainInput(k))
		if err != nil {
			return nil, nil, err
		}
		d, err := call.Allowed(ctx)
		if err != nil {
			return nil, nil, err
		}
		works, answers = append(works, call.Work(bench.Chain(k))), append(answers, d)
	}
	return works, answers, nil
}
