package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// maxUploads is how often one ask uploads what the project has of its own: a gate that goes
// on lacking what it has acknowledged is not asked without end.
const maxUploads = 2

// own is what a project has of its own.
type own struct {
	policy  string
	modules []protocol.ProjectModule
}

// wanted is what a gate lacks of an ask's project, if err says that it does and
// the client has it.
func (c *Client) wanted(a protocol.Ask, err error) (project own, ok bool) {
	var fault *protocol.Fault
	if !errors.As(err, &fault) || fault.Code != protocol.CodeNeedProject {
		return own{}, false
	}
	project, ok = c.projects[a.Project.Digest]
	return project, ok
}

// hand uploads what an ask's project has of its own. A gate that shows no sign of
// life is looked for as in Ask. That the policy does not read is no error: the
// gate then clamps what is asked under it.
func (c *Client) hand(ctx context.Context, a protocol.Ask, project own) error {
	data, err := protocol.Write(protocol.ProjectUpload{Project: a.Project.ID, Digest: a.Project.Digest, Policy: project.policy, Modules: project.modules})
	if err != nil {
		return fmt.Errorf("%w: the project's own policy and modules cannot be sent: %w", ErrAsk, err)
	}
	for search := newSearch(c.patience); ; {
		msg, err := c.request(ctx, c.upload, data)
		if err == nil {
			err = readReceipt(a.Project.Digest, msg)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return search.ended(ctx, a.ID)
		}
		pause, err := search.lost(err)
		if err != nil {
			return fmt.Errorf("uploading the project's own policy and modules: %w", err)
		}
		if !sleep(ctx, pause) {
			return search.ended(ctx, a.ID)
		}
	}
}

// readReceipt takes only the receipt of that very upload.
func readReceipt(digest string, msg *nats.Msg) error {
	code, text := msg.Header.Get(protocol.HeaderErrorCode), msg.Header.Get(protocol.HeaderError)
	switch {
	case msg.Header.Get(statusHeader) != "":
		return junk("status %s of the server", msg.Header.Get(statusHeader))
	case code != "" || text != "":
		return readFault("", code, text, msg.Data)
	}
	receipt, err := protocol.Read[protocol.ProjectReceipt](msg.Data)
	if err == nil && receipt.Digest != digest {
		err = fmt.Errorf("%w: the receipt is for %q, not %q", protocol.ErrMismatch, receipt.Digest, digest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReply, err)
	}
	return nil
}
