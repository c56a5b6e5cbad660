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

// What is odd is left to the language's own without a turn for what waits: promises
// come to their ends in the same order.
func TestParseJSONLetsNothingWaitingPass(t *testing.T) {
	ours := sobek.New()
	if err := fastParse(ours, newJSONTexts()); err != nil {
		t.Fatal(err)
	}
	var orders []string
	for _, vm := range []*sobek.Runtime{sobek.New(), ours} {
		v, err := vm.RunString(`var seen = []; () => { for (let i = 0; i < 3; i++) {
			Promise.resolve("{").then(JSON.parse).catch(() => seen.push("odd"));
			Promise.resolve().then(() => seen.push("even"));
		} }`)
		if err != nil {
			t.Fatal(err)
		}
		run, _ := sobek.AssertFunction(v)
		if _, err := run(sobek.Undefined()); err != nil {
			t.Fatal(err)
		}
		orders = append(orders, vm.Get("seen").String())
	}
	if orders[0] != "even,even,even,odd,odd,odd" || orders[1] != orders[0] {
		t.Errorf("got %s, want %s", orders[1], orders[0])
	}
}
