package bus

// MaxIdle is the bound of the goroutines that wait for the next message.
const MaxIdle = maxIdle

// Idle is how many wait now.
func (s *Sub) Idle() int { return len(s.idle) }
