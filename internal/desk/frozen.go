package desk

import (
	"context"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Freezes are the operators' freezes in force on the node: whoever answers asks
// should know what is stopped, and why.
func (d *Desk) Freezes(ctx context.Context) ([]layers.Freeze, error) {
	entries, err := bus.LastPerKey(ctx, d.nc, protocol.BucketPolicy)
	if err != nil {
		return nil, err
	}
	var all layers.Freezes
	for _, e := range entries {
		if f, ok := layers.ReadFreeze(e.Key, e.Value, e.Revision); ok {
			all = all.With(f)
		}
	}
	return all.Standing(), nil
}
