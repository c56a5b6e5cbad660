//go:build linux

package shell

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile are texts of the largest size, each made to cost the reader time,
// stack or memory.
func hostile() map[string]string {
	rep := func(s string) string { return strings.Repeat(s, MaxText/len(s)) }
	nest := func(open, in, close string, n int) string {
		return strings.Repeat(open, n) + in + strings.Repeat(close, n)
	}
	return map[string]string{
		"parens": rep("("), "parens closed": nest("(", "a", ")", 199), "braces": rep("{ "), "substitutions": rep("$(a) "), "open substitutions": rep("$("), "arithmetic": rep("$(("),
		"backquotes": rep("`"), "quotes": rep(`"`), "mixed quotes": rep(`"'`), "brace words": "echo " + rep("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} "), "one brace word": rep("{a,b}"), "nested braces": rep("{a,{"),
		"ranges": rep("{1..9}"), "heredocs": rep("<<a "), "heredocs with bodies": rep("a <<E\nx\nE\n"), "redirects": "a " + rep(">b "), "many redirects": rep("./a>b;"), "assignments": rep("a=1;"),
		"assignments of different names": func() string {
			var b strings.Builder
			for i := 0; b.Len() < MaxText-20; i++ {
				b.WriteString("a" + strings.Repeat("b", i%9) + "=x; ")
			}
			return b.String()
		}(),
		"prefixes": rep("a=1 "), "pipes": rep("a|"), "lists": rep("a;"), "ands": rep("a&&") + "a", "loops": rep("for i in 1 2 3 4; do a $i; done; "),
		"nested loops": nest("for i in a b c d e f; do ", rep("x $i; ")[:2000], " done;", 40), "loop over much": "for i in " + rep("a ")[:60000] + "; do b $i; done",
		"a loop of much": "for i in a b c d e f g h; do " + rep("a $i; ")[:60000] + "done", "ifs": rep("if a; then b; fi; "), "cases": "case a in " + rep("b) c;; ")[:60000] + " esac",
		"functions": rep("f() { a; }; "), "continuations": rep("a \\\n"), "comments": rep("# \\\n"), "wrappers": rep("sudo "), "modifiers": rep("env "), "payloads": "bash -c '" + rep("a;")[:60000] + "'",
		"nested payloads": nest("bash -c \"", "a", "\"", 100), "evals": rep("eval "), "greps": "grep " + rep("-e a "), "gits": "git " + rep("-C a "), "tests": "[[ " + rep("! ") + "a ]]", "times": rep("time "),
		"bangs": rep("! "), "sums": "echo $((" + rep("1+")[:60000] + "1))", "params": rep("${a:-"), "indices": rep("${a["), "dollars": rep("$a "), "quoted dollars": "a " + rep(`"$a"`), "cds": rep("cd a;"),
		"cds in turns": rep("cd a || cd b;"), "seds": "sed -e '" + rep("s/a/b/;")[:60000] + "'", "awks": "awk '" + rep(`print "a";`)[:60000] + "'", "globs": "ls " + rep("*[a]? "), "words": rep("ab "), "text": rep("x"),
		"extended globs": rep("@(a|"), "pipes to names": rep("<(a) "), "here strings": rep("a<<<b;"), "signs": "((" + rep("-"), "quotes in quotes": rep(`"${x:-'$(a)'}" `),
	}
}

// Whatever the text, reading it takes a moment, under a tenth of a second on a
// quiet machine: an agent must not be able to stall the gate. What fails here is a
// text whose cost grows with its square, which takes seconds; the fastest of some
// runs counts, and a virtual machine whose neighbours are busy counts up to four
// times as much.
func TestHostileTextsAreReadSoon(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("takes a while")
	}
	// The thread's own time: what else the machine does is no fault of a text.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, text := range hostile() {
		best := time.Hour
		for range 5 {
			from := threadTime(t)
			Read(text[:min(len(text), MaxText)])
			if best = min(best, threadTime(t)-from); best < 300*time.Millisecond {
				break
			}
		}
		if best > 500*time.Millisecond {
			t.Errorf("%s: %s", name, best)
		}
		t.Logf("%s: %s", name, best)
	}
}

// threadTime is the processor time that this thread has used.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
