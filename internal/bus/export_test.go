package bus

// MaxIdle is the bound of the goroutines that wait for the next message.
const MaxIdle = maxIdle

// Idle is how many wait now.
func (s *Sub) Idle() int { return len(s.idle) }

// MaxIdentities bounds the senders that are remembered.
const MaxIdentities = maxIdentities

// Len is how many are.
func (i *Identities) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.read)
}
