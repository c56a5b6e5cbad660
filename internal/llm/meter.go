package llm

import "context"

// meter takes part in every call that leaves: it may forbid it, and hears what
// it came to. A Guard puts one into the context.
type meter interface {
	// reserve sets aside the most that a call can use, or ErrOverBudget. settle has
	// to be called once, with what the call used.
	reserve(most Usage) (settle func(used Usage), err error)
}

type meterKey struct{}

func withMeter(ctx context.Context, m meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

func reserve(ctx context.Context, most Usage) (settle func(used Usage), err error) {
	m, ok := ctx.Value(meterKey{}).(meter)
	if !ok {
		return func(Usage) {}, nil
	}
	return m.reserve(most)
}
