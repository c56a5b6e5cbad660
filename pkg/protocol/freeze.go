package protocol

import (
	"fmt"
	"strings"
	"time"
)

// FreezePrefix begins the keys of freezes in the bucket of the policy.
const FreezePrefix = "freeze."

// Freeze is an operator's stop, as it stands in the bucket ASSENT_POLICY: from
// the next ask on, nothing is allowed to whom its key names. It is lifted by
// taking the key away.
type Freeze struct {
	V Version `json:"v"`
	// Reason is what the agents and the approvers are told.
	Reason string `json:"reason"`
	// By is the operator's credential.
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func (f *Freeze) version() Version { return f.V }
func (f *Freeze) check() error {
	if strings.TrimSpace(f.Reason) == "" {
		return fmt.Errorf("%w: reason is missing", ErrField)
	}
	if f.At.IsZero() {
		return fmt.Errorf("%w: at is missing", ErrField)
	}
	return first(bounded("reason", f.Reason, MaxReason), CheckToken("by", f.By))
}

// Confirm asks one gate to say that it acts by what a freeze's key holds since a
// revision of the bucket, and that no allow from before is on its way to the
// record any more.
type Confirm struct {
	V        Version `json:"v"`
	Key      string  `json:"key"`
	Revision uint64  `json:"revision"`
}

func (c *Confirm) version() Version { return c.V }
func (c *Confirm) check() error     { return confirmCheck(c.Key, c.Revision) }

// Confirmed is a gate's answer to Confirm: it acts by Revision of Key, which is
// the one asked about or a newer one.
type Confirmed struct {
	V        Version `json:"v"`
	Gate     string  `json:"gate"`
	Key      string  `json:"key"`
	Revision uint64  `json:"revision"`
}

func (c *Confirmed) version() Version { return c.V }
func (c *Confirmed) check() error {
	return first(CheckToken("gate", c.Gate), confirmCheck(c.Key, c.Revision))
}

func confirmCheck(key string, revision uint64) error {
	if !strings.HasPrefix(key, FreezePrefix) {
		return fmt.Errorf("%w: key %q is no freeze's", ErrField, clip(key, 80))
	}
	if revision == 0 {
		return fmt.Errorf("%w: revision is missing", ErrField)
	}
	return optionalName("key", key)
}
