package policy

import (
	"strings"
	"testing"
)

// A map of patterns behind "*" denies and asks on every surface, and grants
// nothing on any.
func TestMapUnderTheStar(t *testing.T) {
	t.Parallel()
	deny := `{"*":{"git *":"allow","git push *":"deny","*.key":"deny","*x*":"ask","danger":"deny"},"bash":"allow","read":"allow","frob":"allow","danger":"allow","mcp":"allow","skill":"allow","path":"allow","external_directory":"allow"}`
	alone := `{"*":{"git *":"allow","ls":"ask"}}`
	ruleRows(t, []row{
		{"an allow in it grants nothing", alone, bash("git status"), Ask, "bash", "*"},
		{"and is no fallback", alone, on("frob", nil), Ask, "frob", "*"},
		{"a surface's own allow stands where it is silent", deny, bash("git status"), Allow, "bash", "*"},
		{"a deny in it stands over a later allow", deny, bash("git push origin"), Deny, "bash", "git push *"},
		{"also behind another command", deny, bash("ls && git push origin"), Deny, "bash", "git push *"},
		{"a deny of a file", deny, on("read", m{"path": "a.key"}), Deny, "path", "*.key"},
		{"and another file", deny, on("read", m{"path": "a.go"}), Allow, "read", "*"},
		{"the same file in a shell", deny, bash("cat a.key"), Deny, "path", "*.key"},
		{"a skill by its name", deny, on("skill", m{"skill": "danger"}), Deny, "skill", "danger"},
		{"and another skill", deny, on("skill", m{"skill": "safe"}), Allow, "skill", "*"},
		{"an ask", deny, bash("frobx"), Ask, "bash", "*x*"},
		{"a deny over an ask", deny, bash("git push x"), Deny, "bash", "git push *"},
		{"a tool has no value", deny, on("frob", nil), Allow, "frob", "*"},
	})
	layered := Layered(true, document(t, Fleet(), permission(`{"*":{"rm *":"deny"},"bash":"ask"}`)), document(t, ProjectLayer("p"), permission(`{"*":{"rm *":"allow"},"bash":{"rm *":"allow","ls *":"allow"}}`)))
	for command, want := range map[string]Action{"rm x": Deny, "ls x": Allow} {
		if got := layered.Rule(bash(command)).Action; got != want {
			t.Errorf("%s under a trusted project: %s, want %s", command, got, want)
		}
	}
	if got := mustCompile(t, permission(deny)).Check(Query{Surface: "bash", Value: "git push x"}).State; got != Deny {
		t.Errorf("asked about by a query: %s", got)
	}
	why := ""
	for _, said := range mustCompile(t, permission(deny)).Explain(bash("git push y"), nil).Said {
		why += said.Why() + "\n"
	}
	if !strings.Contains(why, "counts on every surface") {
		t.Errorf("explained: %q", why)
	}
	if got := linted(t, "idle", permission(alone)); strings.Count(got, `an allow under "*" grants nothing`) != 1 {
		t.Errorf("warned of: %q", got)
	}
}
