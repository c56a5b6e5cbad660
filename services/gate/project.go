package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/projects"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// uploadsPerSecond is how fast one agent may upload at one gate.
	uploadsPerSecond = 4
	// Bounds of the projects' policies that a gate keeps read, in files and in
	// rules of them all (about 1 KiB each).
	maxFiles     = 512
	maxFileRules = 50_000
	// brokenText bounds what is said of one that does not read, in bytes.
	brokenText = 600
)

// errNeedProject: the ask names a project's policy that its agent has not
// uploaded, or that is not stored any more.
var errNeedProject = errors.New("project's own policy is not known here")

// projectFile is a project's own policy, read for one project. It is the word of
// an agent's host: of what does not read nobody knows what it would tighten.
type projectFile struct {
	document *policy.Document
	broken   string
	brought
	renewed time.Time
}

// brought are the permission modules that a project brought, and what is wrong
// with those that could not be bundled where its agent runs.
type brought struct {
	modules  []module.Source
	problems []module.Problem
}

// fileKey names a project's policy: whose upload it is, and which project's layer
// it is read as.
type fileKey struct{ agent, digest, project string }

// files are the projects' policies that this gate has read lately.
type files struct {
	store *projects.Store
	now   func() time.Time

	mu    sync.Mutex
	read  map[fileKey]projectFile
	rules int // of all that are read
}

func newFiles(store *projects.Store) *files {
	return &files{store: store, now: time.Now, read: map[fileKey]projectFile{}}
}

// of returns the project's own policy of an ask, the zero value where it names
// none. errNeedProject where it is not stored.
func (f *files) of(ctx context.Context, ask protocol.Ask) (projectFile, error) {
	if projectDigest(ask) == "" {
		return projectFile{}, nil
	}
	key := fileKey{ask.Agent, ask.Project.Digest, ask.Project.ID}
	f.mu.Lock()
	have, known := f.read[key]
	f.mu.Unlock()
	if known && !(projects.Stored{At: have.renewed}).Stale(f.now()) {
		return have.in(ask.Project.Root), nil
	}
	stored, found, err := f.store.Get(ctx, ask.Agent, ask.Project.Digest)
	if err == nil && !found {
		err = errNeedProject
	}
	if err == nil && stored.Stale(f.now()) {
		_, err = f.store.Put(ctx, ask.Agent, stored.Text, stored.Modules...)
		stored.At = f.now()
	}
	if err != nil {
		return projectFile{}, fmt.Errorf("project %s: %w", ask.Project.ID, err)
	}
	if !known {
		have = readProject(ask.Project.ID, stored.Text, stored.Modules...)
	}
	have.renewed = stored.At
	f.keep(key, have)
	return have.in(ask.Project.Root), nil
}

// in is f for a project that lies at root: its modules are told where they stand.
func (f projectFile) in(root string) projectFile {
	f.modules = slices.Clone(f.modules)
	for i := range f.modules {
		f.modules[i].Root = path.Join(root, moduleFolder)
	}
	return f
}

// keep keeps what was read, in place of everything that was where there is no
// more room.
func (f *files) keep(key fileKey, file projectFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := file.size()
	if old, known := f.read[key]; known {
		n -= old.size()
	}
	if len(f.read) >= maxFiles || f.rules+n > maxFileRules {
		clear(f.read)
		f.rules, n = 0, file.size()
	}
	f.read[key] = file
	f.rules += n
}

// codePerRule is how many bytes of a module count as a rule.
const codePerRule = 1 << 10

func (f projectFile) size() (n int) {
	if f.document != nil {
		n = f.document.Size()
	}
	for _, m := range f.modules {
		n += 1 + len(m.Code)/codePerRule
	}
	return n
}

// What a project has of its own is called in messages as it is called there.
const (
	projectFileName = ".assent/policy.jsonc"
	moduleFolder    = ".assent/permissions"
)

// readProject reads a project's own policy as that project's layer, and takes its
// modules.
func readProject(id, text string, modules ...protocol.ProjectModule) (f projectFile) {
	for _, m := range modules {
		if m.Error != "" {
			f.problems = append(f.problems, module.Problem{Module: protocol.Safe(m.Name, protocol.MaxToken, false), Level: module.LevelProject, Message: protocol.Safe(m.Error, brokenText, false)})
			continue
		}
		f.modules = append(f.modules, module.Source{Name: m.Name, Level: module.LevelProject, Code: m.Code})
	}
	layer, err := policy.ParseLayer(policy.ProjectLayer(id).String())
	if err != nil {
		f.broken = "the ask names no project that could have one"
		return f
	}
	if f.document, err = policy.Read(layer, projectFileName, []byte(text)); err != nil {
		f.document, f.broken = nil, protocol.Safe(err.Error(), brokenText, false)
	}
	return f
}

// projectDigest is that of the project's own policy that an ask is ruled by, ""
// for none. A child node has ruled by it already what it relays, and will again.
func projectDigest(ask protocol.Ask) string {
	if ask.Via() != "" {
		return ""
	}
	return ask.Project.Digest
}

// whoAsks is who asks, as the layers of the policy are chosen. The agent's name is
// the credential's; the rest is the word of the agent's host.
func whoAsks(ask protocol.Ask, file projectFile) policy.Who {
	if ask.Via() != "" {
		// Nobody whom this node has given a name: its word chooses no layer of an
		// agent and meets no trust, and the project's own layers only tighten.
		return policy.Who{Project: ask.Project.ID}
	}
	return policy.Who{
		Agent: ask.Agent, AgentName: ask.AgentName, Project: ask.Project.ID, Root: ask.Project.Root,
		File: file.document, FileBroken: file.broken,
	}
}

// unruled answers an ask that could not be ruled: by its decision, if it has been
// decided, whatever became of the project's policy since.
func (g *Gate) unruled(ctx context.Context, c call, err error) (reply, error) {
	if errors.Is(err, errNeedProject) {
		if r, decided, serr := g.standing(ctx, c); decided || serr != nil {
			return r, serr
		}
	}
	return reply{}, err
}

// serveProject takes an upload of a project's own policy.
func (g *Gate) serveProject(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	agent, _, ok := g.asker(m)
	if !ok {
		return
	}
	if !g.uploads.bucket(agent, uploadsPerSecond, time.Now()).Allow() {
		g.count("rate_limited", "uploads")
		g.answerFault(m, "", protocol.Fault{Code: protocol.CodeUnavailable, Message: "this agent uploads too fast", Remedy: "wait a second and upload again"})
		return
	}
	up, err := protocol.Read[protocol.ProjectUpload](m.Data)
	if err != nil {
		g.count("invalid", "project")
		g.answerFault(m, "", *badUpload(err))
		return
	}
	if _, err := g.files.store.Put(ctx, agent, up.Policy, up.Modules...); err != nil {
		g.fail("project", "what a project has of its own could not be stored; asks under it are not answered", "", err)
		g.answerFault(m, "", protocol.Fault{Code: protocol.CodeUnavailable, Message: "the project's policy could not be stored", Remedy: "upload it again"})
		return
	}
	file := readProject(cmp.Or(up.Project, "unnamed"), up.Policy, up.Modules...)
	broken := file.broken
	if len(file.problems) > 0 {
		g.count("module", "not_bundled")
		g.log.Warn("modules of a project could not be bundled where its agent runs; the others run if the project is trusted", "agent", agent, "project", protocol.Safe(up.Project, 200, false), "digest", up.Digest, "modules", len(file.problems), "first", file.problems[0].String())
	}
	if broken != "" {
		g.log.Warn("a project's own policy does not read: every allow under it is clamped to ask", "agent", agent, "project", protocol.Safe(up.Project, 200, false), "digest", up.Digest, "err", broken)
	}
	send(g, m, protocol.ProjectReceipt{Digest: up.Digest, Error: broken})
}

func badUpload(err error) *protocol.Fault {
	if errors.Is(err, protocol.ErrTooLarge) {
		return &protocol.Fault{Code: protocol.CodeTooLarge, Message: protocol.Safe(err.Error(), 500, false), Remedy: fmt.Sprintf("make the project's policy or modules smaller: at most %d and %d bytes, and %d modules", protocol.MaxProjectPolicy, protocol.MaxProjectCode, protocol.MaxProjectModules)}
	}
	return &protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(err.Error(), 500, false), Remedy: `send {"v":1,"project":ID,"digest":"sha256:…","policy":TEXT,"modules":[{"name":NAME,"code":SCRIPT}]}`}
}

func needProjectFault() *protocol.Fault {
	return &protocol.Fault{Code: protocol.CodeNeedProject, Message: "the project's own policy of this digest is not known here", Remedy: "upload it on the project subject, then ask again with the same id"}
}
