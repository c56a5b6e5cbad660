package layers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/policy"
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

func store(t *testing.T) (*nodetest.Node, *layers.Store) {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	js := must(bus.JetStream(n.Connect(t, protocol.RoleOperator, "op")))(t)
	return n, must(layers.Open(context.Background(), js))(t)
}

func layer(t *testing.T, name string) policy.Layer {
	t.Helper()
	return must(policy.ParseLayer(name))(t)
}

// put stores a text whatever was there, broken ones too.
func put(t *testing.T, s *layers.Store, key, text string) uint64 {
	t.Helper()
	return must(s.Bucket().Put(context.Background(), key, []byte(text)))(t)
}

func TestPutIsACompareAndSet(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	for _, name := range []string{"fleet", "project/github.com/acme/shop", "agent/code reviewer", "project-agent/a/b/c"} {
		t.Run(name, func(t *testing.T) {
			l := layer(t, name)
			if _, err := s.Get(ctx, l); !errors.Is(err, layers.ErrNone) {
				t.Fatalf("before anything is stored: %v", err)
			}
			first := must(s.Put(ctx, l, []byte(`{}`), layers.Entry{}))(t)
			if _, err := s.Put(ctx, l, []byte(`{"secretPaths":[]}`), layers.Entry{}); !errors.Is(err, layers.ErrOvertaken) {
				t.Errorf("created twice: %v", err)
			}
			old := must(s.Get(ctx, l))(t)
			if old.Revision != first || string(old.Text) != `{}` || old.Layer != l || old.Document == nil {
				t.Errorf("stored %+v", old)
			}
			if again := must(s.Put(ctx, l, []byte(`{}`), old))(t); again != first {
				t.Errorf("the same text made revision %d of %d", again, first)
			}
			must(s.Put(ctx, l, []byte(`{"secretPaths":["a"]}`), old))(t)
			if _, err := s.Put(ctx, l, []byte(`{"secretPaths":["b"]}`), old); !errors.Is(err, layers.ErrOvertaken) {
				t.Errorf("over an old revision: %v", err)
			}
			if err := s.Remove(ctx, old); !errors.Is(err, layers.ErrOvertaken) {
				t.Errorf("an old revision removed: %v", err)
			}
			if err := s.Remove(ctx, must(s.Get(ctx, l))(t)); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(ctx, l); !errors.Is(err, layers.ErrNone) {
				t.Errorf("after it was removed: %v", err)
			}
			must(s.Put(ctx, l, []byte(`{}`), layers.Entry{}))(t) // and anew
		})
	}
}

func TestWhatDoesNotReadIsNotStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	for name, row := range map[string]struct{ layer, text string }{
		"cut off":                        {"fleet", `{"permission":`},
		"a project that names links":     {"project/shop", `{"authorizerChain":["a"]}`},
		"an agent that turns on yolo":    {"agent/a", `{"yoloMode":true}`},
		"a layer of both that is no map": {"project-agent/shop/a", `[]`},
		"too long":                       {"fleet", strings.Repeat(" ", policy.MaxDocument+1)},
	} {
		if _, err := s.Put(ctx, layer(t, row.layer), []byte(row.text), layers.Entry{}); !errors.Is(err, policy.ErrPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all := must(s.Newest(ctx))(t); len(all) != 0 {
		t.Errorf("stored: %+v", all)
	}
}

func TestHistoryHoldsWhatWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	fleet := put(t, s, "fleet", `{}`)
	put(t, s, "agent.b", `{"permission":{"*":"deny"}}`)
	put(t, s, "agent.b", `{`)
	if err := s.Bucket().Delete(ctx, "agent.b"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "project.a", `{}`)
	var newest, history []string
	for _, e := range must(s.Newest(ctx))(t) {
		newest = append(newest, fmt.Sprintf("%d %s removed %v", e.Revision, e.Name(), e.Removed))
	}
	for _, e := range must(s.History(ctx))(t) {
		history = append(history, fmt.Sprintf("%d %s removed %v broken %v", e.Revision, e.Name(), e.Removed, e.Broken()))
	}
	if want := []string{"1 fleet removed false", "5 project/a removed false", "4 agent/b removed true"}; fleet != 1 || !slices.Equal(newest, want) {
		t.Errorf("newest %q, want %q", newest, want)
	}
	want := []string{"5 project/a removed false broken false", "4 agent/b removed true broken false", "3 agent/b removed false broken true", "2 agent/b removed false broken false", "1 fleet removed false broken false"}
	if !slices.Equal(history, want) {
		t.Errorf("history %q, want %q", history, want)
	}
}

// TestABookIsTheSameWhateverTheOrder in which it took the newest entries.
func TestABookIsTheSameWhateverTheOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	put(t, s, "fleet", `{"permission":{"bash":"allow"}}`)
	put(t, s, "project.shop", `{"permission":{"bash":{"make *":"deny"}}}`)
	put(t, s, "agent.reviewer", `{"permission":{"bash":{"gh *":"deny"}}}`)
	put(t, s, "agent.gone", `{}`)
	if err := s.Bucket().Delete(ctx, "agent.gone"); err != nil {
		t.Fatal(err)
	}
	book := func(order func([]layers.Entry)) *policy.Set {
		all := must(s.Newest(ctx))(t)
		order(all)
		b := layers.NewBook()
		for _, e := range all {
			if err := b.Take(e, func(e layers.Entry) (*policy.Document, error) { return s.LastGood(ctx, e) }); err != nil {
				t.Fatal(err)
			}
		}
		return b.Set()
	}
	one, two := book(func([]layers.Entry) {}), book(slices.Reverse)
	if one.Revision() != 5 || two.Revision() != 5 || one.Digest() != two.Digest() || one.Clamped() != "" {
		t.Errorf("revisions %d and %d, digests %s and %s, clamped %q", one.Revision(), two.Revision(), one.Digest(), two.Digest(), one.Clamped())
	}
	broken := put(t, s, "agent.gone", `{"permission":`)
	clamped := book(func([]layers.Entry) {})
	if clamped.Revision() != broken || !strings.Contains(clamped.Clamped(), "agent/gone") {
		t.Errorf("revision %d, clamped %q", clamped.Revision(), clamped.Clamped())
	}
}

func TestLastGoodIsTheNewestThatReadBefore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	entryOf := func(key string, revision uint64) layers.Entry { return layers.Entry{Key: key, Revision: revision} }
	if doc, err := s.LastGood(ctx, entryOf("agent.never", 9)); err == nil && doc != nil {
		t.Errorf("of nothing: %v", doc)
	}
	first := put(t, s, "agent.a", `{"permission":{"bash":"deny"}}`)
	bad := put(t, s, "agent.a", `{`)
	worse := put(t, s, "agent.a", `{{`)
	put(t, s, "agent.a", `{"permission":{"bash":"allow"}}`)
	want := must(policy.Read(policy.AgentLayer("a"), "x", []byte(`{"permission":{"bash":"deny"}}`)))(t).Digest()
	for _, revision := range []uint64{bad, worse} {
		doc := must(s.LastGood(ctx, entryOf("agent.a", revision)))(t)
		if doc == nil || doc.Digest() != want {
			t.Errorf("before %d, where %d was good: %v", revision, first, doc)
		}
	}
	t.Run("and where none was, there is none", func(t *testing.T) {
		at := put(t, s, "agent.b", `{`)
		if doc := must(s.LastGood(ctx, entryOf("agent.b", at)))(t); doc != nil {
			t.Errorf("got %v", doc)
		}
	})
}

// TestABookWithoutTheDeniesIsNotUsed: where the history cannot be read, the entry
// is not taken.
func TestABookWithoutTheDeniesIsNotUsed(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	b := layers.NewBook()
	err := b.Take(layers.Entry{Key: "agent.a", Revision: 4, Err: policy.ErrPolicy}, func(layers.Entry) (*policy.Document, error) { return nil, lost })
	if !errors.Is(err, lost) || b.Revision() != 0 {
		t.Errorf("taken: %v, revision %d", err, b.Revision())
	}
}

// TestTheListOfModulesIsNoLayer: beside the policy it neither clamps it, nor is it
// shown as a part of it; a key that only looks like it does both.
func TestTheListOfModulesIsNoLayer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for key, clamps := range map[string]bool{protocol.KeyModules: false, "Modules": true, protocol.KeyModules + ".x": true} {
		_, s := store(t)
		fleet := put(t, s, "fleet", `{"permission":{"*":"allow"}}`)
		put(t, s, key, "junk")
		book := layers.NewBook()
		for _, e := range must(s.Everything(ctx))(t) {
			if err := book.Take(e, func(layers.Entry) (*policy.Document, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		shown := len(must(s.Newest(ctx))(t)) + len(must(s.History(ctx))(t))
		if got := book.Set().Clamped() != ""; got != clamps || (book.Revision() == fleet) == clamps || (shown == 2) == clamps {
			t.Errorf("%s: clamped %v, revision %d of %d, %d shown", key, got, book.Revision(), fleet, shown)
		}
	}
}
