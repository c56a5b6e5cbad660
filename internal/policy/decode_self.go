package policy

import (
	"strings"

	"github.com/tailscale/hujson"
)

// selfProtection reads {"lift": ["codex-settings"], "paths": ["/srv/assent"]}.
// An allow on any surface lifts nothing: only who names a group means it.
func (d *decoder) selfProtection(v hujson.Value) {
	d.object(v, "selfProtection",
		field{"lift", func(v hujson.Value) {
			for _, e := range d.texts(v, "selfProtection.lift", "groups of built-in rules") {
				at := groupIndex(e.text)
				if at < 0 {
					d.addf(e.at, "unknown group of built-in rules %q%s", clip(e.text), didYouMean(e.text, SelfGroups()))
					continue
				}
				d.s.self.lifted |= 1 << at
			}
		}},
		field{"paths", d.selfPaths},
	)
}

// selfPaths reads more paths that are Assent's own, as a store that lies
// elsewhere: files, or folders with all that is in them.
func (d *decoder) selfPaths(v hujson.Value) {
	for _, e := range d.texts(v, "selfProtection.paths", "paths") {
		_, home := cutHome(e.text)
		switch {
		case !d.fits(e.at, e.text):
		case strings.ContainsAny(e.text, "*?"):
			d.addf(e.at, "selfProtection.paths: %q holds a wildcard; expected a file or folder, which stands for all that is in it", clip(e.text))
		case climbs(e.text):
			d.addf(e.at, "selfProtection.paths: %q goes up; expected the path that it leads to", clip(e.text))
		case !home && !strings.HasPrefix(e.text, "/") && !drive(e.text):
			d.addf(e.at, "selfProtection.paths: %q is not absolute; expected a path as \"/srv/assent\" or \"~/assent-store\"", clip(e.text))
		case strings.Trim(strings.TrimPrefix(e.text, "~"), "/") == "":
			d.addf(e.at, "selfProtection.paths: %q is everything, and agents could work nowhere", clip(e.text))
		default:
			for _, ending := range []string{"", "/*"} {
				p := compilePathPattern(lowerPattern(strings.TrimSuffix(e.text, "/") + ending))
				p.text = e.text
				d.s.self.own = append(d.s.self.own, p)
			}
		}
	}
}
