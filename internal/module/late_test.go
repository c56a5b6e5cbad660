package module

import (
	"context"
	"io"
	"runtime"
	"testing"
)

// tripped is what a worker says, with something done before it is heard.
type tripped struct {
	io.Reader
	trip func()
}

func (r tripped) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.trip()
	return n, err
}

// The kill of a call whose time ended as its answer came hits that call's worker,
// and not the next call, which the worker was given to meanwhile.
func TestATimeThatEndsWithTheAnswer(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := set(t, e, module("a", checkJS{name: "c"}))
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Pass {
		t.Fatal(v)
	}
	p, err := e.pool.take(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.frames.from.Reset(tripped{p.from, cancel})
	e.pool.put(p)
	// With one processor, who kills comes to it only when the call is over.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	v := s.Check(ctx, bash("ls"))
	if well := p.well(); ctx.Err() == nil || well {
		t.Errorf("%+v; its worker goes to the next call though it is to be killed", v)
	}
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Pass {
		t.Errorf("the next call: got %s (%s)", v.Decision, v.Failure)
	}
}
