package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/jsonwords"
)

// Address is what a running node leaves in its store, so that commands on the
// same store find it.
type Address struct {
	NATS string `json:"nats"`
	Node string `json:"node"`
	PID  int    `json:"pid"`
}

const addressName = "address.json"

// ReadAddress returns the address of the node that runs on store now.
// fs.ErrNotExist when none does.
func ReadAddress(store string) (Address, error) {
	if !held(filepath.Join(store, lockName)) {
		return Address{}, fmt.Errorf("no node runs on %s: %w; start one with `assent up`", store, fs.ErrNotExist)
	}
	return readAddress(store)
}

func readAddress(store string) (Address, error) {
	b, err := readPrivate(filepath.Join(store, addressName))
	if err != nil {
		return Address{}, err
	}
	var a Address
	if err := json.Unmarshal(b, &a); err != nil {
		return Address{}, fmt.Errorf("%w: %s: %w", ErrStoreAccess, addressName, jsonwords.Of(err))
	}
	return a, nil
}

func writeAddress(store string, a Address) error {
	b, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing the node's address: %w", err)
	}
	return replacePrivate(filepath.Join(store, addressName), append(b, '\n'), false)
}

func removeAddress(store string) error {
	err := os.Remove(filepath.Join(store, addressName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	return nil
}
