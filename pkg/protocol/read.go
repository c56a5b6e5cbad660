package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CurrentVersion is the only message version that this package speaks.
const CurrentVersion = 1

// Size limits of a message, in bytes, unless a reader sets another.
const (
	// DefaultMaxBytes holds for what agents, judges and approvers send.
	DefaultMaxBytes = 256 << 10
	// CarrierMaxBytes holds for what a service writes around such a message
	// (LinkRequest, TerminalRequest, TerminalVerdict, Pending, Decision,
	// ReviewRecord). It leaves room for headers below NATS' default payload of
	// 1 MiB.
	CarrierMaxBytes = 1<<20 - 16<<10
)

// maxDepth bounds the nesting of a message, so that a hostile one cannot make a
// later reader recurse without end. A carrier nests deeper: an ask at the limit
// must not make a pending entry that nobody can read any more.
const (
	maxDepth        = 200
	carrierMaxDepth = maxDepth + 8
)

// Version is the "v" of every message. Its zero value is written as
// CurrentVersion and is never the result of reading one.
type Version uint8

// MarshalJSON writes CurrentVersion.
func (Version) MarshalJSON() ([]byte, error) { return []byte(strconv.Itoa(CurrentVersion)), nil }

// UnmarshalJSON refuses every version but CurrentVersion.
func (v *Version) UnmarshalJSON(b []byte) error {
	if string(b) != strconv.Itoa(CurrentVersion) {
		return fmt.Errorf("%w: %s, want %d", ErrVersion, clip(string(b), 20), CurrentVersion)
	}
	*v = CurrentVersion
	return nil
}

// Message is what Read and Write work on: a pointer to a message whose content
// can be checked beyond its JSON form.
type Message[M any] interface {
	*M
	version() Version
	check() error
}

// carrier is a message that holds another one, or what came in one.
type carrier interface{ carries() }

// tidier is a message with values that have two forms on the wire and one in Go.
type tidier interface{ tidy() }

// everyVersion is CurrentVersion if all of vs are, else zero: a message within a
// message states its version too.
func everyVersion(vs ...Version) Version {
	for _, v := range vs {
		if v != CurrentVersion {
			return 0
		}
	}
	return CurrentVersion
}

// ReadOption changes how Read reads and Write writes.
type ReadOption func(*limits)

type limits struct{ bytes, depth int }

// MaxBytes sets the size limit in bytes; without it DefaultMaxBytes, or
// CarrierMaxBytes for a message that carries another.
func MaxBytes(n int) ReadOption { return func(l *limits) { l.bytes = n } }

func limitsOf(m any, opts []ReadOption) limits {
	l := limits{bytes: DefaultMaxBytes, depth: maxDepth}
	if _, ok := m.(carrier); ok {
		l = limits{bytes: CarrierMaxBytes, depth: carrierMaxDepth}
	}
	for _, o := range opts {
		o(&l)
	}
	return l
}

func (l limits) check(data []byte) error {
	if len(data) > l.bytes {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), l.bytes)
	}
	return checkDepth(data, l.depth)
}

// Read reads one message strictly: within the size limit, valid UTF-8, no
// duplicate key, keys in the contract's case, known version, known words, all
// required fields. Unknown fields are ignored. Its errors may be shown to the
// sender and wrap one sentinel of this package.
func Read[M any, P Message[M]](data []byte, opts ...ReadOption) (M, error) {
	var m, zero M
	p := P(&m)
	if err := limitsOf(p, opts).check(data); err != nil {
		return zero, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return zero, readError(data, err)
	}
	if t, ok := any(p).(tidier); ok {
		t.tidy()
	}
	if p.version() != CurrentVersion {
		return zero, fmt.Errorf(`%w: "v" is missing, want %d`, ErrVersion, CurrentVersion)
	}
	if err := p.check(); err != nil {
		return zero, err
	}
	return m, nil
}

// Write encodes a message after the checks that Read would make, so that
// nothing leaves a process which its reader must refuse. The limits are Read's.
func Write[M any, P Message[M]](m M, opts ...ReadOption) ([]byte, error) {
	p := P(&m)
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("writing %T: %w", m, err)
	}
	b, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing %T: %w", m, err)
	}
	if err := limitsOf(p, opts).check(b); err != nil {
		return nil, fmt.Errorf("writing %T: %w", m, err)
	}
	return b, nil
}

// readError names the version first when that is what is wrong: a message of a
// later version may differ in any other way too.
func readError(data []byte, err error) error {
	var head struct {
		V jsontext.Value `json:"v"`
	}
	if json.Unmarshal(data, &head) == nil && len(head.V) > 0 && string(head.V) != strconv.Itoa(CurrentVersion) {
		return fmt.Errorf("%w: %s, want %d", ErrVersion, clip(string(head.V), 20), CurrentVersion)
	}
	var sem *json.SemanticError
	if !errors.As(err, &sem) {
		return fmt.Errorf("%w: %s", ErrMalformed, Safe(strings.TrimPrefix(err.Error(), "jsontext: "), 300, false))
	}
	at := clip(string(sem.JSONPointer), 120)
	for _, known := range []error{ErrVersion, ErrEnum} {
		if errors.Is(sem.Err, known) {
			return fmt.Errorf("%w (at %q)", sem.Err, at)
		}
	}
	return fmt.Errorf("%w: a %s does not fit at %q", ErrMalformed, sem.JSONKind, at)
}

// checkDepth counts brackets outside strings, in one pass and without a stack.
func checkDepth(data []byte, limit int) error {
	depth, inString, escaped := 0, false, false
	for _, c := range data {
		switch {
		case inString && escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return fmt.Errorf("%w: nested deeper than %d", ErrMalformed, limit)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// PeekAskID returns the ask id of a message that could not be read, so that the
// refusal can name it; "" if there is none or more than one. field is the key
// that holds it: "id" in an Ask, "ask" elsewhere.
func PeekAskID(data []byte, field string) string {
	if (limits{bytes: 4 * DefaultMaxBytes, depth: maxDepth}).check(data) != nil {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return ""
	}
	found := ""
	for {
		key, err := dec.ReadToken()
		if err != nil || key.Kind() != '"' {
			return found
		}
		isID := key.String() == field
		val, err := dec.ReadValue()
		if err != nil {
			return found
		}
		if !isID {
			continue
		}
		var id string
		if json.Unmarshal(val, &id) != nil || CheckAskID(id) != nil || found != "" {
			return ""
		}
		found = id
	}
}
