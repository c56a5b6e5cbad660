package policy

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/pkg/protocol"
)

// decoder fills a document from a tree and notes everything it does not like.
type decoder struct {
	*problems
	layer Layer
	s     *settings
	// surfaces are filled in the order of the document.
	surfaces []surfaceRules
	// everywhere are the rules on every surface, idle the places of those that
	// grant nothing there.
	everywhere []rule
	idle       []int
}

// field is one key of an object and what reads its value.
type field struct {
	key  string
	read func(v hujson.Value)
}

// object reads an object whose keys are all known. Keys are unique, and so are
// their spellings: an escaped spelling of a key is the same key.
func (d *decoder) object(v hujson.Value, what string, fields ...field) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.addf(v.StartOffset, "%s is %s; expected an object", what, kindOf(v))
		return
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	d.members(obj, func(key string, m hujson.ObjectMember) {
		for _, f := range fields {
			if f.key == key {
				f.read(m.Value)
				return
			}
		}
		d.addf(m.Name.StartOffset, "unknown key %q in %s%s", key, what, didYouMean(key, known))
	})
}

// members calls read for each member of obj, in the order of the document. A
// key that stands twice is an error and is read once.
func (d *decoder) members(obj *hujson.Object, read func(key string, m hujson.ObjectMember)) {
	seen := make(map[string]int, len(obj.Members))
	for _, m := range obj.Members {
		key, err := text(m.Name)
		if err != nil {
			d.addf(m.Name.StartOffset, "this key is no valid text: %v", err)
			continue
		}
		if at, twice := seen[key]; twice {
			line, column := d.position(at)
			d.addf(m.Name.StartOffset, "duplicate key %q; it stands already at %d:%d", key, line, column)
			continue
		}
		seen[key] = m.Name.StartOffset
		read(key, m)
	}
}

// document reads the top of a layer.
func (d *decoder) document(v hujson.Value) {
	d.object(v, "the policy",
		field{"permission", d.permission},
		field{"secretPaths", d.secretPaths},
		field{"yoloMode", d.yolo},
		field{schemaKey, d.schemaName},
		d.fleetOnly("authorizerChain", d.chain),
		d.fleetOnly("linkTimeout", func(v hujson.Value) { d.duration(v, "linkTimeout", MaxLinkTimeout, &d.s.link) }),
		d.fleetOnly("modelDelegation", d.delegation),
		d.fleetOnly("terminal", d.terminal),
		d.fleetOnly("limits", d.limits),
		d.fleetOnly("debugLog", func(v hujson.Value) { d.boolean(v, "debugLog", &d.s.debug) }),
		d.fleetOnly("pathArguments", d.pathArguments),
		d.fleetOnly("shellTools", d.shellTools),
		d.fleetOnly("trustedReadPaths", d.trustedReadPaths),
		d.fleetOnly("trustedProjects", d.trustedProjects),
		d.fleetOnly("trustedAgentNames", d.trustedNames),
		d.fleetOnly("selfProtection", d.selfProtection),
		d.fleetOnly("modules", d.modules),
	)
}

// fleetOnly is a field that only the operator's own layer may hold: what others
// write must not name links, widen the envelope or trust itself.
func (d *decoder) fleetOnly(key string, read func(v hujson.Value)) field {
	if d.layer.IsFleet() {
		return field{key, read}
	}
	return field{key, func(v hujson.Value) {
		d.addf(v.StartOffset, "%s belongs to the fleet layer alone; this is layer %s, which holds permission, secretPaths and \"yoloMode\": false", key, d.layer)
	}}
}

// yolo reads yoloMode. Every layer may switch it off, only the fleet layer on.
func (d *decoder) yolo(v hujson.Value) {
	var on bool
	d.boolean(v, "yoloMode", &on)
	if on && !d.layer.IsFleet() {
		d.addf(v.StartOffset, "yoloMode can be switched on in the fleet layer alone; this is layer %s", d.layer)
		return
	}
	d.s.yolo = &on
}

// schemaKey names the document's schema to editors. It means nothing to the
// reader and is no part of the digest.
const schemaKey = "$schema"

func (d *decoder) schemaName(v hujson.Value) {
	if _, err := text(v); err != nil {
		d.addf(v.StartOffset, "%s is %s; expected a text, as \"../docs/policy.schema.json\"", schemaKey, kindOf(v))
	}
}

func (d *decoder) chain(v hujson.Value) {
	for _, e := range d.texts(v, "authorizerChain", "link names") {
		if !protocol.ValidToken(e.text) {
			d.addf(e.at, "link name %q; expected 1 to %d letters, digits, '_' or '-'", clip(e.text), protocol.MaxToken)
			continue
		}
		d.s.chain = append(d.s.chain, e.text)
	}
	if len(d.s.chain) > maxChain {
		d.addf(v.StartOffset, "authorizerChain names %d links; expected at most %d", len(d.s.chain), maxChain)
	}
}

func (d *decoder) delegation(v hujson.Value) {
	out := Delegation{}
	d.object(v, "modelDelegation",
		field{"allowedSurfaces", func(v hujson.Value) { out.AllowedSurfaces = d.patterns(v, "allowedSurfaces") }},
		field{"excludedSurfaces", func(v hujson.Value) { out.ExcludedSurfaces = d.patterns(v, "excludedSurfaces") }},
	)
	d.s.delegation = &out
	for _, p := range out.AllowedSurfaces {
		d.s.allowed = append(d.s.allowed, compileWildcard(p))
	}
	for _, p := range out.ExcludedSurfaces {
		d.s.excluded = append(d.s.excluded, compileWildcard(p))
	}
}

func (d *decoder) terminal(v hujson.Value) {
	kinds := []string{string(TerminalAuto), string(TerminalHuman), string(TerminalParent), string(TerminalDeny)}
	d.object(v, "terminal",
		field{"kind", func(v hujson.Value) {
			if s, ok := d.oneOf(v, "terminal kind", kinds); ok {
				d.s.term.Kind = TerminalKind(s)
			}
		}},
		field{"maxWait", func(v hujson.Value) { d.duration(v, "maxWait", MaxMaxWait, &d.s.term.MaxWait) }},
	)
}

func (d *decoder) limits(v hujson.Value) {
	d.object(v, "limits",
		field{"asksPerSecond", func(v hujson.Value) { d.count(v, "asksPerSecond", &d.s.limits.AsksPerSecond) }},
		field{"pending", func(v hujson.Value) { d.count(v, "pending", &d.s.limits.Pending) }},
	)
}

func (d *decoder) secretPaths(v hujson.Value) {
	for _, p := range d.patterns(v, "secretPaths") {
		d.s.secrets = append(d.s.secrets, p)
	}
}

// placed is a text and where it stands.
type placed struct {
	text string
	at   int
}

// texts reads a list of unique, non-empty texts.
func (d *decoder) texts(v hujson.Value, what, of string) []placed {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		d.addf(v.StartOffset, "%s is %s; expected a list of %s", what, kindOf(v), of)
		return nil
	}
	var out []placed
	seen := map[string]bool{}
	for _, e := range arr.Elements {
		s, err := text(e)
		switch {
		case err != nil:
			d.addf(e.StartOffset, "%s holds %s; expected %s in double quotes", what, kindOf(e), of)
		case s == "":
			d.addf(e.StartOffset, "%s holds an empty text; expected %s", what, of)
		case seen[s]:
			d.addf(e.StartOffset, "%s names %q twice", what, clip(s))
		default:
			seen[s] = true
			out = append(out, placed{s, e.StartOffset})
		}
	}
	return out
}

// patterns reads a list of patterns.
func (d *decoder) patterns(v hujson.Value, what string) []string {
	var out []string
	for _, e := range d.texts(v, what, "patterns") {
		if d.fits(e.at, e.text) {
			out = append(out, e.text)
		}
	}
	return out
}

// fits says whether a pattern is short enough to be matched.
func (d *decoder) fits(at int, pattern string) bool {
	if len(pattern) > MaxPattern {
		d.addf(at, "a pattern of %d bytes; expected at most %d", len(pattern), MaxPattern)
		return false
	}
	return true
}

func (d *decoder) boolean(v hujson.Value, what string, to *bool) {
	switch v.Value.Kind() {
	case 't':
		*to = true
	case 'f':
		*to = false
	default:
		d.addf(v.StartOffset, "%s is %s; expected true or false", what, kindOf(v))
	}
}

func (d *decoder) count(v hujson.Value, what string, to *int) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '0' {
		d.addf(v.StartOffset, "%s is %s; expected a number from 1 to %d", what, kindOf(v), maxLimit)
		return
	}
	f, err := strconv.ParseFloat(string(lit), 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > maxLimit {
		d.addf(v.StartOffset, "%s is %s; expected a whole number from 1 to %d", what, clip(string(lit)), maxLimit)
		return
	}
	*to = int(f)
}

func (d *decoder) duration(v hujson.Value, what string, most time.Duration, to *time.Duration) {
	s, err := text(v)
	if err != nil {
		d.addf(v.StartOffset, "%s is %s; expected a duration as \"8s\" or \"2h30m\"", what, kindOf(v))
		return
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 1000 {
			d.addf(v.StartOffset, "%s is %q; the longest unit is the hour: use \"%dh\"", what, s, 24*n)
			return
		}
	}
	t, err := time.ParseDuration(s)
	if err != nil || strings.TrimSpace(s) != s {
		d.addf(v.StartOffset, "%s is %q; expected a duration as \"8s\" or \"2h30m\"", what, clip(s))
		return
	}
	if t <= 0 || t > most {
		d.addf(v.StartOffset, "%s is %q; expected more than 0 and at most %s", what, clip(s), most)
		return
	}
	*to = t
}

func (d *decoder) oneOf(v hujson.Value, what string, words []string) (string, bool) {
	s, err := text(v)
	if err != nil {
		d.addf(v.StartOffset, "%s is %s; expected one of %s", what, kindOf(v), strings.Join(words, ", "))
		return "", false
	}
	for _, w := range words {
		if s == w {
			return s, true
		}
	}
	d.addf(v.StartOffset, "unknown %s %q%s", what, clip(s), didYouMean(s, words))
	return "", false
}

// clip shortens a text for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
