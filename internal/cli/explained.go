package cli

import "github.com/assent-dev/assent/internal/policy"

// explained is what `policy explain --json` prints.
type explained struct {
	Decision string     `json:"decision"`
	Decisive saidOut    `json:"decisive"`
	Units    []evalUnit `json:"units"`
	Said     []saidOut  `json:"said"`
	Ways     []wayOut   `json:"ways"`
	Suggest  []string   `json:"suggest"`
}

// saidOut is what one surface said about one value; unit counts from 0.
type saidOut struct {
	Unit     int       `json:"unit"`
	Surface  string    `json:"surface"`
	Value    string    `json:"value"`
	Decision string    `json:"decision"`
	Pattern  string    `json:"pattern"`
	Origin   string    `json:"origin"`
	Place    *placeOut `json:"place,omitempty"`
	// Floor: no rule, grant or yolo lifts it.
	Floor  bool      `json:"floor"`
	Why    string    `json:"why"`
	Reason string    `json:"reason"`
	Lost   []ruleOut `json:"lost"`
}

type placeOut struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type ruleOut struct {
	Surface string    `json:"surface"`
	Pattern string    `json:"pattern"`
	Action  string    `json:"action"`
	Origin  string    `json:"origin"`
	Place   *placeOut `json:"place,omitempty"`
}

// wayOut is what would have to change; with blocks there is no way.
type wayOut struct {
	To     string     `json:"to"`
	Edits  []editOut  `json:"edits"`
	Blocks []blockOut `json:"blocks"`
}

type editOut struct {
	Text    string    `json:"text"`
	Layer   string    `json:"layer"`
	Surface string    `json:"surface"`
	Pattern string    `json:"pattern"`
	Action  string    `json:"action"`
	Place   *placeOut `json:"place,omitempty"`
}

type blockOut struct {
	Pattern string `json:"pattern"`
	Why     string `json:"why"`
	// LiftedBy is what would lift it, "" for nothing.
	LiftedBy string `json:"lifted_by"`
}

func explainedOf(x policy.Explanation) explained {
	out := explained{Decision: x.Action.String(), Decisive: saidOf(policy.Said{Entry: x.Decisive}), Units: []evalUnit{}, Said: []saidOut{}, Ways: []wayOut{},
		Suggest: append([]string{}, x.Suggest...)}
	for _, u := range x.Units {
		out.Units = append(out.Units, evalUnit{u.Text, u.Action.String(), u.Pattern, u.Note})
	}
	for _, s := range x.Said {
		one := saidOf(s)
		if s.Entry == x.Decisive {
			out.Decisive = one
		}
		out.Said = append(out.Said, one)
	}
	for _, w := range x.Ways {
		out.Ways = append(out.Ways, wayOf(w))
	}
	return out
}

func saidOf(s policy.Said) saidOut {
	out := saidOut{Unit: s.Unit, Surface: s.Surface, Value: s.Value, Decision: s.Action.String(), Pattern: s.MatchedPattern, Origin: s.Origin,
		Place: placeOutOf(s.Place), Floor: s.Floor, Why: s.Why(), Reason: s.Reason, Lost: []ruleOut{}}
	for _, r := range s.Lost {
		out.Lost = append(out.Lost, ruleOut{r.Surface, r.Pattern, r.Action.String(), r.Origin, placeOutOf(r.Place)})
	}
	return out
}

func wayOf(w policy.Way) wayOut {
	out := wayOut{To: w.To.String(), Edits: []editOut{}, Blocks: []blockOut{}}
	for _, e := range w.Edits {
		out.Edits = append(out.Edits, editOut{e.String(), e.Layer, e.Surface, e.Pattern, e.Action.String(), placeOutOf(e.At)})
	}
	for _, b := range w.Blocks {
		out.Blocks = append(out.Blocks, blockOut{b.MatchedPattern, b.Reason, b.LiftedBy()})
	}
	return out
}

func placeOutOf(p policy.Position) *placeOut {
	if p == (policy.Position{}) {
		return nil
	}
	return &placeOut{p.File, p.Line, p.Column}
}
