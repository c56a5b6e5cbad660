package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxProjectPolicy bounds a project's own policy, in bytes: it can only tighten,
// and every gate has to hold those of all agents.
const MaxProjectPolicy = 64 << 10

// ProjectDigest is how an ask names the project's own policy: "sha256:" and the
// SHA-256 of its bytes.
func ProjectDigest(policy string) string {
	sum := sha256.Sum256([]byte(policy))
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// CheckProjectDigest accepts only what ProjectDigest makes.
func CheckProjectDigest(s string) error {
	digits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(digits) != 2*sha256.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: digest %q, want sha256: and %d lower-case hex digits", ErrField, clip(s, 80), 2*sha256.Size)
	}
	return nil
}

// ProjectUpload hands a gate the policy of a project's own that asks name by its
// digest.
type ProjectUpload struct {
	V Version `json:"v"`
	// Project is the id that the asks say.
	Project string `json:"project"`
	Digest  string `json:"digest"`
	// Policy is the file's whole text.
	Policy string `json:"policy"`
}

func (u *ProjectUpload) version() Version { return u.V }
func (u *ProjectUpload) check() error {
	if len(u.Policy) > MaxProjectPolicy {
		return fmt.Errorf("%w: the project's policy has %d bytes, the limit is %d", ErrTooLarge, len(u.Policy), MaxProjectPolicy)
	}
	if err := first(path("project", u.Project), CheckProjectDigest(u.Digest)); err != nil {
		return err
	}
	// The digest is what asks are ruled by: nobody chooses another text for it.
	if u.Digest != ProjectDigest(u.Policy) {
		return fmt.Errorf("%w: the digest is not that of the policy", ErrMismatch)
	}
	return nil
}

// ProjectReceipt says that a project's policy is stored.
type ProjectReceipt struct {
	V      Version `json:"v"`
	Digest string  `json:"digest"`
	// Error is what is wrong with the policy where it does not read: it is stored
	// all the same, and whatever is asked under it a person has to allow. ""
	// where it reads.
	Error string `json:"error"`
}

func (r *ProjectReceipt) version() Version { return r.V }
func (r *ProjectReceipt) check() error {
	return first(CheckProjectDigest(r.Digest), bounded("error", r.Error, MaxReason))
}
