package protocol

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestShortenKeepsEveryFieldAndCutsWhatIsLong(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, row := range map[string]struct{ in, begins, ends string }{
		"a short call is kept as it is":     {`{"command":"rm -rf /", "n": 9007199254740993}`, `{"command":"rm -rf /", "n": 9007199254740993}`, ""},
		"a long string is cut":              {`{"file_path":"/repo/a","content":"` + long + `"}`, `{"file_path":"/repo/a","content":"xxxx`, `…"}`},
		"numbers keep their spelling":       {`{"n":9007199254740993,"c":"` + long + `"}`, `{"n":9007199254740993,`, `…"}`},
		"nested strings are cut too":        {`{"edits":[{"new":"` + long + `"}]}`, `{"edits":[{"new":"xxxx`, `…"}]}`},
		"far too many strings are left out": {`{"a":["` + strings.Repeat(long[:1000]+`","`, 40) + `"]}`, "", ""},
		"a call without an input has none":  {"", "", ""},
		"what is no JSON is left out":       {`{"a":"` + long, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(Shorten(jsontext.Value(row.in), 1<<10, 16<<10))
			if !strings.HasPrefix(got, row.begins) || !strings.HasSuffix(got, row.ends) || row.begins == "" && got != "" {
				t.Errorf("got %.80s … (%d bytes)", got, len(got))
			}
			if len(got) > 16<<10 {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
}
