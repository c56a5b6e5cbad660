package module

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxFrame bounds a frame of the pipe in bytes: a module's code as JSON text
// takes up to six times its size.
const maxFrame = 8 << 20

// frameHead is the length of a frame, big-endian, in front of it.
const frameHead = 4

// maxKept is how large a buffer may be that is kept for the next frame, in bytes.
const maxKept = 256 << 10

var errFrame = errors.New("a frame that does not fit the protocol of workers")

// op says what a frame of JSON is about. What is asked about calls, and answered,
// has frames of its own: see asking.
type op string

const (
	opHello op = "hello" // to a worker: your limits; back: confined and ready
	opLoad  op = "load"  // to a worker: run this module's script; back: its checks
	opDrop  op = "drop"  // to a worker: forget this module; nothing comes back
)

// order is a frame from the engine to a worker.
type order struct {
	Op op `json:"op"`
	// Memory: see Config; of opHello.
	Memory int64 `json:"memory,omitzero"`
	// Module is the engine's number for a loaded module; of opLoad and opDrop.
	Module uint64 `json:"module,omitzero"`
	// Name stands in the module's error texts; Root is its permissionRoot as JSON.
	Name string         `json:"name,omitzero"`
	Root jsontext.Value `json:"root,omitzero"`
	Code string         `json:"code,omitzero"`
}

// report is a frame from a worker to the engine.
type report struct {
	Op op `json:"op"`
	// Checks is what a module registered, as the script wrote it; of opLoad.
	Checks string `json:"checks,omitzero"`
	// Error says why the order could not be carried out.
	Error string `json:"error,omitzero"`
}

// frames is one end of the pipe. One goroutine at a time uses it.
type frames struct {
	from    *bufio.Reader
	to      io.Writer
	in, out []byte // kept for the next frame
}

func newFrames(from io.Reader, to io.Writer) *frames {
	return &frames{from: bufio.NewReaderSize(from, 64<<10), to: to}
}

// read returns the body of the next frame, which is good until the one after it.
// io.EOF only between two frames.
func (f *frames) read() ([]byte, error) {
	head, err := f.from.Peek(frameHead)
	if err != nil {
		if len(head) > 0 {
			err = noEOF(err)
		}
		if err == io.EOF {
			return nil, err
		}
		return nil, fmt.Errorf("reading a frame: %w", err)
	}
	// The size is checked before it is believed: it is what the other side says.
	n := binary.BigEndian.Uint32(head)
	if n > maxFrame {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, n, maxFrame)
	}
	_, _ = f.from.Discard(frameHead) // it was seen to be there
	if cap(f.in) < int(n) || cap(f.in) > maxKept {
		f.in = make([]byte, n)
	}
	f.in = f.in[:n]
	if _, err := io.ReadFull(f.from, f.in); err != nil {
		return nil, fmt.Errorf("reading a frame: %w", noEOF(err))
	}
	return f.in, nil
}

// write writes the frame whose body is what body appends, in one write.
func (f *frames) write(body func([]byte) ([]byte, error)) error {
	if cap(f.out) > maxKept {
		f.out = nil
	}
	frame, err := body(append(f.out[:0], make([]byte, frameHead)...))
	if err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	f.out = frame
	n := len(frame) - frameHead
	if n > maxFrame {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, n, maxFrame)
	}
	binary.BigEndian.PutUint32(frame, uint32(n))
	if _, err := f.to.Write(frame); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// writeJSON writes v in a frame.
func (f *frames) writeJSON(v any) error {
	return f.write(func(b []byte) ([]byte, error) {
		body, err := json.Marshal(v)
		return append(b, body...), err
	})
}

// readJSON reads the body of a frame into v, strictly.
func readJSON(body []byte, v any) error {
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
