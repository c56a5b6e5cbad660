package module

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/grafana/sobek"
	"github.com/oklog/ulid/v2"

	"github.com/assent-dev/assent/internal/module/shellview"
)

// parseShell is the name of what reads a shell command for a script.
const parseShell = "__assentParseShell"

// maxFrames bounds how deep a script's calls may nest.
const maxFrames = 2000

// maxChecksText bounds what a script may say of its checks, in bytes.
const maxChecksText = 1 << 20

// harden runs before a module's own script and returns what is done after it.
//
//go:embed harden.js
var harden string

var hardenProgram = sobek.MustCompile("harden", harden, true)

var (
	errShape   = errors.New("its script gives no object with checks and ask: it was not bundled as a permission module")
	errNoText  = fmt.Errorf("%w: it is neither a text nor the promise of one", errAnswer)
	errPending = errors.New("it waits for something that never comes: its promise does not settle")
	errDeep    = fmt.Errorf("its calls nest deeper than %d", maxFrames)
)

// script is one module in a runtime of its own: whatever it does to the objects
// that the language provides, it does to itself alone.
type script struct {
	vm  *sobek.Runtime
	ask sobek.Callable
	// now and chance are all that it knows of time and chance; seed is where chance
	// comes from.
	now    time.Time
	seed   *rand.PCG
	chance *rand.Rand
}

// newScript runs a module's script and returns what it says of its checks.
func newScript(name, code string, texts *jsonTexts) (s *script, checks string, err error) {
	seed := rand.NewPCG(0, 0)
	s = &script{vm: sobek.New(), seed: seed, chance: rand.New(seed)}
	s.fix("")
	s.vm.SetMaxCallStackSize(maxFrames)
	if err := s.vm.Set(parseShell, s.parseShell); err != nil {
		return nil, "", fmt.Errorf("preparing the runtime: %w", err)
	}
	s.vm.SetTimeSource(func() time.Time { return s.now })
	s.vm.SetRandSource(func() float64 { return s.chance.Float64() })
	err = s.guard(func() error {
		if err := fastParse(s.vm, texts); err != nil {
			return err
		}
		seal, err := s.vm.RunProgram(hardenProgram)
		if err != nil {
			return err
		}
		program, err := sobek.Compile(name, code, true)
		if err != nil {
			return err
		}
		value, err := s.vm.RunProgram(program)
		if err != nil {
			return err
		}
		if checks, err = s.adopt(value); err != nil {
			return err
		}
		end, _ := sobek.AssertFunction(seal)
		_, err = end(sobek.Undefined())
		return err
	})
	return s, checks, err
}

// parseShell is the one thing that the host does for a script.
func (s *script) parseShell(call sobek.FunctionCall) sobek.Value {
	options := ""
	if o := call.Argument(1); !sobek.IsUndefined(o) {
		options = o.String()
	}
	view, err := shellview.Parse(call.Argument(0).String(), options)
	if err != nil {
		panic(s.vm.NewTypeError(line(err.Error(), maxFailure)))
	}
	return s.vm.ToValue(view)
}

// adopt takes the two things that a script's completion value must have.
func (s *script) adopt(value sobek.Value) (checks string, err error) {
	o, ok := value.(*sobek.Object)
	if !ok {
		return "", errShape
	}
	text, ok := o.Get("checks").(sobek.String)
	if !ok {
		return "", errShape
	}
	if n := text.Length(); n > maxChecksText {
		return "", fmt.Errorf("it says %d characters of its checks, the limit is %d", n, maxChecksText)
	}
	if s.ask, ok = sobek.AssertFunction(o.Get("ask")); !ok {
		return "", errShape
	}
	return text.String(), nil
}

// run asks the checks of these numbers about a call and returns the script's
// answer, unread.
func (s *script) run(ask string, checks []int, input string) (text string, err error) {
	s.fix(ask)
	numbers := make([]any, len(checks))
	for i, n := range checks {
		numbers[i] = n
	}
	err = s.guard(func() error {
		value, err := s.ask(sobek.Undefined(), s.vm.NewArray(numbers...), s.vm.ToValue(input))
		if err != nil {
			return err
		}
		text, err = s.settled(value)
		return err
	})
	return text, err
}

// settled is an answer, or what the promise of one came to. There is no time and
// nothing from outside in here: what has not settled once the script is at rest
// never will.
func (s *script) settled(value sobek.Value) (string, error) {
	o, ok := value.(*sobek.Object)
	if !ok {
		return answerText(value)
	}
	p, ok := o.Export().(*sobek.Promise)
	if !ok {
		return "", errNoText
	}
	switch p.State() {
	case sobek.PromiseStateFulfilled:
		return answerText(p.Result())
	case sobek.PromiseStateRejected:
		return "", errors.New(textOf(p.Result()))
	default:
		return "", errPending
	}
}

// answerText is the text of an answer, of a length that is worth reading.
func answerText(value sobek.Value) (string, error) {
	text, ok := value.(sobek.String)
	if !ok {
		return "", errNoText
	}
	if n := text.Length(); n > maxAnswer {
		return "", fmt.Errorf("%w: it has %d characters, the limit is %d", errAnswer, n, maxAnswer)
	}
	return text.String(), nil
}

// fix sets time and chance to those of an ask, so that every gate that asks
// about the same call hears the same answer. No ask: the start of time.
func (s *script) fix(ask string) {
	id, _ := ulid.ParseStrict(ask)
	s.now = ulid.Time(id.Time()).UTC()
	s.seed.Seed(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
}

// guard runs f, which may run the script's code, and makes every way in which
// that can end badly an error of one line.
func (s *script) guard(f func() error) (err error) {
	defer func() {
		// What a script throws out of a getter or a toString that Go calls
		// comes as a panic; it must not take the worker down with it.
		if p := recover(); p != nil {
			err = fmt.Errorf("it failed: %s", line(fmt.Sprint(p), maxFailure))
		}
	}()
	err = f()
	var overflow *sobek.StackOverflowError
	if errors.As(err, &overflow) {
		return errDeep
	}
	if err != nil {
		// What a script throws may be an empty text, and is an error nonetheless.
		return errors.New(cmp.Or(line(err.Error(), maxFailure), "it failed, and does not say why"))
	}
	return nil
}

// textOf is a thrown or rejected value as text.
func textOf(v sobek.Value) string {
	if v == nil {
		return "undefined"
	}
	return v.String()
}
