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

var errFrame = errors.New("a frame that does not fit the protocol of workers")

// op says what a frame is about.
type op string

const (
	opHello op = "hello" // to a worker: your limits; back: confined and ready
	opLoad  op = "load"  // to a worker: run this module's script; back: its checks
	opDrop  op = "drop"  // to a worker: forget this module; nothing comes back
	opAsk   op = "ask"   // to a worker: ask these checks; back: what they say
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
	// Ask is the id of the ask: all that a module knows of time and chance.
	Ask   string         `json:"ask,omitzero"`
	Steps []step         `json:"steps,omitempty"`
	Input jsontext.Value `json:"input,omitzero"`
}

// step asks some checks of one module, in order.
type step struct {
	Module uint64 `json:"module"`
	Checks []int  `json:"checks"`
}

// report is a frame from a worker to the engine.
type report struct {
	Op op `json:"op"`
	// Checks is what a module registered, as the script wrote it; of opLoad.
	Checks string `json:"checks,omitzero"`
	// Error says why the order could not be carried out.
	Error string `json:"error,omitzero"`
	// Results are those of the first steps; the worker stops after one that does
	// not simply pass.
	Results []result `json:"results,omitempty"`
}

// result is what a step came to: the script's answer, or why there is none.
type result struct {
	Answer string `json:"answer,omitzero"`
	Error  string `json:"error,omitzero"`
}

// writeFrame writes v with its length in front, in one write.
func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, len(body), maxFrame)
	}
	frame := make([]byte, frameHead, frameHead+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	if _, err := w.Write(append(frame, body...)); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// readFrame reads one frame into v, strictly. io.EOF only between two frames.
func readFrame(r *bufio.Reader, v any) error {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("reading a frame: %w", err)
	}
	// The size is checked before it is believed: it is what the other side says.
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, n, maxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("reading a frame: %w", noEOF(err))
	}
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
