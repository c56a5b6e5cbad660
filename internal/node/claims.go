package node

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/assent-dev/assent/pkg/protocol"
)

// borderThreshold is how long the server keeps the way back for a streamed
// reply. It must outlast the longest pull (30 s).
const borderThreshold = 2 * time.Minute

// accountClaims builds the whole of one account from the permission table, the
// keys and the ledger: the same input gives the same account, so a store made
// by an older version gets today's table when it is opened.
func accountClaims(acc Account, node string, k *keys, led *ledger) (*jwt.AccountClaims, error) {
	c := jwt.NewAccountClaims(k.Accounts[acc])
	c.Name = string(acc)
	c.Limits.LeafNodeConn = 0
	if acc == Core {
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{
			MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit,
			Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
		}
	}
	for _, r := range Rights() {
		if r.Account != acc {
			continue
		}
		pub, err := k.scopePublic(r.Role)
		if err != nil {
			return nil, err
		}
		c.SigningKeys.AddScopedSigner(r.scope(node, pub))
	}
	addBorders(c, acc, node, k.Accounts[Core])
	for _, cred := range led.Issued {
		if !cred.Revoked.IsZero() && !cred.expired(led.now()) && cred.account() == acc {
			c.RevokeAt(cred.Key, cred.Revoked)
		}
	}
	var vr jwt.ValidationResults
	c.Validate(&vr)
	if vr.IsBlocking(true) {
		return nil, fmt.Errorf("account %s does not hold together: %v", acc, vr.Errors())
	}
	return c, nil
}

func addBorders(c *jwt.AccountClaims, acc Account, node, core string) {
	for _, b := range Borders() {
		subj := jwt.Subject(fill(b.Subject, node))
		kind := jwt.Service
		if b.Notice {
			kind = jwt.Stream
		}
		switch acc {
		case Core:
			c.Exports.Add(b.export(subj, kind))
		case b.Account:
			// Share: the server states account, key and name of the asker in a
			// header that the asker cannot forge.
			im := &jwt.Import{Name: b.For, Subject: subj, Account: core, Type: kind, Share: !b.Notice}
			if b.Local != "" {
				im.LocalSubject = jwt.RenamingSubject(fill(b.Local, node))
			}
			c.Imports.Add(im)
		}
	}
}

func (b Border) export(subj jwt.Subject, kind jwt.ExportType) *jwt.Export {
	e := &jwt.Export{Name: b.For, Subject: subj, Type: kind}
	if !b.Notice {
		e.ResponseType = jwt.ResponseTypeSingleton
	}
	if b.Streamed {
		e.ResponseType = jwt.ResponseTypeStream
		e.ResponseThreshold = borderThreshold
	}
	return e
}

// scope is the row as a signing key's template: whatever that key signs can do
// this and no more.
func (r Right) scope(node, key string) *jwt.UserScope {
	s := jwt.NewUserScope()
	s.Key = key
	s.Role = string(r.Role)
	s.Description = r.For
	s.Template.Permissions = r.permissions(node)
	s.Template.AllowedConnectionTypes = r.Connections
	if r.Account != Core && r.Account != System {
		s.Template.Payload = cmp.Or(r.Payload, BorderPayload)
		s.Template.Subs = borderSubscriptions
	}
	return s
}

func (r Right) permissions(node string) jwt.Permissions {
	p := jwt.Permissions{
		Pub: permission(r.Publish, node),
		Sub: permission(r.Subscribe, node),
	}
	if r.Responses != nil {
		p.Resp = &jwt.ResponsePermission{MaxMsgs: r.Responses.Max, Expires: r.Responses.Within}
	}
	return p
}

// permission turns a list into allow, or into a deny of everything: to the
// server an empty allow list means that everything is allowed.
func permission(subjects []string, node string) jwt.Permission {
	if len(subjects) == 0 {
		return jwt.Permission{Deny: jwt.StringList{">"}}
	}
	out := jwt.Permission{}
	for _, s := range subjects {
		out.Allow.Add(fill(s, node))
	}
	return out
}

func fill(subject, node string) string { return strings.ReplaceAll(subject, "{node}", node) }

// accountOf is the account whose key signs for role.
func accountOf(role protocol.Role) (Account, error) {
	r, ok := RightOf(role)
	if !ok {
		return "", fmt.Errorf("%w: the permission table has no role %q", ErrRequest, role)
	}
	return r.Account, nil
}
