package protocol

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var (
	linkWords = []string{"allow", "deny", "defer"}
	endWords  = []string{"allow", "deny"}
	kindWords = []string{"human", "parent", "deny"}
	// The scopes of a grant.
	scopeWords = []string{"session", "tree", "agent", "project"}
)

func FuzzAsk(f *testing.F)           { fuzzMessage(f, "ask", nil) }
func FuzzCancel(f *testing.F)        { fuzzMessage(f, "cancel", nil) }
func FuzzProjectUpload(f *testing.F) { fuzzMessage(f, "project_upload", nil) }
func FuzzProjectUploadModules(f *testing.F) {
	fuzzMessage(f, "project_upload_modules", nil)
}
func FuzzProjectReceipt(f *testing.F) { fuzzMessage(f, "project_receipt", nil) }
func FuzzCancelReceipt(f *testing.F)  { fuzzMessage(f, "cancel_receipt", nil) }
func FuzzProgress(f *testing.F)       { fuzzMessage(f, "progress", words{"status": {"pending"}}) }
func FuzzVerdict(f *testing.F)        { fuzzMessage(f, "verdict", words{"verdict": linkWords}) }
func FuzzLinkRequest(f *testing.F)    { fuzzMessage(f, "link_request", nil) }
func FuzzQuery(f *testing.F)          { fuzzMessage(f, "query", nil) }
func FuzzCheck(f *testing.F)          { fuzzMessage(f, "check", words{"state": {"allow", "ask", "deny"}}) }
func FuzzLogRecord(f *testing.F)      { fuzzMessage(f, "log_record", words{"level": {"review", "debug"}}) }
func FuzzLogReceipt(f *testing.F)     { fuzzMessage(f, "log_receipt", nil) }
func FuzzTerminalRequest(f *testing.F) {
	fuzzMessage(f, "terminal_request", words{"kind": kindWords})
}
func FuzzTerminalVerdict(f *testing.F) {
	fuzzMessage(f, "terminal_verdict", words{"verdict": endWords})
}
func FuzzAnswer(f *testing.F)        { fuzzMessage(f, "answer", words{"verdict": endWords}) }
func FuzzAnswerReceipt(f *testing.F) { fuzzMessage(f, "answer_receipt", nil) }
func FuzzDecision(f *testing.F)      { fuzzMessage(f, "decision", words{"result": endWords}) }
func FuzzReviewRecord(f *testing.F)  { fuzzMessage(f, "review_record", nil) }
func FuzzNotice(f *testing.F)        { fuzzMessage(f, "notice", nil) }
func FuzzErrorReply(f *testing.F)    { fuzzMessage(f, "error_reply", nil) }
func FuzzPending(f *testing.F)       { fuzzMessage(f, "pending", words{"role": kindWords}) }
func FuzzParentSign(f *testing.F)    { fuzzMessage(f, "parent_sign", nil) }
func FuzzStoredGrant(f *testing.F)   { fuzzMessage(f, "stored_grant", words{"scope": scopeWords}) }
func FuzzFreeze(f *testing.F)        { fuzzMessage(f, "freeze", nil) }
func FuzzConfirm(f *testing.F)       { fuzzMessage(f, "confirm", nil) }
func FuzzConfirmed(f *testing.F)     { fuzzMessage(f, "confirmed", nil) }

// words are the words that top-level fields of an accepted message may hold.
type words map[string][]string

// fuzzMessage holds Read to its promises on any bytes. The oracle is
// encoding/json, which shares no code with the reader.
func fuzzMessage(f *testing.F, name string, known words) {
	s := sampleNamed(f, name)
	for _, seed := range seeds(f, s) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, again, err := s.read(data)
		if unwritten := (notWritten{}); errors.As(err, &unwritten) {
			if !errors.Is(err, ErrTooLarge) || len(data) < s.limit-1024 {
				t.Fatalf("read, but cannot be written: %v", err)
			}
			return
		}
		if err != nil {
			refused(t, m, err, sentinelOf(err))
			return
		}
		if err := slowCheck(data, known); err != nil {
			t.Fatalf("read, though %v", err)
		}
		back, third, err := s.read(again)
		if err != nil {
			t.Fatalf("written, but does not read: %v\n%s", err, again)
		}
		if d := cmp.Diff(m, back, alike); d != "" {
			t.Fatalf("changed on the way (-read +read again):\n%s", d)
		}
		if !bytes.Equal(again, third) {
			t.Fatalf("written twice, two texts:\n%s\n%s", again, third)
		}
	})
}

func sentinelOf(err error) error {
	for _, s := range []error{ErrTooLarge, ErrMalformed, ErrVersion, ErrEnum, ErrField, ErrMismatch, ErrToken, ErrAskID, ErrSubject} {
		if errors.Is(err, s) {
			return s
		}
	}
	return errors.New("a sentinel of this package")
}

func seeds(f *testing.F, s sample) [][]byte {
	b, err := s.write()
	if err != nil {
		f.Fatal(err)
	}
	all := [][]byte{b, nil, []byte("null"), insert(b, `"v":1`), insert(b, `"V":2`), insert(b, `"Verdict":"allow"`), append(slices.Clone(b), b...)}
	for _, c := range contractSamples {
		if c.message == s.name {
			all = append(all, []byte(c.text))
		}
	}
	for _, row := range append(fieldRows()[s.name], idRowsOf(s.name)...) {
		if text := edit(f, b, row.changes...); len(text) < 2000 {
			all = append(all, text)
		}
	}
	return all
}

// slowCheck says what is wrong with a message that a strict reader accepted.
func slowCheck(data []byte, known words) error {
	if !utf8.Valid(data) {
		return errors.New("it is no valid UTF-8")
	}
	if err := slowDuplicates(data); err != nil {
		return err
	}
	var top map[string]any
	dec := stdjson.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&top); err != nil {
		return err
	}
	if top["v"] != stdjson.Number("1") {
		return fmt.Errorf("its version is %v", top["v"])
	}
	for field, words := range known {
		if word, ok := top[field].(string); !ok || !slices.Contains(words, word) {
			return fmt.Errorf("its %s is %v", field, top[field])
		}
	}
	return nil
}

// slowDuplicates walks one JSON value token by token with a stack of the names
// seen in each object.
func slowDuplicates(data []byte) error {
	type level struct {
		names map[string]bool // nil in a list
		name  bool            // a name comes next
	}
	var stack []level
	dec := stdjson.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		top := len(stack) - 1
		if s, ok := tok.(string); ok && top >= 0 && stack[top].name {
			if stack[top].names[s] {
				return fmt.Errorf("the name %q stands twice", s)
			}
			stack[top].names[s], stack[top].name = true, false
			continue
		}
		switch tok {
		case stdjson.Delim('{'):
			stack = append(stack, level{map[string]bool{}, true})
			continue
		case stdjson.Delim('['):
			stack = append(stack, level{})
			continue
		case stdjson.Delim('}'), stdjson.Delim(']'):
			stack = stack[:top]
		}
		if n := len(stack) - 1; n >= 0 && stack[n].names != nil {
			stack[n].name = true
		}
	}
}

func TestSlowDuplicates(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"a":1,"b":1}`: false, `{"a":{"a":1}}`: false, `[{"a":1},{"a":1}]`: false, `{"a":["a","a"],"b":"a"}`: false, `{"a":"a","A":1}`: false,
		`{"a":1,"a":1}`: true, `{"b":{"a":1,"a":1}}`: true, `[[{"a":[],"a":{}}]]`: true, `{"a":1,"\u0061":1}`: true, `{"a":{},"b":[],"a":1}`: true, `{"":1,"":1}`: true,
	} {
		if got := slowDuplicates([]byte(text)) != nil; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestEveryMessageHasAFuzzTarget finds the targets in the source.
func TestEveryMessageHasAFuzzTarget(t *testing.T) {
	targets := map[string]bool{}
	for _, f := range parseFiles(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				targets[fn.Name.Name] = true
			}
		}
	}
	for _, s := range samples() {
		if name := "Fuzz" + reflect.TypeOf(s.value).Name(); !targets[name] {
			t.Errorf("no %s", name)
		}
	}
}
