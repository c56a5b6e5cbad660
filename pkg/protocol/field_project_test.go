package protocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// uploadOf are the changes that make an upload of another policy.
func uploadOf(policy string) []string {
	return []string{"digest=" + inQuotes(ProjectDigest(policy)), "policy=" + inQuotes(policy)}
}

func inQuotes(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func projectUploadRows() []fieldRow {
	right := ProjectDigest(sampleProjectPolicy)
	return []fieldRow{
		no(ErrMismatch, "another policy under the digest", `policy="{}"`),
		no(ErrMismatch, "no policy under the digest", "policy="),
		no(ErrMismatch, "another digest", "digest="+inQuotes(ProjectDigest("{}"))),
		no(ErrField, "no digest", "digest="),
		no(ErrField, "a digest in upper case", "digest="+inQuotes("sha256:"+strings.ToUpper(right[7:]))),
		no(ErrField, "a digest cut short", "digest="+inQuotes(right[:70])),
		no(ErrField, "a digest that is too long", "digest="+inQuotes(right+"0")),
		no(ErrField, "a digest of another kind", "digest="+inQuotes("sha512:"+right[7:])),
		no(ErrField, "a digest that would be a subject", "digest="+inQuotes("sha256:"+strings.Repeat("*.", 32))),
		no(ErrField, "a project with a NUL", `project="a\u0000b"`),
		no(ErrMalformed, "a policy that is no text", `policy={"permission":{}}`),
		no(ErrTooLarge, "one byte too much", uploadOf(strings.Repeat("x", MaxProjectPolicy+1))...),

		yes("no project", "project="),
		yes("a project by its folder", `project="/srv/shop"`),
		yes("a project of many parts", `project="gitlab.example/a/b/c"`),
		yes("an empty policy", uploadOf("")...),
		yes("the smallest policy", uploadOf("{}")...),
		yes("a policy that does not read", uploadOf("{")...),
		yes("a policy with quotes", uploadOf(`{"permission":{"*":"deny"}}`)...),
		yes("a policy with other letters", uploadOf("{} // größer")...),
		yes("a policy of blanks", uploadOf("    ")...),
		yes("the largest policy", uploadOf(strings.Repeat("x", MaxProjectPolicy))...),
		yes("a field of a later version", `layers=["a"]`),
		yes("a digest in another case of its name beside it", `Digest="x"`),
	}
}

// modulesOf are the changes that make an upload of other modules under their own
// digest.
func modulesOf(modules ...ProjectModule) []string {
	b, err := json.Marshal(modules)
	if err != nil {
		panic(err)
	}
	return []string{"digest=" + inQuotes(ProjectDigest(sampleProjectPolicy, modules...)), "modules=" + string(b)}
}

// manyModules are n modules of size bytes each.
func manyModules(n, size int) (out []ProjectModule) {
	for i := range n {
		out = append(out, ProjectModule{Name: fmt.Sprintf("m%d", i), Code: strings.Repeat("x", size)})
	}
	return out
}

func projectModulesRows() []fieldRow {
	a := ProjectModule{Name: "a", Code: "x"}
	named := func(name string) []string { return modulesOf(ProjectModule{Name: name, Code: "x"}) }
	return []fieldRow{
		no(ErrMismatch, "the modules of another digest", `modules=[{"name":"a","code":"x","error":""}]`),
		no(ErrMismatch, "no modules under the digest", "modules="),
		no(ErrMismatch, "the digest of the policy alone", "digest="+inQuotes(ProjectDigest(sampleProjectPolicy))),
		no(ErrMismatch, "the modules in another order", "modules="+string(must(json.Marshal([]ProjectModule{sampleModules()[1], sampleModules()[0]})))),
		no(ErrField, "neither code nor error", modulesOf(ProjectModule{Name: "a"})...),
		no(ErrField, "code and error", modulesOf(ProjectModule{Name: "a", Code: "x", Error: "y"})...),
		no(ErrField, "a name twice", modulesOf(a, a)...),
		no(ErrField, "a name that is a path", named("../a")...),
		no(ErrField, "a name with a blank", named("a b")...),
		no(ErrField, "a name of 65 letters", named(strings.Repeat("a", 65))...),
		no(ErrField, "no name", modulesOf(ProjectModule{Error: "x"})...),
		no(ErrField, "an error that is too long", modulesOf(ProjectModule{Name: "a", Error: strings.Repeat("x", MaxReason+1)})...),
		no(ErrTooLarge, "a module too many", modulesOf(manyModules(MaxProjectModules+1, 1)...)...),
		no(ErrTooLarge, "a byte too much in all", modulesOf(manyModules(2, MaxProjectCode/2+1)...)...),
		no(ErrMalformed, "modules that are no list", `modules={"a":"x"}`),

		yes("one module", modulesOf(a)...),
		yes("a name of 64 letters", named(strings.Repeat("a", 64))...),
		yes("a name with dots and dashes", named("A.b-c_9")...),
		yes("one that begins with a digit", named("9lives")...),
		yes("one that does not load, of any name", modulesOf(ProjectModule{Name: "my check", Error: "no name of a module"})...),
		yes("that of one that loads and one that does not", modulesOf(a, ProjectModule{Name: "a", Error: "twice"})...),
		yes("names that differ in case", modulesOf(a, ProjectModule{Name: "A", Code: "x"})...),
		yes("the same code twice", modulesOf(a, ProjectModule{Name: "b", Code: "x"})...),
		yes("none that loads", modulesOf(ProjectModule{Name: "a", Error: "x"})...),
		yes("an error at its bound", modulesOf(ProjectModule{Name: "a", Error: strings.Repeat("x", MaxReason)})...),
		yes("as many as may be", modulesOf(manyModules(MaxProjectModules, 1)...)...),
		yes("as much as may be", modulesOf(manyModules(2, MaxProjectCode/2)...)...),
		yes("code with other letters", modulesOf(ProjectModule{Name: "a", Code: "'größer\n'"})...),
		yes("code that looks like the next part", modulesOf(ProjectModule{Name: "a", Code: "1:b,1:x,0:,"})...),
		yes("no policy but modules", "policy="+inQuotes(NoProjectPolicy), "digest="+inQuotes(ProjectDigest(NoProjectPolicy, sampleModules()...))),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func projectReceiptRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "no digest", "digest="),
		no(ErrField, "a digest that is none", `digest="sha256:5f2a"`),
		no(ErrMalformed, "an error that is no text", "error=true"),
		no(ErrField, "an error that is too long", "error="+text(MaxReason+1)),

		yes("an error", `error="policy.jsonc:1:1: this is no object"`),
		yes("an error at the limit", "error="+text(MaxReason)),
		yes("no error", `error=""`),
		yes("another digest", "digest="+inQuotes(ProjectDigest(""))),
	}
}

// TestProjectDigestIsOfTheBytes: nothing that reads alike is alike.
func TestProjectDigestIsOfTheBytes(t *testing.T) {
	const known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := ProjectDigest(""); got != known {
		t.Errorf("digest of nothing is %s", got)
	}
	if err := CheckProjectDigest(known); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"{} ", "{}\n", "\ufeff{}", "{ }", "{/**/}"} {
		if ProjectDigest(other) == ProjectDigest("{}") {
			t.Errorf("%q has the digest of {}", other)
		}
	}
}

// TestNoTwoProjectsHaveOneDigest: policy and modules cannot be shifted against each
// other, and what has no modules keeps the digest of its policy's bytes.
func TestNoTwoProjectsHaveOneDigest(t *testing.T) {
	type project struct {
		policy  string
		modules []ProjectModule
	}
	seen := map[string]project{}
	for _, p := range []project{
		{"", nil}, {"{}", nil}, {"{}1:a,1:x,0:,", nil}, {ProjectContent("{}", ProjectModule{Name: "a", Code: "x"})[1:], nil},
		{"", []ProjectModule{{Name: "a", Code: "x"}}},
		{"{}", []ProjectModule{{Name: "a", Code: "x"}}},
		{"{}", []ProjectModule{{Name: "ax", Code: "x"}}},
		{"{}", []ProjectModule{{Name: "a", Error: "x"}}},
		{"{}", []ProjectModule{{Name: "a", Code: "xx"}}},
		{"{}", []ProjectModule{{Name: "a", Code: "x,0:,1:b,1:x"}}},
		{"{}", []ProjectModule{{Name: "a", Code: "x"}, {Name: "b", Code: "x"}}},
		{"{}", []ProjectModule{{Name: "b", Code: "x"}, {Name: "a", Code: "x"}}},
	} {
		digest := ProjectDigest(p.policy, p.modules...)
		if other, is := seen[digest]; is {
			t.Errorf("%+v and %+v have one digest", p, other)
		}
		seen[digest] = p
		policy, modules, err := ReadProjectContent(ProjectContent(p.policy, p.modules...))
		if err != nil || policy != p.policy || !cmp.Equal(modules, p.modules) {
			t.Errorf("%+v is read as %q %+v, %v", p, policy, modules, err)
		}
	}
}

func TestContentThatNobodyWroteIsRefused(t *testing.T) {
	good := ProjectContent("{}", ProjectModule{Name: "a", Code: "x"})
	for name, row := range map[string]struct {
		content string
		want    error
	}{
		"the mark alone":            {contentMark, ErrMalformed},
		"cut short":                 {good[:len(good)-1], ErrMalformed},
		"something behind it":       {good + "x", ErrMalformed},
		"a form to come":            {strings.Replace(good, contentForm, "assent-project-2", 1), ErrMalformed},
		"a length with a zero":      {strings.Replace(good, "1:a,", "01:a,", 1), ErrMalformed},
		"a length with a sign":      {strings.Replace(good, "1:a,", "+1:a,", 1), ErrMalformed},
		"a length below zero":       {strings.Replace(good, "1:a,", "-1:a,", 1), ErrMalformed},
		"a length beyond the end":   {strings.Replace(good, "1:a,", "99999999999:a,", 1), ErrMalformed},
		"a policy without a module": {contentMark + "16:" + contentForm + ",2:{},", ErrMalformed},
		"a module in part":          {good + "1:b,", ErrMalformed},
		"a module without code":     {strings.Replace(good, "1:x,", "0:,", 1), ErrField},
		"more than may be":          {contentMark + strings.Repeat("0:,", 60), ErrTooLarge},
		"too large a policy":        {strings.Repeat("x", MaxProjectPolicy+1), ErrTooLarge},
	} {
		if _, _, err := ReadProjectContent(row.content); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzProjectContent: what reads is what would be written, so one digest has one
// meaning.
func FuzzProjectContent(f *testing.F) {
	f.Add("{}")
	f.Add(ProjectContent("{}", sampleModules()...))
	f.Add(contentMark + "16:" + contentForm + ",2:{},1:a,1:x,0:,")
	f.Fuzz(func(t *testing.T, content string) {
		policy, modules, err := ReadProjectContent(content)
		if err == nil && ProjectContent(policy, modules...) != content {
			t.Fatalf("%q reads as %q %+v", content, policy, modules)
		}
	})
}
