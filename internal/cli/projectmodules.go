package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// errLeadsOut: bundling would read, and tell of, what the agent may not read itself.
var errLeadsOut = errors.New("it leads out of the project")

// bringModules bundles the permission modules of a project, on this host: the
// gate has no hold of its files. What cannot be bundled goes along as the reason
// why, and is told on w: a project whose modules have a mistake must not look to
// the gate like one that has none.
func bringModules(p *project.Project, w io.Writer) {
	if p.Root == "" {
		return
	}
	sources, problems, err := modulesOf(filepath.Join(p.Root, project.ModuleFolder), p.Root)
	if err != nil {
		problems = append(problems, module.Problem{Module: filepath.Base(project.ModuleFolder), Level: module.LevelProject, Message: err.Error()})
	}
	policy, _, _ := p.Own()
	p.Modules = whatFits(policy, sources, problems)
	for _, m := range p.Modules {
		if m.Error != "" {
			fmt.Fprintf(w, "assent: the project's permission module %s does not load: %s\n", protocol.Safe(m.Name, 100, false), protocol.Safe(m.Error, 1000, false))
		}
	}
}

func modulesOf(dir, root string) ([]module.Source, []module.Problem, error) {
	at, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Lstat(dir); err == nil {
			return nil, nil, errors.New("it is a link that leads nowhere")
		}
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if rel, err := filepath.Rel(root, at); err != nil || !filepath.IsLocal(rel) {
		return nil, nil, errLeadsOut
	}
	return bundle.Dir(at, module.LevelProject)
}

// uploadRoom is what the modules of an upload may take as they are written there,
// beside the policy and a little more.
const uploadRoom = protocol.CarrierMaxBytes - 64<<10

// whatFits is what of the modules an upload can hold, in order; the rest is there as
// an error: an upload that no gate takes would be a deny of everything.
func whatFits(policy string, sources []module.Source, problems []module.Problem) (out []protocol.ProjectModule) {
	add := func(name, code, err string) bool {
		if len(out) == protocol.MaxProjectModules-1 && len(sources)+len(problems) > protocol.MaxProjectModules {
			err = fmt.Sprintf("it and %d more are too many: a project has at most %d modules", len(sources)+len(problems)-len(out)-1, protocol.MaxProjectModules)
			out = append(out, protocol.ProjectModule{Name: name, Error: err})
			return false
		}
		out = append(out, protocol.ProjectModule{Name: name, Code: code, Error: protocol.Safe(err, protocol.MaxReason-len("…"), false)})
		return true
	}
	code, room := protocol.MaxProjectCode, uploadRoom-spelled(policy)
	for _, s := range sources {
		code, room = code-len(s.Code), room-spelled(s.Code)
		text, why := s.Code, ""
		if code < 0 || room < 0 {
			text, why = "", fmt.Sprintf("its %d bytes, bundled, are too much: a project's modules have at most %d in all", len(s.Code), protocol.MaxProjectCode)
			code, room = code+len(s.Code), room+spelled(s.Code)
		}
		if !add(s.Name, text, why) {
			return out
		}
	}
	for _, p := range problems {
		name := strings.TrimSpace(protocol.Safe(p.Module, 100, false))
		if !add(firstOf(name, "unnamed"), "", firstOf(p.Message, "it does not load")) {
			return out
		}
	}
	return out
}

// spelled is how many bytes a text has in a message.
func spelled(text string) int {
	b, err := json.Marshal(text)
	if err != nil {
		return uploadRoom + 1 // it is not UTF-8
	}
	return len(b)
}
