package policy

import (
	"path"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// subcommands are programs whose second word says what they do.
var subcommands = map[string]bool{
	"git": true, "npm": true, "pnpm": true, "yarn": true, "go": true, "cargo": true, "docker": true, "podman": true,
	"kubectl": true, "gh": true, "pip": true, "uv": true, "make": true, "terraform": true, "helm": true, "brew": true,
}

// exactOnly are programs for which no pattern is offered: one approval must
// not cover whatever they are pointed at next.
var exactOnly = map[string]bool{
	"rm": true, "dd": true, "mkfs": true, "chmod": true, "chown": true, "kill": true, "pkill": true, "curl": true,
	"wget": true, "shred": true, "truncate": true, "mv": true, "tee": true,
}

// suggest is the pattern offered for a grant on the first open entry. A floor
// gets none: no grant lifts it.
func (e *evaluation) suggest() []string {
	open := e.out.Open()
	if len(open) == 0 || open[0].Floor || open[0].HumanOnly || strings.HasSuffix(open[0].Value, "…") {
		return nil
	}
	first := open[0]
	switch {
	case first.Surface == surfaceBash:
		text, _ := e.args["command"].(string)
		cmd := shell.Read(text)
		if !cmd.Simple {
			return nil
		}
		return commandPattern(cmd.Units[0].Words)
	case first.Value == "" || strings.ContainsAny(first.Value, "*?") && first.Value != "*":
		return nil
	}
	return []string{first.Value}
}

// commandPattern is the pattern for commands like words.
func commandPattern(words []string) []string {
	whole := strings.Join(words, " ")
	if strings.ContainsAny(whole, "*?") {
		return nil // a quoted star would become a wildcard
	}
	switch {
	case len(words) == 1 || exactOnly[path.Base(words[0])]:
		return []string{whole}
	case !subcommands[words[0]]:
		return []string{words[0] + " *"}
	case strings.HasPrefix(words[1], "-"):
		return []string{whole}
	}
	return []string{words[0] + " " + words[1] + " *"}
}
