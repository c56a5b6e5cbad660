package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Names of what is measured.
const (
	Raw  = "raw request/reply"
	Bare = "bare ask, record, answer"
	Ask  = "ask that a rule decides"
	Ping = "round trip to the server"
)

// BareChain is the name of the least that a chain of k links costs.
func BareChain(k int) string { return fmt.Sprintf("bare chain of %d, record, answer", k) }

// DutifulChain is the name of the least that a chain of k links costs a gate that
// also reads and writes what the contract has each gate read and write.
func DutifulChain(k int) string { return fmt.Sprintf("the same of %d, looked up and told", k) }

// Chains are the lengths of chain that are measured.
var Chains = []int{1, 2, 3, 5}

// Chain is the name of an ask that k links are asked about.
func Chain(k int) string { return fmt.Sprintf("ask that link %d decides", k) }

// answerTime bounds one operation; longer is a failure, not a figure.
const answerTime = 10 * time.Second

// Asker asks as one agent, over one connection.
type Asker struct {
	nc              *nats.Conn
	agent           string
	subject, cancel string
}

// NewAsker asks at the node of subjects as agent, whose connection nc is.
func NewAsker(nc *nats.Conn, subjects protocol.Subjects, agent string) (*Asker, error) {
	subject, err := subjects.Ask(agent)
	if err != nil {
		return nil, fmt.Errorf("asking as %s: %w", agent, err)
	}
	cancel, err := subjects.Cancel(agent)
	if err != nil {
		return nil, fmt.Errorf("asking as %s: %w", agent, err)
	}
	return &Asker{nc: nc, agent: agent, subject: subject, cancel: cancel}, nil
}

// Call is a tool call that is asked about again and again, each time as a new ask.
func (a *Asker) Call(tool string, input jsontext.Value) (Call, error) {
	ask := protocol.Ask{
		ID: protocol.NewAskID(), Agent: a.agent, Source: protocol.SourceToolCall, Session: protocol.Session{ID: "bench"},
		Tool: protocol.Tool{Name: tool, Input: input}, Cwd: "/repo", Home: "/home/dev", Platform: "linux",
	}
	body, err := protocol.Write(ask)
	if err != nil {
		return Call{}, fmt.Errorf("asking about %s: %w", tool, err)
	}
	return Call{asker: a, ask: ask, input: input, body: newForm(body, ask.ID)}, nil
}

// Call is one call, asked about under ever new ids.
type Call struct {
	asker *Asker
	ask   protocol.Ask
	input []byte // as it stands in the body
	body  form
}

// ErrAnswer: the ask was not answered as it has to be for its cost to mean
// anything.
var ErrAnswer = errors.New("the ask was not decided as it should be")

// Allowed asks once and wants an allow: ErrAnswer with what came instead. An ask
// that the rules leave open is withdrawn, so that nobody is asked about it.
func (c Call) Allowed(ctx context.Context) (protocol.Decision, error) {
	id := protocol.NewAskID()
	d, err := c.once(ctx, id)
	if err != nil {
		err = errors.Join(err, c.asker.withdraw(id))
	}
	return d, err
}

func (c Call) once(ctx context.Context, id string) (protocol.Decision, error) {
	m, err := c.send(ctx, id)
	if err != nil {
		return protocol.Decision{}, err
	}
	if p, err := protocol.Read[protocol.Progress](m.Data); err == nil && p.Ask == id {
		return protocol.Decision{}, fmt.Errorf("%w: the rules leave it open (it was at %s)", ErrAnswer, protocol.Safe(p.Stage, 100, false))
	}
	d, err := protocol.ReadDecisionFor(id, c.asker.agent, m.Data)
	switch {
	case err != nil:
		return protocol.Decision{}, fmt.Errorf("%w: %w: %s", ErrAnswer, err, protocol.Safe(string(m.Data), 200, false))
	case !d.Allowed():
		return d, fmt.Errorf("%w: %s", ErrAnswer, d.Say())
	}
	return d, nil
}

// withdraw takes back an ask, should it be pending. It is a wish: the gate
// answers what is not there with no, which is as good.
func (a *Asker) withdraw(id string) error {
	body, err := protocol.Write(protocol.Cancel{Ask: id, Reason: "asked for a measurement alone"})
	if err != nil {
		return err
	}
	if _, err := a.nc.Request(a.cancel, body, answerTime); err != nil {
		return fmt.Errorf("withdrawing ask %s: %w", id, err)
	}
	return nil
}

var allow = []byte(`"result":"allow"`)

// Work measures the call as name. Of the answer it reads no more than that it is
// an allow of this ask.
func (c Call) Work(name string) Work {
	return Work{Name: name, Do: func(ctx context.Context) error {
		id := protocol.NewAskID()
		m, err := c.send(ctx, id)
		if err != nil {
			return err
		}
		if !bytes.Contains(m.Data, allow) || !bytes.Contains(m.Data, []byte(id)) {
			return fmt.Errorf("%w: %s", ErrAnswer, protocol.Safe(string(m.Data), 300, false))
		}
		return nil
	}}
}

// Paced is w at most perSecond times a second, all callers together; 0 is w
// itself. The wait for one's turn is not measured.
func Paced(w Work, perSecond int) Work {
	if perSecond > 0 {
		w.Wait = rate.NewLimiter(rate.Limit(perSecond), 1).Wait
	}
	return w
}

func (c Call) send(ctx context.Context, id string) (*nats.Msg, error) {
	m, err := request(ctx, c.asker.nc, c.asker.subject, c.body.with(id))
	if err != nil {
		return nil, fmt.Errorf("asking on %s: %w", c.asker.subject, err)
	}
	return m, nil
}

func request(ctx context.Context, nc *nats.Conn, subject string, body []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return nc.RequestWithContext(ctx, subject, body)
}

// form is a message in which only an ask's id changes.
type form struct {
	text []byte
	at   []int // where the id stands
	id   int   // its length
}

func newForm(text []byte, id string) form {
	f := form{text: text, id: len(id)}
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(id))
		if i < 0 {
			return f
		}
		f.at = append(f.at, from+i)
		from += i + len(id)
	}
}

func (f form) with(id string) []byte {
	out := bytes.Clone(f.text)
	for _, at := range f.at {
		copy(out[at:], id)
	}
	return out
}

// idOf is the id in a message of this form.
func (f form) idOf(text []byte) (string, bool) {
	if len(text) != len(f.text) {
		return "", false
	}
	return string(text[f.at[0] : f.at[0]+f.id]), true
}

// RawWork answers on subject over one connection with what is as large as a
// decision, and measures over another how long that takes for what is as large
// as the ask of call.
func RawWork(answers, asks *nats.Conn, subject string, call Call, decision protocol.Decision) (Work, error) {
	answer, err := protocol.Write(decision)
	if err == nil {
		_, err = answers.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(answer) })
	}
	if err == nil {
		err = answers.FlushTimeout(answerTime)
	}
	if err != nil {
		return Work{}, fmt.Errorf("serving %s: %w", subject, err)
	}
	return Work{Name: Raw, Do: func(ctx context.Context) error {
		_, err := request(ctx, asks, subject, call.body.text)
		return err
	}}, nil
}

// PingWork is the server's answer to a ping: all that whoever may only ask can
// measure of NATS alone.
func PingWork(nc *nats.Conn) Work {
	return Work{Name: Ping, Do: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		return nc.FlushWithContext(ctx)
	}}
}
