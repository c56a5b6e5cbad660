package policy

import (
	"fmt"
	"strings"
	"testing"
)

// manyRules is a policy with n rules on bash and one on a tool.
func manyRules(b *testing.B, n int) *Snapshot {
	var doc strings.Builder
	doc.WriteString(`{"permission":{"*":"ask","frob":"allow","read":"allow","path":{"*.env":"deny"},"bash":{"*":"ask"`)
	for i := range n {
		fmt.Fprintf(&doc, `,"tool%d run *":"deny"`, i)
	}
	doc.WriteString(`,"git *":"allow"}}}`)
	return mustCompile(b, doc.String())
}

func BenchmarkRule(b *testing.B) {
	chain := strings.Repeat("git status && ", 49) + "git status"
	for _, n := range []int{20, 200, 2000} {
		s := manyRules(b, n)
		for _, c := range []struct {
			name string
			call Call
		}{
			{"tool", on("frob", nil)},
			{"read", on("read", m{"path": "src/a.go"})},
			{"bash", bash("git status --short")},
			{"bash no rule", bash("frob the knob")},
			{"chain of 50", bash(chain)},
		} {
			b.Run(fmt.Sprintf("%s/rules=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Rule(c.call)
				}
			})
		}
	}
}

// BenchmarkRuleHostile is what the largest texts may cost.
func BenchmarkRuleHostile(b *testing.B) {
	s := manyRules(b, 200)
	for name, text := range map[string]string{
		"paths":  strings.Repeat("/a ", 21_000),
		"names":  numbered("w", 9_000),
		"parens": strings.Repeat("(", 64<<10),
		"lists":  strings.Repeat("a;", 2_000),
		"flat":   "ls " + strings.Repeat("x", 60<<10),
		"globs":  "rg" + strings.Repeat(" -g '*"+strings.Repeat("a?", 500)+"'", 50),
		"words":  "cat" + strings.Repeat(" "+strings.Repeat("*a", 500), 60),
		"sets":   "cat " + strings.Repeat("[a-z]*", 300),
		"dirs":   "rg x" + strings.Repeat(" "+strings.Repeat("a", 100), 500),
		"seds":   "sed -e '" + strings.Repeat("s/a/b/;", 7_000) + "'",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Rule(bash(text))
			}
		})
	}
}

func numbered(word string, n int) string {
	var b strings.Builder
	b.WriteString("cat")
	for i := range n {
		fmt.Fprintf(&b, " %s%d", word, i)
	}
	return b.String()
}

func BenchmarkCompile(b *testing.B) {
	var doc strings.Builder
	doc.WriteString(`{"permission":{"bash":{"*":"ask"`)
	for i := range 2000 {
		fmt.Fprintf(&doc, `,"tool%d run *":"deny"`, i)
	}
	doc.WriteString(`}}}`)
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, doc.String())
	}
}
