package policy

import (
	"fmt"
	"strings"
	"unicode"
)

// LayerFleet is the name of the operator's layer.
const LayerFleet = "fleet"

// The other kinds of layers, in the order in which they follow the fleet's.
const (
	kindProject      = "project"
	kindAgent        = "agent"
	kindProjectAgent = "project-agent"
)

// MaxLayerName bounds the name of a layer, in bytes.
const MaxLayerName = 512

// Layer says whom a document speaks of: everybody, a project, an agent by its
// name, or an agent in a project. The zero value is no layer. Comparable.
type Layer struct {
	kind, project, agent string
}

// Fleet is the operator's layer, which every call is ruled by.
func Fleet() Layer { return Layer{kind: LayerFleet} }

// ProjectLayer is the layer of one project.
func ProjectLayer(id string) Layer { return Layer{kind: kindProject, project: id} }

// AgentLayer is the layer of the agents that wear a name.
func AgentLayer(name string) Layer { return Layer{kind: kindAgent, agent: name} }

// ProjectAgentLayer is the layer of the agents that wear a name, in a project.
func ProjectAgentLayer(id, name string) Layer {
	return Layer{kind: kindProjectAgent, project: id, agent: name}
}

// ParseLayer reads a layer's name: "fleet", "project/<id>", "agent/<name>" or
// "project-agent/<id>/<name>". The id of a project may hold slashes, the name of
// an agent may not.
func ParseLayer(s string) (Layer, error) {
	kind, rest, _ := strings.Cut(s, "/")
	l := Layer{kind: kind}
	switch kind {
	case kindProject:
		l.project = rest
	case kindAgent:
		l.agent = rest
	case kindProjectAgent:
		at := strings.LastIndexByte(rest, '/')
		l.project, l.agent = rest[:max(at, 0)], rest[at+1:]
	}
	if !l.valid() || l.String() != s {
		return Layer{}, fmt.Errorf("%w: %q; expected fleet, project/<id>, agent/<name> or project-agent/<id>/<name>", ErrLayer, clip(s))
	}
	return l, nil
}

// ParseNewLayer is ParseLayer for a layer that is about to be written. It also
// refuses blanks and wildcards in an agent's name: a layer is for agents of one
// very name, and none would be ruled by it. What is stored already is still
// read, shown and removed by ParseLayer.
func ParseNewLayer(s string) (Layer, error) {
	l, err := ParseLayer(s)
	if err == nil && (strings.ContainsFunc(l.agent, unicode.IsSpace) || strings.ContainsAny(l.agent, "*?")) {
		return Layer{}, fmt.Errorf("%w: %q; expected the name of one agent, without blanks and wildcards", ErrLayer, clip(s))
	}
	return l, err
}

func (l Layer) valid() bool {
	wantsProject, wantsAgent := l.kind == kindProject || l.kind == kindProjectAgent, l.kind == kindAgent || l.kind == kindProjectAgent
	return l.kind == LayerFleet && l.project+l.agent == "" ||
		(wantsProject || wantsAgent) && (l.project != "") == wantsProject && (l.agent != "") == wantsAgent &&
			!strings.Contains(l.agent, "/") && len(l.String()) <= MaxLayerName && !strings.ContainsFunc(l.project+l.agent, unprintable)
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// IsFleet says whether l is the operator's layer.
func (l Layer) IsFleet() bool { return l.kind == LayerFleet }

// String is the layer's name, as ParseLayer reads it.
func (l Layer) String() string {
	switch l.kind {
	case kindProject:
		return kindProject + "/" + l.project
	case kindAgent:
		return kindAgent + "/" + l.agent
	case kindProjectAgent:
		return kindProjectAgent + "/" + l.project + "/" + l.agent
	}
	return l.kind
}

// Key is the layer's key in a store whose keys take letters, digits, '-', '_'
// and '.' as a separator.
func (l Layer) Key() string {
	switch l.kind {
	case kindProject:
		return kindProject + "." + escape(l.project)
	case kindAgent:
		return kindAgent + "." + escape(l.agent)
	case kindProjectAgent:
		return kindProjectAgent + "." + escape(l.project) + "." + escape(l.agent)
	}
	return l.kind
}

// LayerOfKey reads what Key wrote.
func LayerOfKey(key string) (Layer, error) {
	kind, rest, _ := strings.Cut(key, ".")
	first, second, _ := strings.Cut(rest, ".")
	l := Layer{kind: kind}
	switch kind {
	case kindProject:
		l.project = unescape(first)
	case kindAgent:
		l.agent = unescape(first)
	case kindProjectAgent:
		l.project, l.agent = unescape(first), unescape(second)
	}
	// Two keys that read as one layer would hide one another.
	if !l.valid() || l.Key() != key {
		return Layer{}, fmt.Errorf("%w: key %q", ErrLayer, clip(key))
	}
	return l, nil
}

// escape writes every byte that is no letter, digit or '-' as '=' and two hex
// digits.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		var c byte
		if s[i] == '=' && i+2 < len(s) {
			if _, err := fmt.Sscanf(s[i+1:i+3], "%02x", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
