package gate

import "errors"

// Errors of the gate. What an agent is told stands in the decision or the
// error reply; these are for the code.
var (
	// errConflict: the id is another call's, or another agent's.
	errConflict = errors.New("ask id is in use for another call")
	// errCrowded: too many asks of this agent are open, or come at once.
	errCrowded = errors.New("agent has too many open asks")
	// errUnrecorded: the stream did not acknowledge the decision, so nobody may
	// hear it.
	errUnrecorded = errors.New("decision could not be recorded")
	// errElsewhere: the ask was opened or decided at another gate at the same moment.
	errElsewhere = errors.New("ask is another gate's")
	// errLost: another gate carries the ask on.
	errLost = errors.New("ask is carried by another gate")
	// errInterrupted: the ask ended while a link or a terminal was asked: a
	// verdict or a cancel was stored, or its deadline passed.
	errInterrupted = errors.New("ask was interrupted")
	// errStale: the policy was not read since the connection came back.
	errStale = errors.New("policy of this moment is not known yet")
	// errBehind: the gate does not act by a freeze yet, or an allow from before it
	// is still on its way to the record.
	errBehind = errors.New("freeze is not in force here yet")
	// errBroken: the gate panicked over the ask, which has been said.
	errBroken = errors.New("carrying the ask panicked")
	// errStopping: the gate is draining.
	errStopping = errors.New("gate is stopping")
)
