package policy

import (
	"errors"
	"testing"
)

// TestTooWide: what a grant's pattern has to name, and neighbours that do.
func TestTooWide(t *testing.T) {
	t.Parallel()
	for surface, rows := range map[string]map[string]bool{ // true: too wide
		"bash": {
			"*e*": true, "*z": true, "t*": true, "g?t push": true, "git*": true, "A=1 *": true, " *": true,
			"git *": false, "git push*": false, "A=1 git *": false, "ls": false, "./run *": false, "git push": false,
		},
		"path": {
			"*": true, "/*": true, "//*": true, "/etc/*": true, "/usr/*": true, "/home/*": true, "/home/dev/*": true, "~/*": true, "~*": true,
			"*.go": true, "/s*": true, "../*": true, "/srv/../*": true, "./../*": true, `C:\*`: true, "C:/Users/dev/*": true,
			"/srv/*": false, "/home/dev/shop/*": false, "~/shop/*": false, "src/*": false, "./*": false, "/etc/nginx/*": false, "/etc/hosts": false,
			`C:\shop\*`: false, "src/a.go": false,
		},
		"external_directory": {"*": true, "/tmp/*": false, "/opt/x/*.so": false},
		"mcp":                {"*": true, "e*": true, "*/search": true, "/*": true, "exa/*": false, "exa:*": false, "exa_*": false, "exa": false},
		"skill":              {"*": true, "p*": true, "pdf": false, "office:*": false},
		"WebFetch":           {"*": false},
	} {
		for pattern, want := range rows {
			g, err := NewGrant("g", surface, []string{pattern})
			if err == nil {
				err = g.TooWide()
			}
			if errors.Is(err, ErrGrant) != want {
				t.Errorf("%s %q: %v", surface, pattern, err)
			}
		}
	}
}
