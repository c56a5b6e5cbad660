// Package mutation breaks each invariant in the source, one at a time, and
// demands that the invariant's test fails.
package mutation
