package projects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/projects"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

const text = `{"permission":{"bash":{"make *":"deny"}}}`

func TestAnUploadIsKnownToEveryGateAndToItsAgentAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	g1 := must(projects.New(n.Connect(t, protocol.RoleGate, "g1")))(t)
	g2 := must(projects.New(n.Connect(t, protocol.RoleGate, "g2")))(t)
	digest := must(g1.Put(ctx, "ci", text))(t)
	if digest != protocol.ProjectDigest(text) {
		t.Errorf("digest %s", digest)
	}
	for name, row := range map[string]struct {
		agent, digest string
		found         bool
	}{
		"its own":               {"ci", digest, true},
		"another agent":         {"ci-2", digest, false},
		"an agent of two parts": {"ci.ci", digest, false},
		"every agent":           {"*", digest, false},
		"another digest":        {"ci", protocol.ProjectDigest("{}"), false},
		"every digest":          {"ci", "sha256:*", false},
		"no digest":             {"ci", "", false},
	} {
		got, found, err := g2.Get(ctx, row.agent, row.digest)
		if err != nil || found != row.found || found && got.Text != text {
			t.Errorf("%s: %+v %v %v", name, got, found, err)
		}
	}
	if _, err := g1.Put(ctx, "ci.*", text); !protocol.IsRefusal(err) {
		t.Errorf("for a wildcard: %v", err)
	}
}

// TestModulesAreKeptWithThePolicy: under a digest that is not the policy's own.
func TestModulesAreKeptWithThePolicy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	s := must(projects.New(n.Connect(t, protocol.RoleGate, "g1")))(t)
	modules := []protocol.ProjectModule{{Name: "large", Code: strings.Repeat("x", protocol.MaxProjectCode)}, {Name: "broken", Error: "line 1"}}
	policy := text + strings.Repeat(" ", protocol.MaxProjectPolicy-len(text))
	digest := must(s.Put(ctx, "ci", policy, modules...))(t)
	got, found, err := s.Get(ctx, "ci", digest)
	if err != nil || !found || got.Text != policy || !slices.Equal(got.Modules, modules) {
		t.Errorf("%d bytes, %d modules, %v %v", len(got.Text), len(got.Modules), found, err)
	}
	if _, found, err := s.Get(ctx, "ci", protocol.ProjectDigest(policy)); found || err != nil {
		t.Errorf("under the policy's own digest: %v %v", found, err)
	}
}

// TestPutAgainKeepsOne: the same text again renews what is there.
func TestPutAgainKeepsOne(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	s := must(projects.New(n.Connect(t, protocol.RoleGate, "g1")))(t)
	digest := must(s.Put(ctx, "ci", text))(t)
	first, _, err := s.Get(ctx, "ci", digest)
	if err != nil {
		t.Fatal(err)
	}
	must(s.Put(ctx, "ci", text))(t)
	second, found, err := s.Get(ctx, "ci", digest)
	if err != nil || !found || !second.At.After(first.At) {
		t.Errorf("%v %v: written at %s, then %s", found, err, first.At, second.At)
	}
	if first.Stale(first.At.Add(23*time.Hour)) || !first.Stale(first.At.Add(25*time.Hour)) {
		t.Error("an entry is stale after a day")
	}
}

// TestTheOldestOfAnAgentGoes, and no other agent's.
func TestTheOldestOfAnAgentGoes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	s := must(projects.New(n.Connect(t, protocol.RoleGate, "g1")))(t)
	other := must(s.Put(ctx, "ci-2", text))(t)
	var digests []string
	for i := range projects.PerAgent {
		digests = append(digests, must(s.Put(ctx, "ci", fmt.Sprintf("{} // %d", i)))(t))
	}
	must(s.Put(ctx, "ci", "{} // 0"))(t) // renewed, so that the second is the oldest
	must(s.Put(ctx, "ci", text))(t)
	for i, want := range map[int]bool{0: true, 1: false, 2: true, projects.PerAgent - 1: true} {
		if _, found, err := s.Get(ctx, "ci", digests[i]); err != nil || found != want {
			t.Errorf("upload %d: found %v, want %v (%v)", i, found, want, err)
		}
	}
	if _, found, err := s.Get(ctx, "ci-2", other); err != nil || !found {
		t.Errorf("another agent's is gone: %v", err)
	}
}

// TestWhatIsStoredUnderAnothersDigestIsNotTaken: whoever can write the bucket
// still cannot put another policy in a project's place.
func TestWhatIsStoredUnderAnothersDigestIsNotTaken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	nc := n.Connect(t, protocol.RoleGate, "g1")
	s := must(projects.New(nc))(t)
	digest := must(s.Put(ctx, "ci", text))(t)
	js := must(bus.JetStream(nc))(t)
	for _, other := range []string{`{}`, "\xffjunk", protocol.ProjectContent(text, protocol.ProjectModule{Name: "a", Code: "x"})} {
		must(js.Publish(ctx, "$KV."+protocol.BucketProjects+".ci."+digest[len("sha256:"):], []byte(other)))(t)
		if got, found, err := s.Get(ctx, "ci", digest); !errors.Is(err, projects.ErrAltered) || found {
			t.Errorf("%q: %+v %v %v", other, got, found, err)
		}
	}
}

func TestWithoutTheBucketEverythingFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Quiet())
	op := must(bus.JetStream(n.Connect(t, protocol.RoleOperator, "op")))(t)
	s := must(projects.New(n.Connect(t, protocol.RoleGate, "g1")))(t)
	if err := op.DeleteStream(ctx, "KV_"+protocol.BucketProjects); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, "ci", text); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("stored: %v", err)
	}
	if _, found, err := s.Get(ctx, "ci", protocol.ProjectDigest(text)); err == nil || found {
		t.Errorf("found %v without an error", found)
	}
}
