package policy

import "testing"

// A rule on a skill holds for whoever reads in its folder; an allow of a skill
// allows no file.
func TestReadingInASkillsFolder(t *testing.T) {
	t.Parallel()
	doc := `{"*":"ask","skill":{"*":"allow","secret":"deny","careful":"ask"},"read":"allow","edit":"allow","write":"allow","ls":"allow","grep":"allow","external_directory":"allow","path":"allow","bash":"allow"}`
	asks := `{"*":"allow","skill":{"*":"ask","open":"allow"}}`
	only := `{"*":"ask","skill":{"*":"allow"},"read":"ask"}`
	read := func(path string) Call { return on("read", m{"path": path}) }
	mac := read(".claude/Skills/Secret/skill.MD")
	mac.Platform = "darwin"
	linked := read("notes.md")
	linked.Paths = []Path{{Raw: "notes.md", Resolved: "/home/dev/.claude/skills/secret/SKILL.md"}}
	ruleRows(t, []row{
		{"a denied skill by its text", doc, read(".claude/skills/secret/SKILL.md"), Deny, "skill", "secret"},
		{"a file below", doc, read("~/.codex/skills/secret/scripts/run.py"), Deny, "skill", "secret"},
		{"the folder of another agent", doc, read("~/.pi/agent/skills/secret/x.md"), Deny, "skill", "secret"},
		{"a skill that lies elsewhere", doc, read("plugins/secret/SKILL.md"), Deny, "skill", "secret"},
		{"in a shell", doc, bash("cat .claude/skills/secret/SKILL.md"), Deny, "skill", "secret"},
		{"behind cd", doc, bash("cd .claude/skills/secret && cat SKILL.md"), Deny, "skill", "secret"},
		{"up and down again", doc, read(".claude/skills/open/../secret/SKILL.md"), Deny, "skill", "secret"},
		{"by a glob", doc, bash("cat .claude/skills/se*/SKILL.md"), Ask, "skill", "<could-select:secret>"},
		{"by a glob in front of it", doc, bash("cat .claude/sk*/secret/x.md"), Deny, "skill", "secret"},
		{"by brackets in front of it", doc, bash("cat .claude/s[k]ills/secret/x.md"), Deny, "skill", "secret"},
		{"its text by a glob", doc, bash("cat plugins/secret/SK*"), Deny, "skill", "secret"},
		{"in another letter case on macOS", doc, mac, Deny, "skill", "secret"},
		{"through a link", doc, linked, Deny, "skill", "secret"},
		{"a skill that asks", doc, read(".claude/skills/careful/SKILL.md"), Ask, "skill", "careful"},
		{"all skills ask", asks, read(".claude/skills/any/SKILL.md"), Ask, "skill", "*"},

		{"another skill", doc, read(".claude/skills/open/SKILL.md"), Allow, "read", "*"},
		{"the one that is allowed", asks, read(".claude/skills/open/SKILL.md"), Allow, "read", "*"},
		{"another skill in a shell", doc, bash("cat .claude/skills/open/SKILL.md"), Allow, "bash", "*"},
		{"another skill by a glob", doc, bash("cat .claude/skills/op*/SKILL.md"), Allow, "bash", "*"},
		{"another skill by a glob in front of it", doc, bash("cat .claude/sk*/open/x.md"), Allow, "bash", "*"},
		{"all files of a folder", doc, bash("cat secret/* src/s*"), Allow, "bash", "*"},
		{"the list of skills", doc, bash("ls .claude/skills"), Allow, "bash", "*"},
		{"a file about skills", doc, read("docs/skills/secret.md"), Allow, "read", "*"},
		{"a package of that name", doc, read("internal/skills/secret/x.go"), Allow, "read", "*"},
		{"writing one", doc, on("write", m{"path": ".claude/skills/secret/SKILL.md", "content": "x"}), Allow, "write", "*"},
		{"where no rule speaks of skills", `{"*":"ask","read":"allow"}`, read(".claude/skills/secret/SKILL.md"), Allow, "read", "*"},
		{"an allowed skill allows no file", only, read(".claude/skills/x/SKILL.md"), Ask, "read", "*"},
	})
}
