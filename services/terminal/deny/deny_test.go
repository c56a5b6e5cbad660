package deny_test

import (
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
)

var _ terminal.Terminal = deny.Terminal{}

func TestEveryAskIsDeniedAtOnce(t *testing.T) {
	t.Parallel()
	id := protocol.NewAskID()
	v, err := deny.Terminal{}.End(t.Context(), protocol.TerminalRequest{Ask: protocol.Ask{ID: id}})
	if err != nil || v.Verdict != protocol.FinalDeny || v.Outcome != protocol.NoApprover || v.Ask != id || v.Reason == "" || v.Approver != "" {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := protocol.Write(v); err != nil {
		t.Errorf("no verdict that a gate could read: %v", err)
	}
	if (deny.Terminal{}).Kind() != protocol.TerminalDeny {
		t.Error("kind")
	}
}
