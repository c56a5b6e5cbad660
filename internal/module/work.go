package module

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Work is the life of a worker process: it carries out the orders of one engine
// that come on in and reports on out, until in ends. Before the first module it
// gives up what the process could do to its host; it is not for a process that
// does anything else.
func Work(in io.Reader, out io.Writer) error {
	w := worker{pipe: newFrames(in, out), modules: map[uint64]*running{}, texts: newJSONTexts()}
	for {
		body, err := w.pipe.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.obey(body)
		}
		if err != nil {
			return fmt.Errorf("module worker: %w", err)
		}
	}
}

type worker struct {
	pipe     *frames
	confined bool
	modules  map[uint64]*running
	texts    *jsonTexts
}

// running is a module in this process.
type running struct {
	script *script
	root   jsontext.Value
	// rootNode is root, read.
	rootNode jsonNode
}

// obey does what a frame says.
func (w *worker) obey(frame []byte) error {
	if len(frame) == 0 || frame[0] != askMark {
		var o order
		if err := readJSON(frame, &o); err != nil {
			return err
		}
		return w.carryOut(&o)
	}
	a, err := readAsking(frame)
	switch {
	case err != nil:
		return err
	case !w.confined:
		return fmt.Errorf("%w: a call before hello", errFrame)
	case jsontext.Value(a.Input).Kind() != '{':
		return fmt.Errorf("%w: a call without its input", errFrame)
	}
	said := answers{Serial: a.Serial, Results: w.ask(&a)}
	return w.pipe.write(func(b []byte) ([]byte, error) { return said.append(b), nil })
}

func (w *worker) carryOut(o *order) error {
	// Nothing of a module runs in a process that could still reach its host.
	if !w.confined && o.Op != opHello {
		return fmt.Errorf("%w: %s before hello", errFrame, o.Op)
	}
	switch o.Op {
	case opHello:
		if err := confine(o.Memory); err != nil {
			return err
		}
		w.confined = true
		// Scripts see the zone of the process; hosts differ in theirs.
		time.Local = time.UTC
		return w.pipe.writeJSON(&report{Op: opHello})
	case opLoad:
		if o.Root.Kind() != '"' {
			return fmt.Errorf("%w: a module without a root", errFrame)
		}
		return w.pipe.writeJSON(w.load(o))
	case opDrop:
		delete(w.modules, o.Module)
		w.collect()
		return nil
	default:
		return fmt.Errorf("%w: op %q", errFrame, clip(string(o.Op), 40))
	}
}

func (w *worker) load(o *order) *report {
	s, checks, err := newScript(o.Name, o.Code, w.texts)
	if err != nil {
		return &report{Op: opLoad, Error: err.Error()}
	}
	root, err := w.texts.parse(string(o.Root))
	if err != nil {
		return &report{Op: opLoad, Error: err.Error()}
	}
	w.modules[o.Module] = &running{script: s, root: o.Root, rootNode: root}
	w.collect()
	return &report{Op: opLoad, Checks: checks}
}

// collect sets when the worker collects its garbage: after 100 MB of it, about, as
// long as its modules take less. A module takes 0.6 MB, and the fewer there are the
// more often a share of that would hold up calls; the share of many is too much for
// the worker's memory.
func (w *worker) collect() {
	const percent, of, least = 1600, 10, 100
	debug.SetGCPercent(max(percent*of/max(len(w.modules), of), least))
}

// ask goes through the steps and stops after the first that does not simply
// pass: what it means for the rest is the engine's to say.
func (w *worker) ask(a *asking) []result {
	results := make([]result, 0, len(a.Steps))
	w.texts.hear(string(a.Input))
	for _, st := range a.Steps {
		r := result{Module: st.Module}
		m, ok := w.modules[st.Module]
		if !ok {
			r.Error = "the module is not loaded in its worker"
			return append(results, r)
		}
		input := m.input(a.Input)
		w.texts.tell(input, m.rootNode)
		text, err := m.script.run(a.Ask, st.Checks, input)
		if err != nil {
			r.Error = err.Error()
			return append(results, r)
		}
		if said, err := readAnswer(text, st.Checks); err != nil || !said.passes() {
			r.Answer = text
			return append(results, r)
		}
		r.Nothing = true
		results = append(results, r)
	}
	return results
}

// input is what a module is told of a call: all the same but for its own root.
func (m *running) input(call jsontext.Value) string {
	var b strings.Builder
	b.Grow(len(call) + len(m.root) + 20)
	b.WriteString(`{"` + rootKey + `":`)
	b.Write(m.root)
	if rest := call[1:]; len(rest) > 1 {
		b.WriteByte(',')
		b.Write(rest)
	} else {
		b.WriteByte('}')
	}
	return b.String()
}
