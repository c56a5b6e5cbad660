package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// credential is one credentials file of a local node.
type credential struct{ file, name string }

// credentials are those of a local node, by role.
type credentials map[protocol.Role]credential

// localRoles are the roles that `assent up` needs itself or hands to the other
// commands of this machine.
var localRoles = []protocol.Role{
	protocol.RoleOperator, protocol.RoleAgent, protocol.RoleGate, protocol.RoleJudge,
	protocol.RoleTerminal, protocol.RoleApprover, protocol.RoleAuditor,
}

// files are the paths that the ready line and the local default name: those
// that a person or an agent uses. The services' own stay out.
func (c credentials) files() map[protocol.Role]string {
	out := map[protocol.Role]string{}
	for r, v := range c {
		if r != protocol.RoleGate && r != protocol.RoleTerminal {
			out[r] = v.file
		}
	}
	return out
}

func (c credentials) names() map[protocol.Role]string {
	out := map[protocol.Role]string{}
	for r := range c.files() {
		out[r] = c[r].name
	}
	return out
}

// localCreds finds or makes the credentials of a local node in its store.
func localCreds(a *node.Authority, store string) (credentials, error) {
	issued, err := a.List()
	if err != nil {
		return nil, err
	}
	live := map[string]bool{}
	for _, c := range issued {
		if c.Live(time.Now()) {
			live[c.Key] = true
		}
	}
	out := credentials{}
	for _, role := range localRoles {
		c := credential{file: filepath.Join(store, "creds", string(role)+".creds"), name: localName(role)}
		have, err := bus.ReadCreds(c.file)
		switch {
		case err == nil && live[have.Key] && have.Role == role && (role != protocol.RoleGate || len(have.Signers) > 0):
			c.name = have.Name
		case err != nil && !errors.Is(err, bus.ErrCreds) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		default:
			if err := issueTo(a, role, c.name, c.file); err != nil {
				return nil, err
			}
		}
		out[role] = c
	}
	return out, nil
}

// localName is the name in a local credential. An approver's is the person's,
// because it stands in the record.
func localName(role protocol.Role) string {
	if role == protocol.RoleApprover {
		if name := local.UserName(); protocol.ValidToken(name) {
			return name
		}
	}
	return "local"
}

func issueTo(a *node.Authority, role protocol.Role, name, file string) error {
	opts := node.IssueOptions{Again: true}
	if role == protocol.RoleJudge {
		// The local operator's own judges may serve any link; a judge elsewhere
		// gets credentials for its links alone.
		opts.Links = []string{"*"}
	}
	b, err := a.Issue(role, name, opts)
	if err != nil {
		return fmt.Errorf("issuing credentials for %s: %w", role, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("storing credentials for %s: %w", role, err)
	}
	return node.WritePrivate(file, b)
}
