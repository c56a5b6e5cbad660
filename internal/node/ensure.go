package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Ensure makes sure that path holds a live credential for role and name, with
// exactly the links of opts: the one that is there, or a new one. A file that
// others may read is refused, not replaced: its secret may be known.
func (a *Authority) Ensure(path string, role protocol.Role, name string, opts IssueOptions) error {
	ok, err := a.usable(path, role, name, opts.Links)
	if ok || err != nil {
		return err
	}
	opts.Again = true
	creds, err := a.Issue(role, name, opts)
	if err != nil {
		return err
	}
	return WritePrivate(path, creds)
}

func (a *Authority) usable(path string, role protocol.Role, name string, links []string) (bool, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	b, err := readPrivate(path)
	if err != nil {
		return false, fmt.Errorf("credentials of %s %s: %w", role, name, err)
	}
	c, err := bus.ParseCreds(b)
	if err != nil {
		return false, nil // not credentials, or torn: made anew
	}
	usable := false
	err = a.locked("", func(_ *keys, led *ledger) error {
		for _, known := range led.live(role, name) {
			usable = usable || known.Key == c.Key && slices.Equal(known.Links, links)
		}
		return nil
	})
	return usable, err
}
