package gate

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/pkg/protocol"
)

// The oracle is a second account of what must happen, slow and obvious, over a
// small world of calls whose every fact is known when they are made. It shares
// no code with the rule engine.

// law is a policy.
type law struct {
	base  string // what is not spoken of
	rules map[string][]article
	yolo  bool
	chain []string
	kind  string
	// delegates: there is a modelDelegation at all.
	delegates         bool
	allowed, excluded []string
	linkTimeout       string
	onFailure         string // of permission modules
}

// article is one rule; action "human" is an ask that only a person answers.
type article struct{ pattern, action string }

// fact is one value that rules of one surface speak about.
type fact struct{ surface, value string }

// deed is a call with all that it touches.
type deed struct {
	tool, input string
	facts       []fact
	secret      bool
}

func policyOf(l law) string {
	var rules []string
	add := func(surface, body string) { rules = append(rules, fmt.Sprintf("%q: %s", surface, body)) }
	add("*", fmt.Sprintf("%q", l.base))
	add("path", `"allow"`)
	for _, surface := range surfaces {
		if arts, ok := l.rules[surface]; ok {
			add(surface, "{"+strings.Join(each(arts, articleText), ", ")+"}")
		}
	}
	parts := []string{
		`"permission": {` + strings.Join(rules, ", ") + `}`,
		fmt.Sprintf(`"yoloMode": %v, "authorizerChain": [%s]`, l.yolo, quoted(l.chain)),
		fmt.Sprintf(`"terminal": {"kind": %q, "maxWait": "1h"}`, l.kind),
		`"limits": {"asksPerSecond": 100000, "pending": 10000}`,
	}
	if l.delegates {
		parts = append(parts, fmt.Sprintf(`"modelDelegation": {"allowedSurfaces": [%s], "excludedSurfaces": [%s]}`, quoted(l.allowed), quoted(l.excluded)))
	}
	if l.linkTimeout != "" {
		parts = append(parts, fmt.Sprintf(`"linkTimeout": %q`, l.linkTimeout))
	}
	if l.onFailure != "" {
		parts = append(parts, fmt.Sprintf(`"modules": {"onFailure": %q}`, l.onFailure))
	}
	return "{" + strings.Join(parts, ",\n") + "}"
}

func articleText(a article) string {
	if a.action == "human" {
		return fmt.Sprintf(`%q: {"action": "ask", "humanOnly": true}`, a.pattern)
	}
	return fmt.Sprintf("%q: %q", a.pattern, a.action)
}

func each[T, U any](of []T, f func(T) U) []U {
	out := make([]U, 0, len(of))
	for _, v := range of {
		out = append(out, f(v))
	}
	return out
}

// says is the last rule that matches.
func (l law) says(f fact) string {
	action := l.base
	for _, a := range l.rules[f.surface] {
		if matches(a.pattern, f.value) {
			action = a.action
		}
	}
	return action
}

func matches(pattern, value string) bool {
	if head, ok := strings.CutSuffix(pattern, " *"); ok {
		return value == head || strings.HasPrefix(value, head+" ")
	}
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(value, head)
	}
	return pattern == value
}

// verdictOf is what recorded authority makes of a deed: the outcome where it
// settles it, "" where something stays open; then what. clear are the surfaces
// that a grant of the asker covers whole.
func (l law) verdictOf(d deed, clear ...string) (outcome protocol.Outcome, open []fact, human bool) {
	yolo, granted := false, false
	for _, f := range d.facts {
		switch l.says(f) {
		case "deny":
			return protocol.DeniedByRule, nil, false
		case "human":
			open, human = append(open, f), true
		case "ask":
			switch {
			case l.yolo:
				yolo = true
			case slices.Contains(clear, f.surface):
				granted = true
			default:
				open = append(open, f)
			}
		}
	}
	switch {
	case len(open) > 0:
		return "", open, human
	case yolo:
		return protocol.AllowedByYolo, nil, false
	case granted:
		return protocol.AllowedByGrant, nil, false
	default:
		return protocol.AllowedByRule, nil, false
	}
}

// denies says whether a rule forbids the deed.
func (l law) denies(d deed) bool {
	outcome, _, _ := l.verdictOf(d)
	return outcome == protocol.DeniedByRule
}

// linkMayAllow is the envelope.
func (l law) linkMayAllow(d deed) bool {
	outcome, open, human := l.verdictOf(d)
	if outcome != "" || human || !l.delegates || d.secret {
		return false
	}
	for _, f := range open {
		if slices.Contains(l.excluded, f.surface) || !slices.Contains(l.allowed, f.surface) {
			return false
		}
	}
	return true
}

// walk is what the chain does: its trail as said writes it, the links that are
// asked, and the outcome, "" where all of them deferred.
func (l law) walk(d deed, links map[string]string) (outcome protocol.Outcome, trail string, asked []string) {
	asked = []string{}
	var words []string
	for _, name := range l.chain {
		word := "defer/unregistered"
		if slices.Contains(worldLinks, name) {
			asked = append(asked, name)
			word = manners[links[name]].trail
		}
		if word == "allow" && !l.linkMayAllow(d) {
			word = "defer*"
		}
		words = append(words, name+"="+word)
		switch word {
		case "allow":
			outcome = protocol.AllowedByLink
		case "deny":
			outcome = protocol.DeniedByLink
		}
		if outcome != "" {
			break
		}
	}
	return outcome, strings.Join(words, " "), asked
}

// surfaces are those that scenes speak of.
var surfaces = []string{"bash", "read", "write", "mcp", "external_directory"}

var patterns = map[string][]string{
	"bash":               {"*", "alpha *", "beta *", "gamma *", "delta *", "alpha one", "beta two", "gamma one"},
	"read":               {"*", "/repo/*", "/srv/*", "/repo/a.txt"},
	"write":              {"*", "/repo/*", "/srv/*", "/repo/b.txt"},
	"mcp":                {"*", "exa_*", "exa_search"},
	"external_directory": {"*", "/srv/*", "/srv/one/*"},
}

var deedsOf = []deed{
	{"read", `{"file_path":"/repo/a.txt"}`, []fact{{"read", "/repo/a.txt"}}, false},
	{"read", `{"file_path":"/srv/one/a.txt"}`, []fact{{"read", "/srv/one/a.txt"}, {"external_directory", "/srv/one/a.txt"}}, false},
	{"read", `{"file_path":"/repo/.env"}`, []fact{{"read", "/repo/.env"}}, true},
	{"write", `{"file_path":"/repo/b.txt","content":"x"}`, []fact{{"write", "/repo/b.txt"}}, false},
	{"write", `{"file_path":"/srv/two/b.txt","content":"x"}`, []fact{{"write", "/srv/two/b.txt"}, {"external_directory", "/srv/two/b.txt"}}, false},
	{"mcp__exa__search", `{"q":"x"}`, []fact{{"mcp", "exa_search"}}, false},
	{"mcp__foo__look", `{"q":"x"}`, []fact{{"mcp", "foo_look"}}, false},
	{"teleport", `{}`, []fact{{"teleport", "*"}}, false},
}

// command is a deed of the shell.
func command(units ...string) deed {
	d := deed{tool: "bash", input: fmt.Sprintf(`{"command":%q}`, strings.Join(units, " && "))}
	for _, u := range units {
		d.facts = append(d.facts, fact{"bash", u})
		d.secret = d.secret || strings.Contains(u, ".env")
	}
	return d
}

func (d deed) text() string {
	return strings.Join(each(d.facts, func(f fact) string { return f.value }), " && ")
}

func (d deed) by(a *agent) protocol.Ask { return a.call(d.tool, d.input) }

var genUnit = rapid.Custom(func(t *rapid.T) string {
	return rapid.SampledFrom([]string{"alpha", "beta", "gamma", "delta"}).Draw(t, "command") + " " + rapid.SampledFrom([]string{"one", "two", ".env"}).Draw(t, "argument")
})

var genCommand = rapid.Custom(func(t *rapid.T) deed {
	return command(rapid.SliceOfN(genUnit, 1, 3).Draw(t, "units")...)
})

var genDeed = rapid.Custom(func(t *rapid.T) deed {
	if rapid.Bool().Draw(t, "shell") {
		return genCommand.Draw(t, "shell call")
	}
	return rapid.SampledFrom(deedsOf).Draw(t, "call")
})

var genAction = rapid.SampledFrom([]string{"ask", "ask", "ask", "allow", "deny", "human"})

// genLaw draws a policy that mostly asks.
var genLaw = rapid.Custom(func(t *rapid.T) law {
	l := law{base: rapid.SampledFrom([]string{"ask", "ask", "allow", "deny"}).Draw(t, "base"), rules: map[string][]article{}}
	for _, s := range surfaces {
		l.rules[s] = []article{{"*", rapid.SampledFrom([]string{"ask", "ask", "allow"}).Draw(t, s)}}
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			a := article{rapid.SampledFrom(patterns[s][1:]).Draw(t, "pattern"), genAction.Draw(t, "action")}
			if !slices.ContainsFunc(l.rules[s], func(b article) bool { return b.pattern == a.pattern }) {
				l.rules[s] = append(l.rules[s], a)
			}
		}
	}
	l.yolo = rapid.IntRange(0, 9).Draw(t, "yolo") == 9
	l.chain = rapid.Permutation(append([]string{"gone0", "gone1"}, worldLinks...)).Draw(t, "chain")[:rapid.IntRange(0, 5).Draw(t, "links")]
	l.kind = rapid.SampledFrom([]string{"human", "deny"}).Draw(t, "terminal")
	l.delegates = rapid.IntRange(0, 5).Draw(t, "delegates") > 0
	all := append([]string{"teleport"}, surfaces...)
	l.allowed = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), rapid.ID[string]).Draw(t, "allowed")
	l.excluded = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 2, rapid.ID[string]).Draw(t, "excluded")
	return l
})

// genLinks draws what each link does.
func genLinks(words ...string) *rapid.Generator[map[string]string] {
	return rapid.Custom(func(t *rapid.T) map[string]string {
		out := map[string]string{}
		for _, l := range worldLinks {
			out[l] = rapid.SampledFrom(words).Draw(t, l)
		}
		return out
	})
}

// quickManners are all but those that take a link's whole time.
var quickManners = func() (out []string) {
	for word := range manners {
		if word != "silent" {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return out
}()

// seldom is true in one case of sixteen: for what takes its time.
func seldom(t *rapid.T, label string) bool {
	return !slices.Contains(rapid.SliceOfN(rapid.Bool(), 4, 4).Draw(t, label), false)
}
