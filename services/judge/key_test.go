package judge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/llm"
)

const secretKey = "sk-test-0123456789"

// TestAKeyComesFromAFileOfItsOwnersAlone: nothing of what may be a key is shown.
func TestAKeyComesFromAFileOfItsOwnersAlone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // of the error; "" for the key
	}{
		"its owner alone may read it": {secretKey, 0o600, ""},
		"not even write it":           {secretKey + "\n", 0o400, ""},
		"blanks around it":            {" \n" + secretKey + "\r\n", 0o600, ""},

		"its group may read it":  {secretKey, 0o640, "chmod 600"},
		"everybody may read it":  {secretKey, 0o644, "chmod 600"},
		"others may write it":    {secretKey, 0o602, "chmod 600"},
		"nothing is in it":       {" \n", 0o600, "is empty"},
		"two lines":              {secretKey + "\nsk-other", 0o600, "something else than one key"},
		"a control character":    {secretKey + "\x00", 0o600, "something else than one key"},
		"something else, though": {strings.Repeat("x", maxKey+1), 0o600, "something else than one key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, row.mode); err != nil {
				t.Fatal(err)
			}
			got, err := LinkConfig{APIKeyFile: path}.key(nil)
			switch {
			case row.want == "" && (err != nil || got != secretKey):
				t.Errorf("%q, %v", got, err)
			case row.want != "" && (got != "" || !errors.Is(err, llm.ErrAuth) || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "sk-")):
				t.Errorf("%q, %v; want %q", got, err, row.want)
			}
		})
	}
}

func TestWhatIsNoFileHoldsNoKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{dir, pipe, filepath.Join(dir, "gone")} {
		if got, err := (LinkConfig{APIKeyFile: path}).key(nil); got != "" || !errors.Is(err, llm.ErrAuth) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestAKeyComesFromTheVariableThatIsNamed(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"K": secretKey + "\n", "BLANK": " ", "TWO": "sk-a sk-b"}[name]
		return v, ok
	}
	for name, want := range map[string]string{"K": "", "BLANK": "BLANK is not set", "GONE": "GONE is not set", "TWO": "something else than one key"} {
		got, err := LinkConfig{APIKeyEnv: name}.key(env)
		if want == "" && (err != nil || got != secretKey) || want != "" && (got != "" || !errors.Is(err, llm.ErrAuth) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-")) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := (LinkConfig{}).key(env); got != "" || err != nil {
		t.Errorf("a server that needs none: %q, %v", got, err)
	}
}
