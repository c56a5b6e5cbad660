package protocol

import (
	"fmt"
	"time"
)

// Scope is how far a grant reaches.
type Scope string

// The scopes.
const (
	ScopeSession Scope = "session"
	ScopeTree    Scope = "tree"
	ScopeAgent   Scope = "agent"
	ScopeProject Scope = "project"
)

// UnmarshalText reads a scope; unknown text is an error.
func (s *Scope) UnmarshalText(b []byte) error {
	switch v := Scope(b); v {
	case ScopeSession, ScopeTree, ScopeAgent, ScopeProject:
		*s = v
		return nil
	default:
		return fmt.Errorf("%w: scope %q, want session, tree, agent or project", ErrEnum, clip(string(b), 40))
	}
}

// Grant is a remembered approval: it clears what its patterns match of the calls
// within its scope that the rules leave open. The approver sends scope, surface,
// patterns, expiry and uses; the gate adds the rest.
type Grant struct {
	Scope    Scope    `json:"scope"`
	Surface  string   `json:"surface"`
	Patterns []string `json:"patterns"`
	// Expires is RFC 3339, or "" for no end.
	Expires string `json:"expires"`
	// Uses is how often it may clear a call; 0 = no limit.
	Uses  int    `json:"uses"`
	Node  string `json:"node,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Via is the child node whose agent it is: one of this node's agents that has
	// the same name has none of it.
	Via string `json:"via,omitempty"`
	// Hops is the whole way that its asks come: two agents below one child may
	// have the same name.
	Hops      []string `json:"hops,omitempty"`
	Session   string   `json:"session,omitempty"`
	Root      string   `json:"root,omitempty"`
	Project   string   `json:"project,omitempty"`
	GrantedBy string   `json:"granted_by,omitempty"`
	Ask       string   `json:"ask,omitempty"`
}

// Bounds of a grant.
const (
	MaxPatterns = 64
	MaxPattern  = 4096
)

func grantCheck(g *Grant) error {
	if g == nil {
		return nil
	}
	if g.Scope == "" || len(g.Patterns) == 0 || len(g.Patterns) > MaxPatterns || g.Uses < 0 {
		return fmt.Errorf("%w: a grant names a scope and 1 to %d patterns; uses is not negative", ErrField, MaxPatterns)
	}
	for _, p := range g.Patterns {
		if p == "" || len(p) > MaxPattern {
			return fmt.Errorf("%w: a grant's pattern has 1 to %d bytes", ErrField, MaxPattern)
		}
	}
	if g.Expires != "" {
		if _, err := time.Parse(time.RFC3339, g.Expires); err != nil {
			return fmt.Errorf("%w: grant.expires: want RFC 3339", ErrField)
		}
	}
	return first(new(Scope).UnmarshalText([]byte(g.Scope)), name("grant.surface", g.Surface))
}

// unbound refuses a grant that already says to whom it is bound: that is the
// gate's to add, from the ask, and never the word of whoever answers it.
func (g *Grant) unbound() error {
	if g == nil || g.Node+g.Agent+g.Via+g.Session+g.Root+g.Project+g.GrantedBy+g.Ask == "" && len(g.Hops) == 0 {
		return nil
	}
	return fmt.Errorf("%w: a grant in an answer names no node, agent, via, hops, session, root, project, granted_by or ask", ErrField)
}

// bound refuses a grant that does not say whose it is, and who gave it on which
// ask.
func (g *Grant) bound() error {
	if way := (&Ask{Hops: g.Hops}); way.Via() != g.Via {
		return fmt.Errorf("%w: grant.via %q, its asks come through %q", ErrMismatch, clip(g.Via, MaxToken), way.Via())
	}
	return first(hops(g.Hops), grantCheck(g), CheckToken("grant.node", g.Node), CheckToken("grant.agent", g.Agent), optionalToken("grant.via", g.Via),
		CheckToken("grant.granted_by", g.GrantedBy), CheckAskID(g.Ask))
}

// Expired says whether the grant has ended at now; also where its end cannot be
// read.
func (g *Grant) Expired(now time.Time) bool {
	if g.Expires == "" {
		return false
	}
	end, err := time.Parse(time.RFC3339, g.Expires)
	return err != nil || !now.Before(end)
}

// StoredGrant is a grant as it stands in the bucket ASSENT_GRANTS. Its uses are
// those that are left.
type StoredGrant struct {
	V Version `json:"v"`
	Grant
}

func (s *StoredGrant) version() Version { return s.V }
func (s *StoredGrant) carries()         {}
func (s *StoredGrant) check() error     { return s.bound() }
