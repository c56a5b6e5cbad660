package module

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAFrameIsReadAsItWasWritten(t *testing.T) {
	var b bytes.Buffer
	sent := order{Op: opAsk, Ask: "01J", Steps: []step{{Module: 3, Checks: []int{0, 2}}}, Input: []byte(`{"cwd":"/r"}`)}
	for range 2 {
		if err := writeFrame(&b, &sent); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(&b)
	for range 2 {
		var got order
		if err := readFrame(r, &got); err != nil || got.Op != opAsk || got.Steps[0].Module != 3 || string(got.Input) != `{"cwd":"/r"}` {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if err := readFrame(r, new(order)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func framed(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestAFrameThatDoesNotFit(t *testing.T) {
	for _, row := range []struct {
		does  string
		bytes []byte
	}{
		{"it ends in its head", []byte{0, 0}},
		{"it ends in its body", framed(`{"op":"hello"}`)[:8]},
		{"it says that it is four gigabytes", []byte{255, 255, 255, 255, '{'}},
		{"it is no JSON", framed("hello")},
		{"a key stands twice", framed(`{"op":"ask","op":"hello"}`)},
		{"a key is unknown", framed(`{"op":"ask","x":1}`)},
		{"it has a tail", framed(`{"op":"ask"} {}`)},
	} {
		err := readFrame(bufio.NewReader(bytes.NewReader(row.bytes)), new(report))
		if err == nil || err == io.EOF {
			t.Errorf("%s: %v", row.does, err)
		}
	}
	if err := writeFrame(io.Discard, &order{Code: strings.Repeat("x", maxFrame)}); !errors.Is(err, errFrame) {
		t.Errorf("a frame over the limit is written: %v", err)
	}
}

// A worker takes no order of a module before it is confined, and none that does
// not fit.
func TestAWorkerRefusesWhatDoesNotFit(t *testing.T) {
	for _, row := range []struct{ does, frame string }{
		{"a module before hello", `{"op":"load","module":1,"root":"","code":"1"}`},
		{"an ask before hello", `{"op":"ask","input":{}}`},
		{"an unknown order", `{"op":"exec"}`},
	} {
		var out bytes.Buffer
		if err := Work(bytes.NewReader(framed(row.frame)), &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: error %v, said %q", row.does, err, out.String())
		}
	}
}

// No bytes from the other side make the reader of frames take more memory than
// they have, or panic; what it reads it could have written.
func FuzzFrame(f *testing.F) {
	f.Add(framed(`{"op":"ask","results":[{"answer":"{}"}]}`))
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0, 127, 255, 255, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(bytes.NewReader(data))
		for {
			var r report
			if err := readFrame(in, &r); err != nil {
				return
			}
			var b bytes.Buffer
			if err := writeFrame(&b, &r); err != nil {
				t.Fatalf("read, but cannot be written: %v", err)
			}
			var again report
			if err := readFrame(bufio.NewReader(&b), &again); err != nil || again.Op != r.Op || len(again.Results) != len(r.Results) {
				t.Fatalf("written and read again: %+v, %v; was %+v", again, err, r)
			}
		}
	})
}
