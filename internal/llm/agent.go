package llm

import "context"

type agentKey struct{}

// WithAgent says for which agent an Ask is made: a Guard counts its budget by it.
func WithAgent(ctx context.Context, agent string) context.Context {
	return context.WithValue(ctx, agentKey{}, agent)
}

// AgentOf is what WithAgent said; "" when nobody did.
func AgentOf(ctx context.Context) string {
	agent, _ := ctx.Value(agentKey{}).(string)
	return agent
}
