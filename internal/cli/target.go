package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/pkg/protocol"
)

// target says which server a command talks to, and as whom: by flags, then by
// ASSENT_NATS, ASSENT_CREDS, ASSENT_NODE and ASSENT_STORE, then by the local
// default that `assent up` wrote.
type target struct {
	nats, creds, node, store string
}

// flags adds the four flags to a command.
func (t *target) flags(f *pflag.FlagSet) {
	f.StringVar(&t.nats, "nats", "", "address of the NATS server (default: ASSENT_NATS, then the local one)")
	f.StringVar(&t.creds, "creds", "", "credentials file (default: ASSENT_CREDS, then the local one for the role)")
	f.StringVar(&t.node, "node", "", "name of the node (default: ASSENT_NODE, then the local one, then main)")
	f.StringVar(&t.store, "store", "", "store folder of a local node (default: ASSENT_STORE, then the local default)")
}

// errNoCreds: a server is named, and nothing by which to connect there.
var errNoCreds = errors.New("no credentials")

// place is a resolved target.
type place struct {
	NATS  string
	Node  string
	Creds string
	Store string
}

// resolve finds the place for role. With both address and credentials given,
// nothing local is read.
func (t target) resolve(env *Env, role protocol.Role) (place, error) {
	p := place{
		NATS:  firstOf(t.nats, env.Getenv("ASSENT_NATS")),
		Node:  firstOf(t.node, env.Getenv("ASSENT_NODE")),
		Creds: firstOf(t.creds, env.Getenv("ASSENT_CREDS")),
		Store: firstOf(t.store, env.Getenv("ASSENT_STORE")),
	}
	if p.NATS != "" && p.Creds != "" {
		p.Node = firstOf(p.Node, defaultNode)
		return p, protocol.CheckToken("node", p.Node)
	}
	d, err := t.local(env, p.Store, p.Node)
	switch {
	case errors.Is(err, local.ErrNone) && p.NATS != "":
		return place{}, fmt.Errorf("%w for role %s: name a file with --creds or ASSENT_CREDS (`assent creds issue --role %s --name NAME --out FILE` makes one)", errNoCreds, role, role)
	case err != nil:
		return place{}, err
	}
	// Never send the local node's credentials to another address.
	if p.NATS != "" && p.NATS != d.NATS && p.Creds == "" {
		return place{}, fmt.Errorf("--nats %s is not the local server (%s), so its credentials are not used there: name a file with --creds", p.NATS, d.NATS)
	}
	p.NATS, p.Node, p.Creds, p.Store = firstOf(p.NATS, d.NATS), firstOf(p.Node, d.Node), firstOf(p.Creds, d.Creds[role]), firstOf(p.Store, d.Store)
	if p.Creds == "" {
		return place{}, fmt.Errorf("the local default holds no credentials for role %s: start `assent up` again", role)
	}
	return p, protocol.CheckToken("node", p.Node)
}

// local reads the default of a named store, of this user, or of the usual store
// of a node that is named and is not this user's default.
func (t target) local(env *Env, store, node string) (local.Default, error) {
	if store != "" {
		return local.Load(filepath.Join(store, local.FileName))
	}
	path, err := local.Path(env.Getenv)
	if err != nil {
		return local.Default{}, err
	}
	d, err := local.Load(path)
	if node == "" || err == nil && d.Node == node {
		return d, err
	}
	if dir, derr := storeDir(env, "", node); derr == nil {
		if other, oerr := local.Load(filepath.Join(dir, local.FileName)); oerr == nil {
			return other, nil
		}
	}
	if err == nil {
		return local.Default{}, fmt.Errorf("the local default is node %s, not %s: name the store with --store, or the server with --nats and --creds", d.Node, node)
	}
	return d, err
}

const defaultNode = "main"

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
