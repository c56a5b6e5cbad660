package client

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Whatever a reply says, an allow comes out of it only when the contract's own
// reader takes the whole of it for an allow on this ask for this agent.
func FuzzReadReply(f *testing.F) {
	id := "01KBAKQ5Y0000000000000000Z"
	whole, err := protocol.Write(allow(id))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, "", "", "")
	f.Add([]byte(`{"v":1,"ask":"`+id+`","status":"pending","stage":"x"}`), "", "", "")
	f.Add([]byte(`{"v":1,"ask":"`+id+`","error":{"code":"conflict","message":"m","remedy":"r"}}`), "conflict", "m", "")
	f.Add(whole, "", "", "503")
	f.Fuzz(func(t *testing.T, data []byte, code, text, status string) {
		h := nats.Header{}
		for k, v := range map[string]string{protocol.HeaderErrorCode: code, protocol.HeaderError: text, statusHeader: status} {
			if v != "" {
				h.Set(k, v)
			}
		}
		r, err := readReply(id, agent, &nats.Msg{Data: data, Header: h})
		set := 0
		for _, is := range []bool{r.decision != nil, r.progress != nil, r.receipt != nil, err != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("%d things came out: %+v, %v", set, r, err)
		}
		if r.decision == nil {
			return
		}
		d, err := protocol.ReadDecisionFor(id, agent, data)
		if err != nil || code+text+status != "" || d.Allowed() != r.decision.Allowed() {
			t.Fatalf("a decision came out of what is none: %v", err)
		}
	})
}
