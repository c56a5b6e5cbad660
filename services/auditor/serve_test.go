package auditor

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestRegister: an operator who asks for the service's statistics finds the
// numbers of both streams in them.
func TestRegister(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	s := newStats(Streams)
	st := s.of(protocol.StreamReview)
	st.stored(5, 2)
	st.broken()
	st.lag(7)
	st.writeFailed(errors.New("no space left"))
	// A gate's connection: the one role in CORE that may be discovered.
	service, err := register(n.Connect(t, protocol.RoleGate, "g1"), Config{Node: "main", Logger: nodetest.Logger(t)}, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop() })

	operator := n.Connect(t, protocol.RoleOperator, "op")
	var got micro.Stats
	nodetest.CheckFor(t, 10*time.Second, 20*time.Millisecond, func() error {
		m, err := operator.Request("$SRV.STATS."+ServiceName, nil, time.Second)
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Data, &got)
	})
	if got.Metadata["node"] != "main" || got.Metadata["version"] != version.Version || len(got.Endpoints) != 1 {
		t.Fatalf("statistics %+v, want one endpoint, node main and our version", got)
	}
	wantNumbers(t, got.Endpoints[0].Data)
}

func wantNumbers(t *testing.T, data []byte) {
	t.Helper()
	var streams []StreamStats
	if err := json.Unmarshal(data, &streams); err != nil {
		t.Fatal(err)
	}
	if len(streams) != 2 || streams[0].Stream != protocol.StreamDecisions || streams[0].Written != 0 {
		t.Fatalf("numbers %+v, want those of two streams", streams)
	}
	r := streams[1]
	if got, want := fmt.Sprintf("%d %d %d %d %d %s", r.Written, r.Again, r.Broken, r.Lag, r.WriteFailures, r.Trouble), "5 2 1 7 1 no space left"; got != want {
		t.Errorf("numbers %s, want %s", got, want)
	}
}
