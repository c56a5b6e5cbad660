package protocol

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcomes are those of the contract, in its order.
var outcomes = []Outcome{
	AllowedByRule, AllowedByGrant, AllowedByYolo, AllowedByLink, AllowedByHuman,
	DeniedByRule, DeniedByModule, DeniedByLink, DeniedByHuman,
	NoApprover, Expired, Cancelled, Frozen, RateLimited, Unavailable, Invalid,
}

// TestOutcomesAreAllOfTheSource: an outcome that the tables do not know would be
// one whose result nobody holds it to.
func TestOutcomesAreAllOfTheSource(t *testing.T) {
	var want, have []string
	for _, o := range outcomes {
		have = append(have, string(o))
	}
	for _, f := range parseFiles(t, func(name string) bool { return name == "words.go" }) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Outcome" {
				word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, word)
			}
			return true
		})
	}
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-source +tables):\n%s", d)
	}
}

// TestOutcomeAllows: an outcome allows if and only if the contract says so; the
// unknown ones do not, whatever they are called.
func TestOutcomeAllows(t *testing.T) {
	for _, o := range outcomes {
		if want := strings.HasPrefix(string(o), "allowed_by_"); o.Allows() != want || knownDenial(o) == want {
			t.Errorf("%s: Allows() = %v, knownDenial = %v", o, o.Allows(), knownDenial(o))
		}
	}
	for _, o := range []Outcome{"", "allowed", "allowed_by_court", "Allowed_by_rule", "allowed_by_rule "} {
		if o.Allows() || knownDenial(o) {
			t.Errorf("%q is known", o)
		}
	}
}
