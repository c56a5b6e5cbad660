package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestWhatAnOperatorPushesIsInForceAtEveryGateAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g1, g2 := r.follow("g1"), r.follow("g2")
	g1.sees(nil)
	all := func(want ...string) {
		t.Helper()
		g1.sees(want)
		g2.sees(want)
	}
	// Larger than one chunk of the object store.
	long := "b1 " + strings.Repeat("x", 300<<10)
	r.push(src("b", long), src("a", "a1"))
	all("a=a1", "b="+long)
	r.push(src("b", "b2"))
	all("a=a1", "b=b2")
	must(r.store.Enable(t.Context(), "a", false))(t)
	all("b=b2")
	must(r.store.Enable(t.Context(), "a", true))(t)
	all("a=a1", "b=b2")
	r.push(src("C", "c1"), src("a", "a2"))
	all("C=c1", "a=a2", "b=b2") // in the order of the names' bytes, on every gate
	must(r.store.Remove(t.Context(), "b"))(t)
	all("C=c1", "a=a2")
	// A gate that starts now.
	r.follow("g3").sees([]string{"C=c1", "a=a2"})
}

func TestTheListSaysWhoPushedWhatAndWhen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, _, second := r.operator("op2")
	r.push(src("a", "a1"))
	must(second.Push(t.Context(), []module.Source{src("b", "b1"), src("a", "a1")}))(t)
	now := must(r.store.Get(t.Context()))(t)
	a, _ := now.List.Find("a")
	b, _ := now.List.Find("b")
	if a.PushedBy != "op" || b.PushedBy != "op2" || now.SignedBy != "op2" || a.PushedAt.IsZero() || a.Size != 2 || !a.Enabled {
		t.Errorf("%+v %+v by %s", a, b, now.SignedBy)
	}
	if code := must(r.store.Code(t.Context(), b.Version))(t); code != "b1" {
		t.Errorf("code %q", code)
	}
	// The same again is no new list.
	if again := r.push(src("a", "a1")); again.Revision != now.Revision {
		t.Errorf("revision %d after %d", again.Revision, now.Revision)
	}
	// What was switched off is on again when it is pushed.
	must(r.store.Enable(t.Context(), "a", false))(t)
	if e, _ := r.push(src("a", "a1")).List.Find("a"); !e.Enabled || e.PushedBy != "op" {
		t.Errorf("%+v", e)
	}
}

func TestWhatCannotBeInTheListIsRefusedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.push(src("a", "a1"))
	for name, row := range map[string]struct {
		do   func() error
		want error
	}{
		"no name":           {func() error { _, err := r.store.Push(t.Context(), []module.Source{src("", "x")}); return err }, ErrList},
		"a path for a name": {func() error { _, err := r.store.Push(t.Context(), []module.Source{src("../a", "x")}); return err }, ErrList},
		"a name of 65 bytes": {func() error {
			_, err := r.store.Push(t.Context(), []module.Source{src(strings.Repeat("a", 65), "x")})
			return err
		}, ErrList},
		"no code": {func() error { _, err := r.store.Push(t.Context(), []module.Source{src("b", "")}); return err }, ErrList},
		"too much code": {func() error {
			_, err := r.store.Push(t.Context(), []module.Source{src("b", strings.Repeat("x", module.MaxCode+1))})
			return err
		}, ErrList},
		"to enable what is not there":  {func() error { _, err := r.store.Enable(t.Context(), "b", true); return err }, ErrUnknown},
		"to disable what is not there": {func() error { _, err := r.store.Enable(t.Context(), "b", false); return err }, ErrUnknown},
		"to remove what is not there":  {func() error { _, err := r.store.Remove(t.Context(), "b"); return err }, ErrUnknown},
		"over somebody else's change":  {func() error { _, err := r.store.change(t.Context(), Standing{}, before.List); return err }, ErrOvertaken},
	} {
		if err := row.do(); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := must(r.store.Get(t.Context()))(t); now.Revision != before.Revision {
		t.Errorf("the list has changed: %+v", now.List)
	}
	if stored := must(r.store.code.List(t.Context()))(t); len(stored) != 1 {
		t.Errorf("%d bundles are stored", len(stored))
	}
}

func TestOnlyTheTwoNewestListsKeepTheirCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.follow("g1")
	versions := []string{}
	for _, code := range []string{"a1", "a2", "a3"} {
		e, _ := r.push(src("a", code)).List.Find("a")
		versions = append(versions, e.Version)
		g.sees([]string{"a=" + code})
	}
	for i, want := range []error{ErrNoBundle, nil, nil} {
		if _, err := r.store.Code(t.Context(), versions[i]); !errors.Is(err, want) {
			t.Errorf("a%d: %v", i+1, err)
		}
	}
}

// TestCodeIsWhatItsVersionSays: who can write the object bucket can keep a module
// from loading, and can put nothing in its place.
func TestCodeIsWhatItsVersionSays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := src("a", "a1")
	r.push(first)
	g := r.follow("g1")
	g.sees([]string{"a=a1"})
	second := src("a", "a2")
	must(r.store.code.PutBytes(t.Context(), second.Version(), []byte("evil")))(t)
	// The list alone, as a push that found the code there would leave it.
	now := must(r.store.Get(t.Context()))(t)
	next := now.List.with(Entry{Name: "a", Version: second.Version(), Size: 2, Enabled: true, PushedBy: "op", PushedAt: now.List.Modules[0].PushedAt})
	must(r.store.change(t.Context(), now, next))(t)
	g.sees([]string{"a=a1"}, ErrAltered.Error())
	r.follow("g2").sees(nil, ErrAltered.Error())
	// Mended, it is in force without another push.
	must(r.store.code.PutBytes(t.Context(), second.Version(), []byte("a2")))(t)
	g.sees([]string{"a=a2"})
	if err := r.store.code.Delete(t.Context(), second.Version()); err != nil {
		t.Fatal(err)
	}
	g.sees([]string{"a=a2"})
	r.follow("g3").sees(nil, ErrNoBundle.Error())
	r.push(second)
	r.follow("g4").sees([]string{"a=a2"})
}

func TestAConnectionThatWasAwayMissesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.push(src("a", "a1"))
	g := r.follow("g1")
	g.sees([]string{"a=a1"})
	for _, code := range []string{"a2", "a3", "a4"} {
		if err := g.nc.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		r.push(src("a", code))
		g.sees([]string{"a=" + code})
	}
}

// TestTheBucketMadeAnewIsFollowed: it counts from one again, and a watch of the
// old one hears nothing any more.
func TestTheBucketMadeAnewIsFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.push(src("a", "a1"))
	g := r.follow("g1")
	g.sees([]string{"a=a1"})
	js := r.store.js
	cfg := must(js.Stream(t.Context(), "KV_"+protocol.BucketPolicy))(t).CachedInfo().Config
	if err := js.DeleteKeyValue(t.Context(), protocol.BucketPolicy); err != nil {
		t.Fatal(err)
	}
	must(js.CreateStream(t.Context(), cfg))(t)
	g.sees([]string{"a=a1"}, ErrRemoved.Error())
	r.push(src("b", "b1")) // signed since: what was lost with the bucket is pushed again, or not
	g.sees([]string{"b=b1"})
}
