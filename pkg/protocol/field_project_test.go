package protocol

import (
	"strings"
	"testing"
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
		yes("a field of a later version", `modules=["a"]`),
		yes("a digest in another case of its name beside it", `Digest="x"`),
	}
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
