package cli

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// A worker for permission modules is for engines alone: no list of commands has
// it, and it takes no order of a module before it has given up its rights. (That
// it serves an engine, internal/module and e2e show.)
func TestModuleWorker(t *testing.T) {
	t.Parallel()
	load := `{"op":"load","module":1,"root":"","code":"1"}`
	for _, row := range []struct {
		does  string
		args  []string
		stdin []byte
		code  int
		says  string
	}{
		{"it ends with its input", nil, nil, ExitOK, ""},
		{"a module before the limits", nil, append(binary.BigEndian.AppendUint32(nil, uint32(len(load))), load...), ExitFailure, "before hello"},
		{"a frame that is cut short", nil, []byte{0, 0}, ExitFailure, "frame"},
		{"an argument", []string{"x"}, nil, ExitUsage, "takes no arguments"},
	} {
		env, out, errs := testEnv()
		env.Stdin = bytes.NewReader(row.stdin)
		if code := Main(env, append([]string{"module-worker"}, row.args...), ModuleWorker); code != row.code || !strings.Contains(errs.String(), row.says) || out.Len() > 0 {
			t.Errorf("%s: exit %d, %q, said %q", row.does, code, errs, out)
		}
	}
	env, out, _ := testEnv()
	if code := Main(env, []string{"--help"}, Up, ModuleWorker); code != ExitOK || strings.Contains(out.String(), "module-worker") {
		t.Errorf("exit %d: the help lists it:\n%s", code, out)
	}
}
