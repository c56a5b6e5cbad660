package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var safeSeeds = []string{"", "plain", "two\nlines", "tab\tand\r\nreturn", "\x1b[2J\x1b[31mred", "bell\a", "\u202Egnirts\u202C", "a\u200Db\uFEFF", "\u2066x\u2069",
	"soft\u00ADhyphen", "\u2028\u2029", "v\ufe0f\U000E0100", "tag\U000E0041", "filler\u3164\u115f", "bad\xffbytes\xc3", "\u0085next line", "emoji 😀 and é", "…", "·", "ends with four 😀😀😀😀😀😀😀😀😀😀"}

func TestSafe(t *testing.T) {
	for _, row := range []struct {
		name, in string
		limit    int
		lines    bool
		want     string
	}{
		{"plain text stays", "Use pnpm instead.", 100, false, "Use pnpm instead."},
		{"other scripts stay", "не сейчас – 禁止 😀", 100, false, "не сейчас – 禁止 😀"},
		{"quotes and brackets stay", `"a" 'b' <c> {d}`, 100, false, `"a" 'b' <c> {d}`},
		{"combining marks stay", "e\u0301", 100, false, "e\u0301"},
		{"exactly as long as allowed", "abc", 3, false, "abc"},
		{"line breaks stay where they may", "a\nb", 100, true, "a\nb"},
		{"line breaks become blanks elsewhere", "a\nb", 100, false, "a b"},
		{"carriage returns never stay", "a\r\nb", 100, true, "a \nb"},
		{"a screen cannot be cleared", "\x1b[2Jx", 100, false, "·[2Jx"},
		{"an eight-bit escape", "\u009b2J", 100, false, "·2J"},
		{"text cannot be turned around", "\u202Ecod.exe", 100, false, "·cod.exe"},
		{"an isolate cannot", "\u2066a\u2069", 100, false, "·a·"},
		{"a joiner shows", "a\u200Db", 100, false, "a·b"},
		{"a byte order mark shows", "\uFEFFa", 100, false, "·a"},
		{"separators show", "a\u2028b\u2029c", 100, true, "a·b·c"},
		{"tag characters show", "a\U000E0041\U000E007F", 100, false, "a··"},
		{"variation selectors show", "a\ufe00\U000E01EF", 100, false, "a··"},
		{"fillers show", "a\u3164\u115f\u2065", 100, false, "a···"},
		{"bytes that are no text show", "a\xffb\xc3", 100, false, "a·b·"},
		{"a NUL shows", "a\x00b", 100, false, "a·b"},
		{"cut so that the mark of the cut fits", "abcdef", 5, false, "ab…"},
		{"cut before a character that does not fit", "a😀bcd", 7, false, "a…"},
		{"a character that just fits", "ab😀", 6, false, "ab😀"},
		{"characters that grow by being shown", "\x00\x00\x00", 6, false, "···"},
		{"one too many that grow by being shown", "\x00\x00\x00\x00", 6, false, "·…"},
		{"no more than the mark of the cut", "abcd", 3, false, "…"},
		{"not even the mark of the cut", "abc", 2, false, ""},
		{"nothing allowed", "a", 0, false, ""},
		{"less than nothing allowed", "a", -1, false, ""},
		{"nothing of nothing", "", 0, false, ""},
	} {
		if got := Safe(row.in, row.limit, row.lines); got != row.want {
			t.Errorf("%s: Safe(%q, %d, %v) = %q, want %q", row.name, row.in, row.limit, row.lines, got, row.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, row := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé", 2, "a…"}, {"aé", 3, "aé"}, {"😀😀", 5, "😀…"}, {"😀", 2, "…"}, {"\xff", 3, "\uFFFD"}, {"\x80\x80\x80", 1, "…"}, {"", 0, ""},
	} {
		if got := clip(row.in, row.n); got != row.want || !utf8.ValidString(got) {
			t.Errorf("clip(%q, %d) = %q, want %q", row.in, row.n, got, row.want)
		}
	}
}

func TestPeekAskID(t *testing.T) {
	good := `"id":"` + askID + `"`
	for _, row := range []struct{ name, text, want string }{
		{"a whole message", `{"v":1,` + good + `}`, askID},
		{"the id last", `{"a":[1,{"b":2}],` + good + `}`, askID},
		{"a duplicate of another field", `{"a":1,"a":2,` + good + `}`, askID},
		{"invalid UTF-8 elsewhere", "{\"a\":\"\xff\"," + good + "}", askID},
		{"cut short after the id", `{` + good + `,"tool":{"na`, askID},
		{"a wrong type elsewhere", `{"v":"x",` + good + `,"agent":7}`, askID},
		{"an id in another case beside it", `{"ID":"x",` + good + `}`, askID},
		{"another id within an object", `{"a":{"id":"` + otherID + `"},` + good + `}`, askID},
		{"an id spelled with an escape", `{"\u0069d":"` + askID + `"}`, askID},

		{"no id", `{"v":1}`, ""},
		{"an id in another case of its name", `{"ID":"` + askID + `"}`, ""},
		{"the id twice", `{` + good + `,` + good + `}`, ""},
		{"two ids", `{` + good + `,"id":"` + otherID + `"}`, ""},
		{"a bad id, then a good one", `{"id":"x",` + good + `}`, ""},
		{"a good id, then a bad one", `{` + good + `,"id":7}`, ""},
		{"an id in lower case", `{"id":"` + strings.ToLower(askID) + `"}`, ""},
		{"an id within an object alone", `{"a":{` + good + `}}`, ""},
		{"an id in a list", `[{` + good + `}]`, ""},
		{"cut short before the id", `{"a":`, ""},
		{"cut short within the id", `{"id":"` + askID, ""},
		{"an id of no text", `{"id":7}`, ""},
		{"nothing", ``, ""},
		{"too deep", `{"a":` + nested("[", "", "]", 10_000) + `,` + good + `}`, ""},
		{"too large", `{` + good + `,"a":"` + strings.Repeat("x", 4*DefaultMaxBytes) + `"}`, ""},
	} {
		if got := PeekAskID([]byte(row.text), "id"); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if got := PeekAskID([]byte(`{"ask":"`+askID+`","id":"`+otherID+`"}`), "ask"); got != askID {
		t.Errorf("by another field: %q", got)
	}
}
