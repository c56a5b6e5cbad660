package node

import "errors"

// Sentinels of this package. Every error that wraps one names in its text what
// to do about it.
var (
	// ErrNoAuthority: the store holds no keys yet.
	ErrNoAuthority = errors.New("the store holds no keys")
	// ErrNodeMismatch: the store belongs to a node of another name.
	ErrNodeMismatch = errors.New("the store belongs to another node")
	// ErrExposed: a file or folder that others may read or write.
	ErrExposed = errors.New("others have access to it")
	// ErrStoreInUse: another process runs a node on the store.
	ErrStoreInUse = errors.New("the store is in use")
	// ErrStoreAccess: the store cannot be read or written.
	ErrStoreAccess = errors.New("the store is not accessible")
	// ErrPortInUse: the address to listen on is taken.
	ErrPortInUse = errors.New("the address is in use")
	// ErrNotReady: the server did not come up.
	ErrNotReady = errors.New("the server did not start")
	// ErrExists: a live credential of that role and name was issued before.
	ErrExists = errors.New("there is a live credential of this role and name")
	// ErrUnknownCredential: no credential like that was issued here.
	ErrUnknownCredential = errors.New("no such credential")
	// ErrNotConfirmed: a revocation is recorded, but a running server did not
	// confirm it.
	ErrNotConfirmed = errors.New("the running server did not confirm it")
	// ErrRequest: what was asked for cannot be issued.
	ErrRequest = errors.New("cannot issue that")
)
