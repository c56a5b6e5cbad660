package policy

import "testing"

func TestALinkHidesNothingFromAShellRule(t *testing.T) {
	s := mustCompile(t, `{"permission":{"*":"ask","bash":{"*":"ask","head *":"allow"},"path":{"*":"allow","*.env":"deny"},"external_directory":{"*":"ask","/srv/*":"allow"}}}`)
	for name, row := range map[string]struct {
		command, raw, resolved string
		want                   Action
	}{
		"a file of the project":                 {"head notes.txt", "", "", Allow},
		"a link inside the project":             {"head notes.txt", "notes.txt", "/repo/docs/notes.txt", Allow},
		"a link to an allowed place outside":    {"head notes.txt", "notes.txt", "/srv/notes.txt", Allow},
		"a link to a denied file":               {"head notes.txt", "notes.txt", "/repo/.env", Deny},
		"a link out of the project":             {"head notes.txt", "notes.txt", "/etc/passwd", Ask},
		"a link to a denied file, as an option": {"head --lines=notes.txt", "--lines=notes.txt", "/repo/prod.env", Deny},
	} {
		t.Run(name, func(t *testing.T) {
			c := Call{Tool: "bash", Input: []byte(`{"command":"` + row.command + `"}`), Cwd: "/repo", Home: "/home/dev"}
			if row.raw != "" {
				c.Paths = []Path{{Raw: row.raw, Resolved: row.resolved}}
			}
			if got := s.Rule(c); got.Action != row.want {
				t.Errorf("got %v by %+v, want %v", got.Action, got.Decisive, row.want)
			}
		})
	}
}
