package policy

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
)

// FuzzPlainArguments: what is read without the strict reader is what that reads.
func FuzzPlainArguments(f *testing.F) {
	for _, s := range []string{
		`{"command":"git status"}`, ` { "a" : "b" , "c":"" } `, `{"a":"b","a":"c"}`, `{"a":"b",}`, `{"a":"b"}x`, `{"a":"b"}{}`, `{"a":1}`, `{"a":"\n"}`, `{"é":"x"}`,
		`{"a":"é"}`, `{}`, `{ }`, `["a"]`, `{"a"}`, `{"a":}`, `{"a":"b"`, `{"a":"b","A":"c"}`, "{\"a\":\"\x7f\"}", "{\"a\":\"\t\"}", `{"":""}`, "\ufeff{}", "{\"a\":\"b\"}\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		got, ok := plainArguments(input)
		if !ok {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(input, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: read as %v, strictly as %v, %v", input, got, want, err)
		}
	})
}

func TestPlainInputsNeedNoStrictReader(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]bool{
		`{"command":"git status"}`: true, " {\n\"a\" : \"b\",\t\"c\":\"\" } ": true,
		`{"a":"b","a":"c"}`: false, `{"a":"b",}`: false, `{"a":"b"}x`: false, `{"a":1}`: false, `{"a":"\n"}`: false, `{"a":"é"}`: false, `{}`: false, `"a"`: false,
	} {
		if _, got := plainArguments([]byte(input)); got != want {
			t.Errorf("%s is plain: %v; want %v", input, got, want)
		}
	}
}
