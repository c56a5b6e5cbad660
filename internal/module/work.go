package module

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Work is the life of a worker process: it carries out the orders of one engine
// that come on in and reports on out, until in ends. Before the first module it
// gives up what the process could do to its host; it is not for a process that
// does anything else.
func Work(in io.Reader, out io.Writer) error {
	w := worker{in: bufio.NewReaderSize(in, 64<<10), out: out, modules: map[uint64]*running{}}
	for {
		var o order
		err := readFrame(w.in, &o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.carryOut(&o)
		}
		if err != nil {
			return fmt.Errorf("module worker: %w", err)
		}
	}
}

type worker struct {
	in       *bufio.Reader
	out      io.Writer
	confined bool
	modules  map[uint64]*running
}

// running is a module in this process.
type running struct {
	script *script
	root   jsontext.Value
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
		return writeFrame(w.out, &report{Op: opHello})
	case opLoad:
		if o.Root.Kind() != '"' {
			return fmt.Errorf("%w: a module without a root", errFrame)
		}
		return writeFrame(w.out, w.load(o))
	case opDrop:
		delete(w.modules, o.Module)
		return nil
	case opAsk:
		if o.Input.Kind() != '{' {
			return fmt.Errorf("%w: an ask without the input of a call", errFrame)
		}
		return writeFrame(w.out, &report{Op: opAsk, Results: w.ask(o)})
	default:
		return fmt.Errorf("%w: op %q", errFrame, clip(string(o.Op), 40))
	}
}

func (w *worker) load(o *order) *report {
	s, checks, err := newScript(o.Name, o.Code)
	if err != nil {
		return &report{Op: opLoad, Error: err.Error()}
	}
	w.modules[o.Module] = &running{script: s, root: o.Root}
	return &report{Op: opLoad, Checks: checks}
}

// ask goes through the steps and stops after the first that does not simply
// pass: what it means for the rest is the engine's to say.
func (w *worker) ask(o *order) []result {
	var results []result
	for _, st := range o.Steps {
		m, ok := w.modules[st.Module]
		if !ok {
			return append(results, result{Error: "the module is not loaded in its worker"})
		}
		text, err := m.script.run(o.Ask, st.Checks, m.input(o.Input))
		if err != nil {
			return append(results, result{Error: err.Error()})
		}
		results = append(results, result{Answer: text})
		if a, err := readAnswer(text, st.Checks); err != nil || !a.passes() {
			return results
		}
	}
	return results
}

// input is what a module is told of a call: all the same but for its own root.
func (m *running) input(call jsontext.Value) string {
	var b strings.Builder
	b.Grow(len(call) + len(m.root) + 20)
	b.WriteString(`{"permissionRoot":`)
	b.Write(m.root)
	if rest := call[1:]; len(rest) > 1 {
		b.WriteByte(',')
		b.Write(rest)
	} else {
		b.WriteByte('}')
	}
	return b.String()
}
