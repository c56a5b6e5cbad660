package module

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// A thousand checks that are about other tools cost a call less than 200 µs.
func BenchmarkNoneOfAThousand(b *testing.B) {
	e := engine(b, Config{Workers: 1})
	var sources []Source
	for m := range 100 {
		var checks []checkJS
		for c := range 10 {
			checks = append(checks, checkJS{name: fmt.Sprint("c", c), tools: fmt.Sprintf(`["tool-%d-%d","deploy"]`, m, c)})
		}
		sources = append(sources, module(fmt.Sprint("m", m), checks...))
	}
	s := set(b, e, sources...)
	if n := len(s.Checks()); n != 1000 {
		b.Fatal(n)
	}
	c := bash("git push")
	for b.Loop() {
		if v := s.Check(b.Context(), c); v.Decision != Pass {
			b.Fatal(v)
		}
	}
}

// tenModules are ten that are all asked about a shell command: half by the tool's
// name, half about every call.
func tenModules() []Source {
	var sources []Source
	for n := range 10 {
		tools := `["bash"]`
		if n%2 == 0 {
			tools = "null"
		}
		sources = append(sources, module(fmt.Sprint("m", n), checkJS{"c", tools,
			fmt.Sprintf(`if (/^git\s+push\b.*--force-%d/.test(input.tool.command)) return {block: "no"}`, n)}))
	}
	return sources
}

// One caller, one call after another: what a call costs it.
func BenchmarkTenModules(b *testing.B) {
	s := set(b, engine(b, Config{}), tenModules()...)
	c := bash("git push origin main")
	for b.Loop() {
		if v := s.Check(b.Context(), c); v.Decision != Pass {
			b.Fatal(v)
		}
	}
}

// Many callers: calls a second of two workers, where all of ten modules are asked,
// and where two are and the others are about other tools.
func BenchmarkTenModulesManyCallers(b *testing.B) {
	b.Run("ten asked", func(b *testing.B) { manyCallers(b, tenModules()) })
	b.Run("two asked", func(b *testing.B) {
		sources := tenModules()[:2]
		for n := range 8 {
			sources = append(sources, module(fmt.Sprint("other", n), checkJS{name: "c", tools: fmt.Sprintf(`["tool-%d"]`, n)}))
		}
		manyCallers(b, sources)
	})
}

func manyCallers(b *testing.B, sources []Source) {
	e := engine(b, Config{Workers: 2})
	s := set(b, e, sources...)
	c := bash("git push origin main")
	var failed atomic.Int64
	s.Check(b.Context(), c)
	began := workersTime(e)
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if v := s.Check(b.Context(), c); v.Decision != Pass {
				failed.Add(1)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64((workersTime(e)-began).Microseconds())/float64(b.N), "µs-worker/call")
	b.ReportMetric(float64(failed.Load()), "failed")
}

// One check of one module.
func BenchmarkOneCheck(b *testing.B) {
	s := set(b, engine(b, Config{}), tenModules()[0])
	c := bash("git push origin main")
	for b.Loop() {
		if v := s.Check(b.Context(), c); v.Decision != Pass {
			b.Fatal(v)
		}
	}
}

// A call that takes its worker down, and the one after it.
func BenchmarkAfterARunaway(b *testing.B) {
	s := set(b, engine(b, Config{Workers: 1, CallTime: 10 * time.Millisecond}), module("a", checkJS{name: "c", body: `if (input.tool.command === "loop") for (;;);`}))
	var runaway, next time.Duration
	loop, calls := bash("loop"), 0
	for b.Loop() {
		calls++
		loop.Ask.Agent = fmt.Sprint("agent-", calls) // one agent's calls would soon rest
		if v := s.Check(b.Context(), loop); v.Failure == "" {
			b.Fatal(v)
		} else {
			runaway += v.Took
		}
		v := s.Check(b.Context(), bash("ls"))
		if v.Decision != Pass {
			b.Fatal(v)
		}
		next += v.Took
	}
	b.ReportMetric(float64(runaway.Milliseconds())/float64(b.N), "ms/runaway")
	b.ReportMetric(float64(next.Microseconds())/float64(b.N), "µs/next")
}

// workersTime is the processor time that the workers of e have had, which ages
// less with what else the machine does than the time by the clock.
func workersTime(e *Engine) (sum time.Duration) {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	for p := range e.pool.all {
		sum += p.cpuTime()
	}
	return sum
}
