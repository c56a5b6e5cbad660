package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestAnOldFileDoesNotUndoAPush: at a start a file speaks over what a start or
// the file itself has stored, and over nothing else.
func TestAnOldFileDoesNotUndoAPush(t *testing.T) {
	t.Parallel()
	const one, two, pushed = `{"limits":{"pending":1}}`, `{"limits":{"pending":2}}`, `{"permission":{"bash":"deny"}}`
	put := func(text string) func(*testing.T, *logDesk) {
		return func(t *testing.T, d *logDesk) { d.put(t, "fleet", text) }
	}
	remove := func(t *testing.T, d *logDesk) {
		e, err := d.layers(t).Get(t.Context(), policy.Fleet())
		if err == nil {
			err = d.layers(t).Remove(t.Context(), e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		first  string // file of the first start, "" for none
		then   func(*testing.T, *logDesk)
		second string
		stored string // "" for nothing
		kept   bool
	}{
		"the same file again":            {one, nil, one, one, false},
		"the file, changed meanwhile":    {one, nil, two, two, false},
		"a file after the starter":       {"", nil, two, two, false},
		"an old file after a push":       {one, put(pushed), one, pushed, true},
		"a changed file after a push":    {one, put(pushed), two, pushed, true},
		"a file that is what was pushed": {one, put(two), two, two, false},
		"a removal":                      {one, remove, one, "", true},
		"a removal, and no file":         {one, remove, "", "", false},
		"a push, and no file":            {one, put(pushed), "", pushed, false},
		"over what does not read":        {one, put("{"), two, two, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, protocol.RoleOperator)
			ctx, store, record := context.Background(), d.layers(t), filePutIn(t.TempDir())
			start := func(text string) started {
				var doc []byte
				if text != "" {
					doc = []byte(text)
				}
				s, err := startPolicy(ctx, store, record, doc, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			if s := start(row.first); s.kept || s.revision == 0 {
				t.Fatalf("the first start: %+v", s)
			}
			if row.then != nil {
				row.then(t, d)
			}
			s := start(row.second)
			e, err := store.Get(ctx, policy.Fleet())
			if err != nil && !errors.Is(err, layers.ErrNone) {
				t.Fatal(err)
			}
			if s.kept != row.kept || string(e.Text) != row.stored || string(s.text) != row.stored || s.revision != e.Revision {
				t.Errorf("kept %v, in force %q, stored %q at revision %d", s.kept, s.text, e.Text, e.Revision)
			}
			if line := policyLine("f.jsonc", s); strings.Contains(line, "NOT f.jsonc") != row.kept {
				t.Errorf("it says %q", line)
			}
		})
	}
}
