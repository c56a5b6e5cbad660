package module

import (
	"testing"

	"github.com/grafana/sobek"
)

// Whatever the text, a script's JSON.parse gives what the language's own gives.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[true,false,null,-0,1e3,0.5],"a":"twice"}`, `{"__proto__":{"x":1},"constructor":2,"toString":null}`, `"\ud834\udd1e \ud800 é"`, `1e400`, ` [ ] `,
		`{"a":1}{`, `{"a"`, `[1,]`, `nul`, ``, `{"2":1,"1":2}`, "\"\x00\"", "[\"\u2028\"]", `9007199254740993`,
	} {
		f.Add(s)
	}
	own, first, second := sobek.New(), sobek.New(), sobek.New()
	texts := newJSONTexts()
	for _, vm := range []*sobek.Runtime{first, second} {
		if err := fastParse(vm, texts); err != nil {
			f.Fatal(err)
		}
	}
	// Order of keys, own keys, holes, -0 and the kind of an error all count.
	const show = `(text) => { const of = (v) => Array.isArray(v) ? ["list", v.length, ...v.map(of)] : v && typeof v === "object" ?
		["object", Object.getPrototypeOf(v) === Object.prototype, ...Reflect.ownKeys(v).map((k) => [k, of(v[k]), Object.getOwnPropertyDescriptor(v, k).writable])] : [typeof v, Object.is(v, -0) ? "-0" : String(v)];
		try { return JSON.stringify(of(JSON.parse(text))) } catch (e) { return e.name + ": " + e.message } }`
	run := func(t *testing.T, vm *sobek.Runtime, text string) string {
		v, err := vm.RunString(show)
		if err != nil {
			t.Fatal(err)
		}
		call, _ := sobek.AssertFunction(v)
		got, err := call(sobek.Undefined(), vm.ToValue(text))
		if err != nil {
			t.Fatal(err)
		}
		return got.String()
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := run(t, own, text)
		for _, vm := range []*sobek.Runtime{first, second, first} {
			if got := run(t, vm, text); got != want {
				t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
			}
		}
	})
}
