package protocol

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func digestOf(t *testing.T, a Ask, node string) string {
	t.Helper()
	d, err := a.Digest(node)
	if err != nil {
		t.Fatal(err)
	}
	if rest, ok := strings.CutPrefix(d, "sha256:"); !ok || len(rest) != 64 {
		t.Fatalf("digest %q", d)
	}
	return d
}

// TestDigestOfOneCall: what does not change the call does not change its digest.
func TestDigestOfOneCall(t *testing.T) {
	want := digestOf(t, sampleAsk(), "main")
	for name, change := range map[string]func(*Ask){
		"again":                          func(*Ask) {},
		"blanks in the input":            func(a *Ask) { a.Tool.Input = jsontext.Value("\n{ \"command\" :\t\"git push origin main\" }\n") },
		"escapes in the input":           func(a *Ask) { a.Tool.Input = jsontext.Value(`{"\u0063ommand":"git\u0020push origin main"}`) },
		"an intent":                      func(a *Ask) { a.Intent = "something else" },
		"a wait":                         func(a *Ask) { a.MaxWaitMS = 5 },
		"the version left to the writer": func(a *Ask) { a.V = 0 },
	} {
		a := sampleAsk()
		change(&a)
		if got := digestOf(t, a, "main"); got != want {
			t.Errorf("%s: another digest", name)
		}
	}
	two, swapped := sampleAsk(), sampleAsk()
	two.Tool.Input = jsontext.Value(`{"a":{"x":1,"y":[1,2]},"b":2}`)
	swapped.Tool.Input = jsontext.Value(`{"b":2,"a":{"y":[1,2],"x":1}}`)
	if digestOf(t, two, "main") != digestOf(t, swapped, "main") {
		t.Error("the order of keys changes the digest")
	}
	none, empty := sampleAsk(), sampleAsk()
	none.Paths, empty.Paths = nil, []Path{}
	if digestOf(t, none, "main") != digestOf(t, empty, "main") {
		t.Error("no paths and an empty list of paths differ")
	}
	b, err := Write(sampleAsk())
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read[Ask](b)
	if err != nil {
		t.Fatal(err)
	}
	if digestOf(t, read, "main") != want {
		t.Error("the way over the wire changes the digest")
	}
}

// TestDigestOfEachFact: each fact of the contract changes it, each in its own way.
func TestDigestOfEachFact(t *testing.T) {
	seen := map[string]string{digestOf(t, sampleAsk(), "main"): "the sample", digestOf(t, sampleAsk(), "main2"): "the node"}
	input := func(s string) func(*Ask) { return func(a *Ask) { a.Tool.Input = jsontext.Value(s) } }
	for name, change := range map[string]func(*Ask){
		"agent":            func(a *Ask) { a.Agent = "ci-43" },
		"session id":       func(a *Ask) { a.Session.ID = "s3" },
		"session parent":   func(a *Ask) { a.Session.Parent = "s3" },
		"session root":     func(a *Ask) { a.Session.Root = "s3" },
		"no session root":  func(a *Ask) { a.Session.Root = "" },
		"interactive":      func(a *Ask) { a.Session.Interactive = true },
		"tool":             func(a *Ask) { a.Tool.Name = "sh" },
		"call id":          func(a *Ask) { a.Tool.CallID = "t2" },
		"cwd":              func(a *Ask) { a.Cwd = "/repo/" },
		"path as typed":    func(a *Ask) { a.Paths = []Path{{Raw: "../Shared", Resolved: "/srv/shared"}} },
		"path as resolved": func(a *Ask) { a.Paths = []Path{{Raw: "../shared", Resolved: "/srv/other"}} },
		"path twice":       func(a *Ask) { a.Paths = append(a.Paths, a.Paths[0]) },
		"paths turned":     func(a *Ask) { a.Paths = []Path{{Raw: "/srv/shared", Resolved: "../shared"}} },
		"no paths":         func(a *Ask) { a.Paths = nil },
		"project id":       func(a *Ask) { a.Project.ID = "github.com/acme/shop2" },
		"project root":     func(a *Ask) { a.Project.Root = "/repo2" },
		"project digest":   func(a *Ask) { a.Project.Digest = "sha256:5f2b" },
		"facts moved":      func(a *Ask) { a.Cwd, a.Project.Root = "/repo/repo", "" },
		"input":            input(`{"command":"git push origin dev"}`),
		"input, a key":     input(`{"Command":"git push origin main"}`),
		"input, one more":  input(`{"command":"git push origin main","force":false}`),
		"input, null":      input(`{"command":null}`),
		"input, empty":     input(`{}`),
		"2^53":             input(`{"n":9007199254740992}`),
		"2^53 and one":     input(`{"n":9007199254740993}`),
		"2^53 as text":     input(`{"n":"9007199254740992"}`),
		"beyond floats":    input(`{"n":1e999}`),
		"further beyond":   input(`{"n":1e998}`),
		"a long fraction":  input(`{"n":0.10000000000000000001}`),
		"a short fraction": input(`{"n":0.1}`),
		"relayed":          func(a *Ask) { a.Hops = []string{"child1"} },
		"another child":    func(a *Ask) { a.Hops = []string{"child2"} },
		"from further":     func(a *Ask) { a.Hops = []string{"child2", "child1"} },
		"for a person":     func(a *Ask) { a.HumanOnly = true },
		"a list":           input(`{"n":[1,2]}`),
		"a list turned":    input(`{"n":[2,1]}`),
		"a list nested":    input(`{"n":[[1],2]}`),
	} {
		a := sampleAsk()
		change(&a)
		d := digestOf(t, a, "main")
		if slow := slowDigest(t, a, "main"); d != slow {
			t.Errorf("%s: digest %s, by the book %s", name, d, slow)
		}
		if before, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, before)
		}
		seen[d] = name
	}
}

// TestDigestOfABrokenInput: a call that cannot be told apart has no digest.
func TestDigestOfABrokenInput(t *testing.T) {
	for _, input := range []string{"", "{", `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", "{} {}"} {
		a := sampleAsk()
		a.Tool.Input = jsontext.Value(input)
		d, err := a.Digest("main")
		if input == "" {
			if d == digestOf(t, sampleAsk(), "main") {
				t.Error("no input has the digest of one")
			}
			continue
		}
		if err == nil || d != "" {
			t.Errorf("%q: %q, %v", input, d, err)
		}
	}
}
