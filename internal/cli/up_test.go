package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/local"
)

func TestWhatUpSaysToTypeReachesTheNodeThatIsUp(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, store, path string
		want, never       []string
	}{
		{"the node that commands find", "/var/lib/assent/main", "/home/dev/.config/assent/local.json",
			[]string{"found by     /home/dev/.config/assent/local.json\n", "  assent install claude-code  ", "  assent pending  "},
			[]string{"ASSENT_STORE", "--local"}},
		{"one that they do not find", "/var/lib/assent/ci", "",
			[]string{"  export ASSENT_STORE=/var/lib/assent/ci\n", "  assent install claude-code --local /var/lib/assent/ci/local.json  ", "  assent pending  "},
			[]string{"found by  "}},
		{"one in a folder with a blank", "/var/lib/my nodes/ci", "",
			[]string{"  export ASSENT_STORE='/var/lib/my nodes/ci'\n", "--local '/var/lib/my nodes/ci/local.json'  "},
			[]string{"=/var/lib/my "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, out, _ := testEnv()
			banner(env, local.Default{Node: "ci", NATS: "nats://127.0.0.1:4222", Store: row.store}, row.path, "revision 1 as it is stored")
			for _, text := range row.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%q is missing in:\n%s", text, out)
				}
			}
			for _, text := range row.never {
				if strings.Contains(out.String(), text) {
					t.Errorf("%q stands in:\n%s", text, out)
				}
			}
			if !regexp.MustCompile(`(?m)^  assent doctor +prove that it works$`).MatchString(out.String()) {
				t.Errorf("the last line is not as it was:\n%s", out)
			}
		})
	}
}
