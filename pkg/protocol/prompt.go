package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a prompt.
const (
	// MaxLabel bounds the words for what an approver may choose, in bytes.
	MaxLabel = 64
	// MaxHighlight is how many parts of a call a prompt points at.
	MaxHighlight = 256
)

// Prompt is how an ask is put to a person. Its labels change words only: what an
// answer does, and which is the default, no prompt chooses.
type Prompt struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Guidance    string `json:"guidance"`
	// Highlight are the parts of the call's detail to look at.
	Highlight    []Span `json:"highlight,omitempty"`
	ApproveLabel string `json:"approve_label"`
	EditLabel    string `json:"edit_label"`
	RejectLabel  string `json:"reject_label"`
	// Check is the id of the permission module's check that asks for a person,
	// "LEVEL:MODULE/NAME": the pattern of a grant on SurfaceModule that turns it
	// off for the session. "" where none asks, and where it cannot be turned off.
	Check string `json:"check,omitempty"`
}

// Span is a half-open range of bytes.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

func (p *Prompt) check() error {
	if p == nil {
		return nil
	}
	if len(p.Highlight) > MaxHighlight {
		return fmt.Errorf("%w: prompt.highlight has %d parts, the limit is %d", ErrField, len(p.Highlight), MaxHighlight)
	}
	for _, s := range p.Highlight {
		if s.Start < 0 || s.End < s.Start {
			return fmt.Errorf("%w: prompt.highlight from %d to %d", ErrField, s.Start, s.End)
		}
	}
	return first(bounded("prompt.name", p.Name, MaxName), bounded("prompt.description", p.Description, MaxReason), bounded("prompt.guidance", p.Guidance, MaxReason),
		bounded("prompt.approve_label", p.ApproveLabel, MaxLabel), bounded("prompt.edit_label", p.EditLabel, MaxLabel), bounded("prompt.reject_label", p.RejectLabel, MaxLabel),
		optionalName("prompt.check", p.Check))
}

// Shown is the prompt within its bounds, fit to be shown: module and node below
// choose its words.
func (p Prompt) Shown() Prompt {
	p.Name, p.Check = Safe(p.Name, MaxName, false), Safe(p.Check, MaxName, false)
	p.Description, p.Guidance = Safe(p.Description, MaxReason, true), Safe(p.Guidance, MaxReason, true)
	p.ApproveLabel, p.EditLabel, p.RejectLabel = Safe(p.ApproveLabel, MaxLabel, false), Safe(p.EditLabel, MaxLabel, false), Safe(p.RejectLabel, MaxLabel, false)
	p.Highlight = slices.DeleteFunc(slices.Clone(p.Highlight), func(s Span) bool { return s.Start < 0 || s.End < s.Start })
	p.Highlight = p.Highlight[:min(len(p.Highlight), MaxHighlight)]
	return p
}

// What permission modules say of a call stands among the entries under a surface
// and an origin of its own, so that no rule and no grant of a tool's is taken for
// it.
const (
	SurfaceModule = "module"
	// OriginModule begins the origin: "module:LEVEL:MODULE@VERSION".
	OriginModule = "module:"
)

// ByModule says whether a permission module has spoken, and no rule. Value is
// then the check's id.
func (e Entry) ByModule() bool {
	return e.Surface == SurfaceModule && strings.HasPrefix(e.Origin, OriginModule)
}
