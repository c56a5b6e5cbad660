package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// place is where a call happens, or a command in it.
type place struct {
	// cwd and home are absolute and clean, or empty where they are not known.
	cwd, home string
	// bases are where relative paths start: cwd, or where a command has gone to;
	// more than one where a link leads there. None: nobody knows.
	bases []string
	// inside are the directories that count as the project: cwd, and what it
	// resolves to.
	inside []string
	// fold: the file system finds a name in any letter case.
	fold    bool
	windows bool
	// resolved is what the adapter found behind each path as typed, links the
	// same by where the path lies.
	resolved map[string][]string
	links    []link
}

// link says that what lies at or below one path lies elsewhere.
type link struct{ from, to string }

// caseKeeping are the systems that tell names apart by letter case; "" is one
// that nobody stated. Any other, also one under a name that nobody here knows
// ("macos", "win32"), may find a file under another spelling, and so do denies.
var caseKeeping = []string{"", "linux", "android", "freebsd", "netbsd", "openbsd", "dragonfly", "illumos", "solaris", "aix"}

func placeOf(c Call) place {
	p := place{fold: !slices.Contains(caseKeeping, c.Platform), windows: c.Platform == "windows"}
	p.cwd, p.home = p.absolute(c.Cwd), p.absolute(c.Home)
	if p.cwd != "" {
		p.bases = []string{p.cwd}
	}
	for _, one := range c.Paths {
		p.fact(one)
	}
	if p.cwd == "" {
		return p
	}
	// A call at the root would have the whole disk inside its project.
	if !root(p.cwd) {
		p.inside = p.bases[:1:1]
	}
	for _, dir := range p.resolved[c.Cwd] {
		if abs := p.absolute(dir); abs != "" && !root(abs) {
			p.inside = append(p.inside, abs)
		}
	}
	return p
}

// fact notes what the adapter found.
func (p *place) fact(one Path) {
	if one.Resolved == "" {
		return
	}
	if p.resolved == nil {
		p.resolved = map[string][]string{}
	}
	p.resolved[one.Raw] = append(p.resolved[one.Raw], one.Resolved)
	to := p.absolute(one.Resolved)
	for _, from := range p.join(one.Raw) {
		if to != "" && from.abs != to && !root(from.abs) && from.abs != p.cwd {
			p.links = append(p.links, link{from.abs, to})
		}
	}
}

// absolute is path clean, or "" if it is not absolute.
func (p *place) absolute(typed string) string {
	switch {
	case p.windows && (drive(typed) || strings.HasPrefix(typed, "/")):
		abs, _ := windowsPath(typed, "")
		return abs
	case !strings.HasPrefix(typed, "/"):
		return ""
	}
	return path.Clean(typed)
}

func root(abs string) bool { return abs == "/" || len(abs) == 3 && abs[1] == ':' }

// of is the place of a command, which may have gone to another directory first.
func (p *place) of(u *shell.Unit) place {
	if u.Dir == "" && !u.Lost && len(u.Elsewhere) == 0 {
		return *p
	}
	return p.gone(u.Lost, append([]string{u.Dir}, u.Elsewhere...)...)
}

// at is the place of what has gone to a directory. lost: it may be anywhere.
func (p place) at(dir string, lost bool) place { return p.gone(lost, dir) }

// gone is the place of what may be in one of some directories. Links on the way
// leave more than one place open too: what is ruled on is all of them.
func (p place) gone(lost bool, dirs ...string) place {
	var bases []string
	for _, dir := range dirs {
		if dir == "" || dir == "." {
			bases = append(bases, p.bases...)
			continue
		}
		for _, r := range p.readings(dir) {
			switch {
			case r.abs == "":
				lost = true
			case !slices.Contains(bases, r.abs):
				bases = append(bases, r.abs)
			}
		}
	}
	if p.bases = bases; lost {
		p.bases = nil
	}
	return p
}

// pathReading is one way to understand a path.
type pathReading struct {
	// abs is absolute and clean; "" if it could not be found out.
	abs string
	// rel is abs within cwd, "" outside of it.
	rel string
	// odd names what keeps it from being proven, "" if nothing does.
	odd string
	// windows and fold as in place.
	windows, fold bool
}

// values are the spellings under which the reading is matched; typed is how
// the agent wrote the path.
func (r pathReading) values(typed string) values {
	v := values{wide: []string{typed}, fold: r.fold}
	switch {
	case r.abs == "":
		// Nobody knows where it leads: no allow matches, every deny may.
		if c := path.Clean(typed); c != typed {
			v.wide = append(v.wide, c)
		}
		return v
	case r.windows:
		v.exact = windowsSpellings(r.abs)
		if r.rel != "" {
			v.exact = append(v.exact, windowsSpellings(r.rel)...)
		}
	case r.rel != "":
		if v.exact = []string{r.abs, r.rel}; r.rel == typed {
			v.wide = nil // said already
		}
	default:
		v.exact = []string{r.abs}
	}
	if r.odd != "" {
		v.exact, v.wide = nil, append(v.wide, v.exact...)
	}
	return v
}

// readings are all the ways in which the path may be understood: with ".."
// taken off the text, as the adapter resolved it, and as the links on its way
// lead. The strictest counts.
func (p *place) readings(typed string) []pathReading {
	out := p.join(typed)
	// Some tools drop blanks, quotes or a leading @ around a path.
	if trimmed := strings.TrimPrefix(strings.Trim(typed, " \t\n\"'"), "@"); trimmed != typed && trimmed != "" {
		out = append(out, p.join(trimmed)...)
	}
	out = append(out, p.aliased(typed)...)
	out = append(out, p.unexpanded(typed)...)
	for _, r := range out[:len(out):len(out)] {
		out = append(out, p.recased(r)...)
	}
	for _, r := range out[:len(out):len(out)] {
		for _, l := range p.links {
			if rest, ok := within(r.abs, l.from); ok {
				out = append(out, p.reading(path.Join(l.to, rest), r.odd))
			}
		}
	}
	for _, r := range p.resolved[typed] {
		out = append(out, p.reading(p.absolute(r), ""))
	}
	return out
}

// recased is a path that names the project in other letters, as "/Repo/vault" for
// "/repo/vault": where letters count in either case it is the same place, and a
// rule on "vault/*" speaks of it. Only for what denies and asks: the disk may
// tell the two apart.
func (p *place) recased(r pathReading) (out []pathReading) {
	if !p.fold || r.abs == "" || r.rel != "" {
		return nil
	}
	for _, dir := range p.inside {
		if len(r.abs) >= len(dir) && strings.EqualFold(r.abs[:len(dir)], dir) {
			if again := p.reading(dir+r.abs[len(dir):], "letter-case"); again.rel != "" {
				return []pathReading{again}
			}
		}
	}
	return nil
}

// single is the one reading of a plain name or relative path where there is
// only one, without what looking for others costs; ok is false where there may
// be more. It is readings for those: a property test holds the two together.
func (p *place) single(typed string) (r pathReading, ok bool) {
	if p.windows || p.fold || len(p.bases) != 1 || len(p.links) > 0 || len(p.resolved) > 0 || typed == "" ||
		strings.HasPrefix(p.bases[0], "/proc") || strings.HasPrefix(p.bases[0], "/dev") {
		return r, false
	}
	if strings.IndexByte("/~$@ \t\n\"'", typed[0]) >= 0 || strings.IndexByte(" \t\n\"'", typed[len(typed)-1]) >= 0 || speaksOfProc(typed) {
		return r, false
	}
	return p.reading(below(p.bases[0], typed), ""), true
}

// join makes a typed path absolute and clean, from each of the bases; a reading
// without a place where that is not possible.
func (p *place) join(typed string) []pathReading {
	if p.windows && strings.HasPrefix(typed, `~\`) {
		typed = "~/" + typed[2:]
	}
	if rest, ok := cutHome(typed); ok {
		if p.home == "" {
			return []pathReading{p.reading("", "")}
		}
		typed = p.home + "/" + strings.TrimPrefix(rest, "/")
	}
	for _, prefix := range []string{"$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(typed, prefix); ok && (rest == "" || rest[0] == '/') {
			typed = "./" + rest
			break
		}
	}
	switch {
	case p.windows:
		return p.joinWindows(typed)
	case strings.HasPrefix(typed, "/"):
		return []pathReading{p.reading(path.Clean(typed), "")}
	case len(p.bases) == 1:
		return []pathReading{p.reading(below(p.bases[0], typed), "")}
	case len(p.bases) == 0:
		return []pathReading{p.reading("", "")}
	}
	out := make([]pathReading, len(p.bases))
	for i, base := range p.bases {
		out[i] = p.reading(path.Clean(base+"/"+typed), "")
	}
	return out
}

// unexpanded is a path that begins with a home or working directory as it leads
// where nobody puts that in its place, as between quotes: a folder may be named
// "~", and '~/x/../../key' climbs out of it. Without "..", it stays in there.
func (p *place) unexpanded(typed string) (out []pathReading) {
	_, special := cutHome(typed)
	if !special && !strings.HasPrefix(typed, "$PWD/") && !strings.HasPrefix(typed, "${PWD}/") || !strings.Contains(typed, "/..") || p.windows {
		return nil
	}
	for _, base := range p.bases {
		out = append(out, p.reading(path.Clean(base+"/"+typed), ""))
	}
	return out
}

// below is path.Clean of a path in a clean folder; most are clean as they are.
func below(base, typed string) string {
	whole := base + "/" + typed
	if base == "/" || typed == "" || strings.HasSuffix(typed, "/") || strings.HasPrefix(typed, ".") ||
		strings.Contains(typed, "//") || strings.Contains(typed, "/.") {
		return path.Clean(whole)
	}
	return whole
}

func (p *place) joinWindows(typed string) []pathReading {
	bases := p.bases
	if len(bases) == 0 {
		bases = []string{""}
	}
	out := make([]pathReading, len(bases))
	for i, base := range bases {
		abs, odd := windowsPath(typed, base)
		out[i] = p.reading(abs, odd)
	}
	return out
}

func (p *place) reading(abs, odd string) pathReading {
	r := pathReading{abs: abs, odd: odd, fold: p.fold, windows: p.windows}
	for _, dir := range p.inside {
		if rel, ok := within(abs, dir); ok && abs != "" {
			r.rel = rel
			break
		}
	}
	return r
}

// within returns abs relative to dir, "." for dir itself.
func within(abs, dir string) (string, bool) {
	if abs == dir {
		return ".", true
	}
	if len(abs) <= len(dir) || !strings.HasPrefix(abs, dir) {
		return "", false
	}
	switch rest := abs[len(dir):]; {
	case rest[0] == '/':
		return rest[1:], true
	case strings.HasSuffix(dir, "/"):
		return rest, true
	}
	return "", false
}
