package jsonwords_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/jsonwords"
)

type inner struct {
	Surface string `json:"surface"`
}

type document struct {
	Name    string           `json:"name"`
	Trusted *bool            `json:"trusted"`
	Count   int              `json:"count"`
	List    []inner          `json:"list"`
	Map     map[string]inner `json:"map"`
	Raw     jsontext.Value   `json:"raw"`
}

func TestWordsAreThoseOfTheAuthor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":5}`:                      `"name" is a number; expected a text`,
		`{"name":null,"trusted":"no"}`:    `"trusted" is a text; expected true or false`,
		`{"trusted":[]}`:                  `"trusted" is a list; expected true or false`,
		`{"count":"1"}`:                   `"count" is a text; expected a number`,
		`{"count":1.5}`:                   `"count" is a number that is out of range or not what is expected here`,
		`{"list":{}}`:                     `"list" is an object; expected a list`,
		`{"list":[{"surface":true}]}`:     `"list.0.surface" is true or false; expected a text`,
		`{"list":[{},{"surfac":"bash"}]}`: `unknown key "surfac" in "list.1"; did you mean "surface"?`,
		`{"nmae":"x"}`:                    `unknown key "nmae"; did you mean "name"?`,
		`{"unlike":"x"}`:                  `unknown key "unlike"`,
		`{"ra":"x"}`:                      `unknown key "ra"; did you mean "raw"?`,
		`[]`:                              `this is a list; expected an object`,
		`"x"`:                             `this is a text; expected an object`,
		`{"name":"x","name":"y"}`:         `the key "name" stands twice`,
		`{"name":`:                        `it ends too early; expected a closing '}', ']' or '"'`,
		``:                                `it ends too early; expected a closing '}', ']' or '"'`,
		"{\"name\":\"\xff\"}":             `this is not UTF-8`,
	} {
		var d document
		err := json.Unmarshal([]byte(text), &d, json.RejectUnknownMembers(true))
		if got := jsonwords.Of(err); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// TestNoTypeOfThisProgramIsNamed: whatever is wrong with a text.
func TestNoTypeOfThisProgramIsNamed(t *testing.T) {
	t.Parallel()
	values := []string{`null`, `true`, `1`, `1e999`, `"x"`, `[]`, `[1]`, `{}`, `{"a":1}`, `{"a":{"b":2}}`, `x`, `{`, `[`, `"`, `{"a"}`, `{"a":1,}`, `{"a":1}}`}
	for _, key := range []string{"name", "trusted", "count", "list", "map", "raw", "other"} {
		for _, v := range values {
			var d document
			err := json.Unmarshal([]byte(`{"`+key+`":`+v+`}`), &d, json.RejectUnknownMembers(true))
			if err == nil {
				continue
			}
			got := jsonwords.Of(err).Error()
			for _, leak := range []string{"Go ", "jsontext", "json:", "jsonwords", "unmarshal", "member"} {
				if strings.Contains(got, leak) {
					t.Errorf("%s: %s: %q says %q", key, v, got, leak)
				}
			}
		}
	}
}

func TestOtherErrorsStay(t *testing.T) {
	t.Parallel()
	other := errors.New("disk on fire")
	if got := jsonwords.Of(other); got != other {
		t.Errorf("got %v", got)
	}
	if jsonwords.Of(nil) != nil {
		t.Error("no error became one")
	}
}

func TestTheCauseIsWrapped(t *testing.T) {
	t.Parallel()
	var d document
	err := jsonwords.Of(json.Unmarshal([]byte(`{"x":1}`), &d, json.RejectUnknownMembers(true)))
	if !errors.Is(err, json.ErrUnknownName) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	text := []byte("{\n  \"name\": 5,\n}")
	_, err := hujson.Parse([]byte("{\n  \"name\" 5\n}"))
	if got := jsonwords.Offset([]byte("{\n  \"name\" 5\n}"), err); got != 11 {
		t.Errorf("hujson: %d, %v", got, err)
	}
	if said := jsonwords.Of(err).Error(); strings.Contains(said, "hujson") || strings.Contains(said, "line 2") {
		t.Errorf("hujson's words are %q", said)
	}
	var d document
	err = json.Unmarshal([]byte(`{"count":1,"name": 5}`), &d)
	if got := jsonwords.Offset(text, err); got < 12 || got > len(text) {
		t.Errorf("semantic: %d, %v", got, err)
	}
}
