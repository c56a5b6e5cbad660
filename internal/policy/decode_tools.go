package policy

import (
	"strings"

	"github.com/tailscale/hujson"
)

// tooling is what the fleet layer says of tools that nothing is known of.
type tooling struct {
	// pathArguments are the arguments of a tool that hold paths, by its name.
	// Nothing else of such a tool is taken for a path.
	pathArguments map[string][]pathArg
	// shells are the tools that run commands, by their names.
	shells map[string]shellTool
	// trustedReads are what may be read outside of the project whatever
	// external_directory says.
	trustedReads []pattern
}

// pathArg is one argument that holds a path, or several.
type pathArg struct {
	name string
	dir  direction
}

// pathArguments reads {"tool": "argument"}, {"tool": ["argument", …]} and, for
// an argument whose direction is known, {"argument": "dest", "direction": "write"}.
func (d *decoder) pathArguments(v hujson.Value) {
	d.byTool(v, "pathArguments", "{\"my_tool\": [\"target\"]}", func(tool string, v hujson.Value) {
		items := []hujson.Value{v}
		if list, ok := v.Value.(*hujson.Array); ok {
			items = list.Elements
		}
		if d.s.pathArguments == nil {
			d.s.pathArguments = map[string][]pathArg{}
		}
		args := []pathArg{}
		for _, item := range items {
			if arg, ok := d.pathArgument(item); ok {
				args = append(args, arg)
			}
		}
		d.s.pathArguments[tool] = args
	})
}

func (d *decoder) pathArgument(v hujson.Value) (arg pathArg, ok bool) {
	arg.dir = both
	switch v.Value.(type) {
	case hujson.Literal:
		return arg, d.argumentName(v, "the argument", &arg.name)
	case *hujson.Object:
	default:
		d.addf(v.StartOffset, "an argument is %s; expected its name, or {\"argument\": \"dest\", \"direction\": \"write\"}", kindOf(v))
		return arg, false
	}
	d.object(v, "the argument",
		field{"argument", func(v hujson.Value) { ok = d.argumentName(v, "argument", &arg.name) }},
		field{"direction", func(v hujson.Value) {
			word, _ := d.oneOf(v, "direction", []string{"read", "write", "both"})
			arg.dir = map[string]direction{"read": reads, "write": writes, "both": both, "": both}[word]
		}},
	)
	if !ok && !hasKey(v, "argument") {
		d.addf(v.StartOffset, "the argument has no name; expected {\"argument\": \"dest\", \"direction\": \"write\"}")
	}
	return arg, ok
}

// shellTools reads {"tool": {"command": "cmd", "workdir": "dir"}}; the argument
// of the directory may be left out.
func (d *decoder) shellTools(v hujson.Value) {
	d.byTool(v, "shellTools", "{\"my_shell\": {\"command\": \"cmd\"}}", func(tool string, v hujson.Value) {
		t := shellTool{declared: true}
		command := func(v hujson.Value) { d.argumentName(v, "command", &t.command) }
		workdir := func(v hujson.Value) {
			var name string
			if d.argumentName(v, "workdir", &name) {
				t.workdir = []string{name}
			}
		}
		d.object(v, "the shell tool",
			field{"command", command}, field{"workdir", workdir},
			field{"commandArgument", command}, field{"workdirArgument", workdir},
		)
		if t.command == "" {
			if !hasKey(v, "command") && !hasKey(v, "commandArgument") {
				d.addf(v.StartOffset, "the shell tool names no argument that holds its command; expected {\"command\": \"cmd\"}")
			}
			return
		}
		if d.s.shells == nil {
			d.s.shells = map[string]shellTool{}
		}
		d.s.shells[tool] = t
	})
}

// byTool reads an object whose keys are names of tools.
func (d *decoder) byTool(v hujson.Value, what, example string, read func(tool string, v hujson.Value)) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.addf(v.StartOffset, "%s is %s; expected an object from a tool's name to its arguments, as %s", what, kindOf(v), example)
		return
	}
	d.members(obj, func(tool string, m hujson.ObjectMember) {
		if strings.TrimSpace(tool) != tool || tool == "" {
			d.addf(m.Name.StartOffset, "%s: %q names no tool", what, clip(tool))
			return
		}
		if known := canonicalTool(tool); known != tool {
			d.addf(m.Name.StartOffset, "%s names %q; this tool is called %q in rules", what, clip(tool), known)
			return
		}
		read(tool, m.Value)
	})
}

func (d *decoder) argumentName(v hujson.Value, what string, to *string) bool {
	s, err := text(v)
	if err != nil || s == "" {
		d.addf(v.StartOffset, "%s is %s; expected the name of an argument", what, kindOf(v))
		return false
	}
	*to = s
	return true
}

// trustedReadPaths reads patterns of paths. One without a wildcard stands for
// the file or folder and everything in it.
func (d *decoder) trustedReadPaths(v hujson.Value) {
	for _, e := range d.texts(v, "trustedReadPaths", "paths") {
		_, home := cutHome(e.text)
		switch {
		case !d.fits(e.at, e.text):
		case climbs(e.text):
			d.addf(e.at, "trustedReadPaths: %q goes up; expected the path that it leads to", clip(e.text))
		case !home && !strings.HasPrefix(e.text, "/") && !drive(e.text):
			d.addf(e.at, "trustedReadPaths: %q is not absolute; expected a path as \"/opt/docs\" or \"~/.cargo/registry\"", clip(e.text))
		case strings.Trim(e.text, "/*?") == "":
			d.addf(e.at, "trustedReadPaths: %q trusts the whole disk; allow external_directory_read instead", clip(e.text))
		default:
			d.s.trustedReads = append(d.s.trustedReads, compilePathPattern(e.text))
			if !strings.ContainsAny(e.text, "*?") {
				d.s.trustedReads = append(d.s.trustedReads, compilePathPattern(strings.TrimSuffix(e.text, "/")+"/*"))
			}
		}
	}
}
