package terminal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ServiceName is the terminal's name in micro discovery.
const ServiceName = "assent-terminal"

// Bounds of one terminal service.
const (
	maxRequests = 1024
	// An ask that a parent decides is asked again until it is: as many wait here
	// as a gate has at once.
	maxRelayed = 16384
	serveTime  = 4 * time.Second // the gate waits 5
)

// Answerer takes approvers' answers; the human terminal is one.
type Answerer interface {
	Answer(context.Context, protocol.Answer) (protocol.AnswerReceipt, error)
}

// Service serves terminals and takes answers for one node. Any number of them
// share the work.
type Service struct {
	nc        *nats.Conn
	subjects  protocol.Subjects
	log       *slog.Logger
	terminals map[protocol.TerminalKind]Terminal
	answers   Answerer
}

// New returns a service on nc, which stays the caller's. Each kind of terminal
// may come once. Without a log it writes to slog.Default.
func New(nc *nats.Conn, node string, log *slog.Logger, answers Answerer, terminals ...Terminal) (*Service, error) {
	subjects, err := protocol.NewSubjects(node)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	s := &Service{nc: nc, subjects: subjects, log: log, answers: answers, terminals: map[protocol.TerminalKind]Terminal{}}
	for _, t := range terminals {
		if s.terminals[t.Kind()] != nil {
			return nil, fmt.Errorf("terminal %s is given twice", t.Kind())
		}
		s.terminals[t.Kind()] = t
	}
	return s, nil
}

// Run serves until ctx ends and then drains. ready, if not nil, is called once
// when it serves.
func (s *Service) Run(ctx context.Context, ready func()) error {
	var subs []*bus.Sub
	defer func() { s.drain(subs) }()
	// Each kind has a subject of its own, so that a kind which nobody serves is
	// seen at once as no responder.
	for kind := range s.terminals {
		subject, err := s.subjects.Terminal(string(kind))
		if err != nil {
			return err
		}
		sub, err := bus.Subscribe(s.nc, subject, protocol.QueueTerminal, limitOf(kind), s.serveRequest, s.full)
		if err != nil {
			return err
		}
		subs = append(subs, sub)
	}
	sub, err := bus.Subscribe(s.nc, s.subjects.All(protocol.KindAnswer), protocol.QueueTerminal, maxRequests, s.serveAnswer, s.full)
	if err != nil {
		return err
	}
	subs = append(subs, sub)
	service, err := micro.AddService(s.nc, micro.Config{Name: ServiceName, Version: version.Version, Description: "ends asks", Metadata: map[string]string{"node": s.subjects.Node()}})
	if err != nil {
		return fmt.Errorf("registering the terminal: %w", err)
	}
	defer service.Stop()
	s.log.Info("terminal serves", "node", s.subjects.Node())
	if ready != nil {
		ready()
	}
	<-ctx.Done()
	return nil
}

func limitOf(kind protocol.TerminalKind) int {
	if kind == protocol.TerminalParent {
		return maxRelayed
	}
	return maxRequests
}

func (s *Service) drain(subs []*bus.Sub) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*serveTime)
	defer cancel()
	for _, sub := range subs {
		if err := sub.Drain(ctx); err != nil {
			s.log.Error("terminal did not drain", "err", err)
		}
	}
}

// serveRequest takes an ask from a gate.
func (s *Service) serveRequest(m *nats.Msg) {
	if !protocol.ReplyFrom(protocol.RoleGate, m.Reply) {
		s.log.Warn("request dropped: reply subject is no gate's inbox", "subject", m.Subject)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	r, err := protocol.Read[protocol.TerminalRequest](m.Data, protocol.MaxBytes(1<<20))
	if err != nil {
		s.fault(m, protocol.PeekAskID(m.Data, "ask"), protocol.CodeInvalid, err)
		return
	}
	t := s.terminals[r.Kind]
	if t == nil || m.Subject != s.subjectOf(r.Kind) {
		s.fault(m, r.Ask.ID, protocol.CodeInvalid, fmt.Errorf("no terminal of kind %q here", r.Kind))
		return
	}
	if r.Withdraw {
		s.withdraw(ctx, m, t, r)
		return
	}
	v, err := t.End(ctx, r)
	var fault *protocol.Fault
	switch {
	case err == nil:
		send(s, m, v)
	case errors.As(err, &fault):
		s.sent(bus.ReplyFault(s.nc, m, r.Ask.ID, *fault))
	case errors.Is(err, ErrTaken):
		send(s, m, protocol.Progress{Ask: r.Ask.ID, Status: protocol.StatusPending, Stage: "terminal:" + string(r.Kind), Since: time.Now().UTC()})
	default:
		s.log.Error("ask could not be put to the terminal", "ask", r.Ask.ID, "err", err)
		s.fault(m, r.Ask.ID, protocol.CodeUnavailable, errors.New("the ask could not be put to the terminal"))
	}
}

// withdraw takes an ask back. A terminal that puts asks nowhere else has nothing
// to take back.
func (s *Service) withdraw(ctx context.Context, m *nats.Msg, t Terminal, r protocol.TerminalRequest) {
	w, ok := t.(Withdrawer)
	if !ok {
		send(s, m, protocol.CancelReceipt{Ask: r.Ask.ID})
		return
	}
	receipt, err := w.Withdraw(ctx, r)
	if err != nil {
		s.log.Warn("ask could not be taken back; it ends there by its own deadline", "ask", r.Ask.ID, "err", err)
		s.fault(m, r.Ask.ID, protocol.CodeUnavailable, err)
		return
	}
	send(s, m, receipt)
}

func (s *Service) subjectOf(kind protocol.TerminalKind) string {
	subject, _ := s.subjects.Terminal(string(kind))
	return subject
}

// serveAnswer takes an answer from an approver. The name is the credential's:
// the server let it publish under this subject alone, and states who it was.
func (s *Service) serveAnswer(m *nats.Msg) {
	subject, err := protocol.ParseSubject(m.Subject)
	if err != nil {
		s.log.Warn("answer dropped", "subject", m.Subject, "err", err)
		return
	}
	approver, id := subject.Tokens[0], subject.Tokens[1]
	who, err := bus.IdentityOf(m)
	if err != nil || who.Name != approver {
		s.log.Warn("answer dropped: its sender is not the subject's approver", "subject", m.Subject, "sender", who.Name, "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	a, err := protocol.ReadAnswerFor(approver, id, m.Data)
	if err != nil {
		s.fault(m, protocol.PeekAskID(m.Data, "ask"), protocol.CodeInvalid, err)
		return
	}
	receipt, err := s.answers.Answer(ctx, a)
	if err != nil {
		s.log.Error("answer could not be stored", "ask", id, "approver", approver, "err", err)
		s.fault(m, id, protocol.CodeUnavailable, errors.New("the answer could not be stored: try again"))
		return
	}
	s.log.Info("answer", "ask", id, "approver", approver, "verdict", a.Verdict, "accepted", receipt.Accepted)
	send(s, m, receipt)
}

// full refuses what comes over the bound, at once: the asker tries again.
func (s *Service) full(m *nats.Msg) {
	if protocol.ReplyFrom(protocol.RoleGate, m.Reply) || protocol.ReplyAcross(m.Reply) {
		s.fault(m, "", protocol.CodeUnavailable, errors.New("this terminal is full"))
	}
}

func (s *Service) fault(m *nats.Msg, ask string, code protocol.Code, cause error) {
	s.sent(bus.ReplyFault(s.nc, m, ask, protocol.Fault{Code: code, Message: cause.Error()}))
}

func send[M any, P protocol.Message[M]](s *Service, m *nats.Msg, v M) {
	s.sent(bus.Reply[M, P](s.nc, m, v))
}

func (s *Service) sent(err error) {
	if err != nil {
		s.log.Error("reply not sent; the asker asks again", "err", err)
	}
}

// Notifier returns a function that tells the faces of a new prompt.
func Notifier(nc *nats.Conn, subjects protocol.Subjects, log *slog.Logger) func(protocol.Ask) {
	return func(a protocol.Ask) {
		subject, err := subjects.Event(protocol.NoticePrompt)
		if err != nil {
			return
		}
		body, err := protocol.Write(protocol.Notice{Kind: protocol.NoticePrompt, Node: subjects.Node(), At: time.Now().UTC(), Ask: a.ID, Agent: a.Agent, Via: a.Via()})
		if err != nil {
			return
		}
		if err := nc.Publish(subject, body); err != nil {
			log.Debug("notice not sent", "ask", a.ID, "err", err)
		}
	}
}
