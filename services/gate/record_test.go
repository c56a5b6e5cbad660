package gate

import (
	"bytes"
	"context"
	"testing"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestTheAnswerIsTheRecordToTheLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"bash":{"*":"ask","git status":"allow","rm *":"deny"}}}`)
	r.gate("g1")
	a := r.agent("ci")
	subject := must(r.Subjects.Ask("ci"))(t)
	for _, command := range []string{"git status", "rm x"} {
		ask := a.bash(command)
		body := must(protocol.Write(ask))(t)
		for _, when := range []string{"at first", "asked again"} {
			answer := must(a.nc.Request(subject, body, soon))(t).Data
			n := 0
			for m, err := range bus.ReadStream(context.Background(), r.op, protocol.StreamDecisions, 1, must(r.Subjects.DecisionOf(ask.ID))(t)) {
				if n++; !bytes.Equal(must(m, err)(t).Data, answer) {
					t.Errorf("%s, %s: recorded %s, answered %s", command, when, m.Data, answer)
				}
			}
			if n != 1 {
				t.Errorf("%s, %s: %d records", command, when, n)
			}
		}
	}
}
