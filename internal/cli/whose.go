package cli

// whose names an agent with the node that it asks at, where that is not this one:
// "ci-42 at child1", and "ci-42 at low, via child1" from further below.
func whose(agent string, hops []string) string {
	switch len(hops) {
	case 0:
		return agent
	case 1:
		return agent + " at " + hops[0]
	default:
		return agent + " at " + hops[0] + ", via " + hops[len(hops)-1]
	}
}
