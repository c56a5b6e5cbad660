package pending

import "time"

// LookAfter shortens how often a watch looks after its bucket.
func (s *Store) LookAfter(d time.Duration) { s.lookAfter = d }
