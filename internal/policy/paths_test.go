package policy

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestASingleReadingIsTheOnlyOne: what is read fast is all that could be read.
func TestASingleReadingIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := placeOf(Call{
			Cwd:      rapid.SampledFrom([]string{"/repo", "/", "/home/dev/x", "/proc/1/cwd", "", "C:/x"}).Draw(t, "cwd"),
			Home:     rapid.SampledFrom([]string{"/home/dev", "", "/"}).Draw(t, "home"),
			Platform: rapid.SampledFrom([]string{"linux", "linux", "darwin", "windows"}).Draw(t, "platform"),
		})
		word := ""
		for _, part := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", ".env", "/", "..", ".", "~", "$HOME", "$PWD", "${PWD}", "@", " ", "'", `"`, "proc", "self", "C:", `\`, "-x", "=", "*", "\n"}), 1, 5).Draw(t, "word") {
			word += part
		}
		r, ok := p.single(word)
		if !ok {
			return
		}
		if all := p.readings(word); len(all) != 1 || !reflect.DeepEqual(all[0], r) {
			t.Fatalf("%q in %s: read as %+v; all readings: %+v", word, p.cwd, r, all)
		}
		if v := r.values(word); r.abs == "" || r.odd != "" || r.windows || v.exact[0] != r.abs || len(v.wide) > 1 || (len(v.exact) == 2) != (r.rel != "") {
			t.Fatalf("%q in %s: values %+v of %+v", word, p.cwd, v, r)
		}
	})
}
