package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	slowToken = `[A-Za-z0-9_-]{1,64}`
	slowID    = `[0-7][0-9A-HJKMNP-TV-Z]{25}`
)

// slowSubject is the contract's table of subjects as one regular expression.
var slowSubject = regexp.MustCompile(strings.NewReplacer("T", slowToken, "U", slowID).Replace(
	`^assent\.v1\.T\.(?:(?:ask|cancel|project|relay|withdraw|confirm|link|terminal|event)\.T|(?:query|log|worker)\.T\.T|answer\.T\.U` +
		`|decision\.U\.T\.T\.(?:allow|deny)|review\.U(?:\.T){1,4})$`))

func FuzzParseSubject(f *testing.F) {
	subjects := subjectsOf(f, "main")
	for _, b := range builders() {
		for _, token := range append(goodTokens, "ci-42") {
			if s, err := b.build(subjects, token); err == nil {
				f.Add(s)
			}
		}
		f.Add(subjects.All(b.kind))
	}
	for _, token := range badTokens {
		f.Add("assent.v1.main.ask." + token)
		f.Add("assent.v1." + token + ".ask.ci-42")
		f.Add("assent.v1.main." + token + ".ci-42")
	}
	for _, s := range []string{"", "assent", "assent.v1", "assent.v1.main", "assent.v1.main.ask", "assent.v2.main.ask.a", "Assent.v1.main.ask.a", "assent.v1.main.ask.a.b",
		"assent.v1.main.ask.a\n", "assent.v1.main.review." + askID + ".a.b.c.d.e", "assent.v1.main.decision." + askID + ".a.b.defer",
		"assent.v1.main.answer.a." + strings.ToLower(askID)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSubject(s)
		if want := slowSubject.MatchString(s); (err == nil) != want {
			t.Fatalf("%q: %v, but the slow reading says %v", s, err, want)
		}
		if err != nil {
			refused(t, got, err, ErrSubject)
			return
		}
		if strings.ContainsAny(s, "*>") {
			t.Fatalf("%q is a pattern", s)
		}
		if back := strings.Join(append([]string{SubjectRoot, got.Node, string(got.Kind)}, got.Tokens...), "."); back != s {
			t.Fatalf("%q parses to %q", s, back)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, reply := range replyAttacks {
		f.Add("gate", reply)
	}
	for _, r := range Roles {
		f.Add(string(r), "_INBOX."+string(r)+".x.y")
	}
	f.Add("agent", "_R_.qLNcXb.4vTZmA")
	f.Add("\xff", "_INBOX.\xff.x.y")
	inbox := regexp.MustCompile(`^_INBOX\.(operator|agent|gate|judge|terminal|approver|auditor|child)\.` + slowToken + `(?:\.` + slowToken + `)+$`)
	border := regexp.MustCompile(`^_R_(?:\.` + slowToken + `)+$`)
	f.Fuzz(func(t *testing.T, role, reply string) {
		m := inbox.FindStringSubmatch(reply)
		if got, want := ReplyFrom(Role(role), reply), m != nil && m[1] == role; got != want {
			t.Errorf("ReplyFrom(%q, %q) = %v", role, reply, got)
		}
		if got, want := ReplyAcross(reply), border.MatchString(reply); got != want {
			t.Errorf("ReplyAcross(%q) = %v", reply, got)
		}
	})
}

func FuzzCheckAskID(f *testing.F) {
	for _, id := range []string{"", askID, strings.ToLower(askID), askID + "0", "80000000000000000000000000", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", askID[:25] + "U", NewAskID()} {
		f.Add(id)
	}
	slow := regexp.MustCompile(`^` + slowID + `$`)
	f.Fuzz(func(t *testing.T, id string) {
		if got, want := CheckAskID(id) == nil, slow.MatchString(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
		if AskTime(id).IsZero() != (CheckAskID(id) != nil) {
			t.Errorf("%q has the time %v", id, AskTime(id))
		}
	})
}

func FuzzPeekAskID(f *testing.F) {
	good := `"id":"` + askID + `"`
	for _, s := range []string{`{` + good + `}`, `{"a":{` + good + `}}`, `{` + good + `,` + good + `}`, `{` + good, `[{` + good + `}]`, `{"ID":"` + askID + `"}`,
		`{"id":null,` + good + `}`, `{` + good + `,"a":`, "{" + good + ",\"a\":\"\xff\"}", `{"a":1,"a":2,` + good + `}`, `{"id":["` + askID + `"]}`, nested("[", good, "]", 300)} {
		f.Add([]byte(s), "id")
	}
	f.Fuzz(func(t *testing.T, data []byte, field string) {
		id := PeekAskID(data, field)
		if id == "" {
			return
		}
		if err := CheckAskID(id); err != nil {
			t.Fatalf("peeked %v", err)
		}
		if !stdjson.Valid(data) || slowDuplicates(data) != nil || !utf8.Valid(data) {
			return
		}
		var top map[string]any
		if err := stdjson.Unmarshal(data, &top); err != nil || top[field] != id {
			t.Fatalf("peeked %q, the field is %v (%v)", id, top[field], err)
		}
	})
}

func FuzzCheckDepth(f *testing.F) {
	for _, s := range []string{`{}`, `[[[]]]`, `{"a":[{"b":"[[["}]}`, `"\"[["`, nested("[", "", "]", 5), `{"\\":[]}`, `"\\\"["`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		err := checkDepth(data, limit)
		if !jsontext.Value(data).IsValid() || limit < 0 {
			return
		}
		if got, want := err != nil, slowDepth(t, data) > limit; got != want {
			t.Errorf("%s with limit %d: %v", data, limit, err)
		}
	})
}

func slowDepth(t *testing.T, data []byte) int {
	depth, most := 0, 0
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return most
		}
		switch tok.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		most = max(most, depth)
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range safeSeeds {
		f.Add(s, 40, true)
		f.Add(s, 3, false)
	}
	f.Fuzz(func(t *testing.T, s string, limit int, lines bool) {
		limit %= 200
		got := Safe(s, limit, lines)
		if !utf8.ValidString(got) || len(got) > max(limit, 0) {
			t.Fatalf("Safe(%q, %d) = %q", s, limit, got)
		}
		for _, r := range got {
			if r != '\n' && hidden(r) || r == '\n' && !lines {
				t.Fatalf("Safe(%q, %d, %v) lets %U through", s, limit, lines, r)
			}
		}
		if again := Safe(got, limit, lines); again != got {
			t.Fatalf("made safe twice, %q becomes %q", got, again)
		}
		if kept, ok := strings.CutSuffix(got, "…"); ok && !strings.ContainsFunc(s, hidden) && !strings.HasPrefix(s, kept) {
			t.Fatalf("%q was cut to %q", s, got)
		}
		if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) && len(s) <= limit && got != s {
			t.Fatalf("harmless %q became %q", s, got)
		}
	})
}

// hidden says slowly, by name of its property, what may not be shown.
func hidden(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// FuzzDigest: two inputs have one digest if and only if they are one value, with
// numbers taken as they are spelled.
func FuzzDigest(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`}, {`{"a":1}`, ` { "a" : 1 } `}, {`{"a":"b"}`, `{"\u0061":"\u0062"}`}, {`{"a":"\/"}`, `{"a":"/"}`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`}, {`{"n":1}`, `{"n":1.0}`}, {`{"n":-0}`, `{"n":0}`}, {`{"n":1e2}`, `{"n":100}`},
		{`{"a":null}`, `{}`}, {`{"a":{"b":1}}`, `{"a":{},"b":1}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"a":"1"}`, `{"a":1}`}, {`{"a":"é"}`, `{"a":"e\u0301"}`},
		{`{"\ud83d\ude00":1,"\uffff":2}`, `{"\uffff":2,"\ud83d\ude00":1}`}, {`{"a":"\u2028<>&"}`, `{"a":"\u2028\u003c\u003e\u0026"}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		da, okA := inputDigest(t, a)
		db, okB := inputDigest(t, b)
		if !okA || !okB {
			return
		}
		if same := reflect.DeepEqual(slowValue(t, a), slowValue(t, b)); (da == db) != same {
			t.Fatalf("%s and %s: same digest %v, same value %v", a, b, da == db, same)
		}
	})
}

// inputDigest is the digest of an ask with this input; false if no reader would
// hand it out.
func inputDigest(t *testing.T, input []byte) (string, bool) {
	v := jsontext.Value(input)
	if v.Kind() != '{' || !v.IsValid() {
		return "", false
	}
	a := sampleAsk()
	a.Tool.Input = v
	d, err := a.Digest("main")
	if err != nil {
		t.Fatal(err)
	}
	if slow := slowDigest(t, a, "main"); d != slow {
		t.Fatalf("%s: digest %s, by the book %s", input, d, slow)
	}
	return d, true
}

// slowDigest brings all facts into the canonical form, whatever order they come in.
func slowDigest(t *testing.T, a Ask, node string) string {
	t.Helper()
	facts := map[string]any{
		"session": a.Session, "tool": a.Tool, "cwd": a.Cwd, "paths": a.Paths, "project": a.Project, "agent": a.Agent, "node": node,
	}
	if len(a.Hops) > 0 {
		facts["hops"] = a.Hops
	}
	if a.HumanOnly {
		facts["human_only"] = true
	}
	b, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(b)
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(v)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func slowValue(t *testing.T, data []byte) any {
	dec := stdjson.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
