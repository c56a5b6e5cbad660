package module

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAFrameIsReadAsItWasWritten(t *testing.T) {
	var b bytes.Buffer
	f := newFrames(&b, &b)
	for _, code := range []string{"1", strings.Repeat("x", 2*maxKept), "2"} {
		for range 2 {
			if err := f.writeJSON(&order{Op: opLoad, Module: 3, Code: code, Root: []byte(`"/r"`)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			var got order
			body, err := f.read()
			if err == nil {
				err = readJSON(body, &got)
			}
			if err != nil || got.Op != opLoad || got.Module != 3 || got.Code != code || string(got.Root) != `"/r"` {
				t.Errorf("got %d bytes, %v", len(got.Code), err)
			}
		}
	}
	if _, err := f.read(); err != io.EOF {
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
		{"it is empty", framed("")},
		{"it is no JSON", framed("hello")},
		{"a key stands twice", framed(`{"op":"load","op":"hello"}`)},
		{"a key is unknown", framed(`{"op":"load","x":1}`)},
		{"it has a tail", framed(`{"op":"load"} {}`)},
	} {
		body, err := newFrames(bytes.NewReader(row.bytes), nil).read()
		if err == nil {
			err = readJSON(body, new(report))
		}
		if err == nil || err == io.EOF {
			t.Errorf("%s: %v", row.does, err)
		}
	}
	if err := newFrames(nil, io.Discard).writeJSON(&order{Code: strings.Repeat("x", maxFrame)}); !errors.Is(err, errFrame) {
		t.Errorf("a frame over the limit is written: %v", err)
	}
}

// A worker takes no order of a module before it is confined, and none that does
// not fit.
func TestAWorkerRefusesWhatDoesNotFit(t *testing.T) {
	call := asking{Serial: 1, Ask: "01J", Steps: []step{{1, []int{0}}}, Input: []byte("{}")}
	for _, row := range []struct{ does, frame string }{
		{"a module before hello", `{"op":"load","module":1,"root":"","code":"1"}`},
		{"a call before hello", string(call.append(nil))},
		{"a call cut short", string(call.append(nil)[:3])},
		{"a call as JSON", `{"op":"ask"}`},
		{"answers", "R\x01\x00"},
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
	f.Add(framed(`{"op":"load","checks":"[]"}`))
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0, 127, 255, 255, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := newFrames(bytes.NewReader(data), nil)
		for {
			body, err := in.read()
			if err != nil {
				return
			}
			var r, again report
			if readJSON(body, &r) != nil {
				continue
			}
			var b bytes.Buffer
			pipe := newFrames(&b, &b)
			if err := pipe.writeJSON(&r); err != nil {
				t.Fatalf("read, but cannot be written: %v", err)
			}
			body, err = pipe.read()
			if err == nil {
				err = readJSON(body, &again)
			}
			if err != nil || again != r {
				t.Fatalf("written and read again: %+v, %v; was %+v", again, err, r)
			}
		}
	})
}
