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

// Bounds of a project's own permission modules.
const (
	MaxProjectModules = 16
	// MaxProjectCode holds for all modules of a project together, in bytes.
	MaxProjectCode = 512 << 10
	// MaxProjectContent bounds ProjectContent: policy, modules, and their names and
	// errors.
	MaxProjectContent = MaxProjectPolicy + MaxProjectCode + MaxProjectModules*(MaxName+MaxReason+64) + 64
)

// NoProjectPolicy stands for the policy of a project that brings modules and has
// none.
const NoProjectPolicy = "{}"

// ProjectModule is one permission module of a project, bundled to one script on
// the agent's host, or why it could not be.
type ProjectModule struct {
	// Name is the file's or folder's without its extension.
	Name string `json:"name"`
	// Code is "" where the module could not be bundled; Error then says why.
	Code  string `json:"code"`
	Error string `json:"error"`
}

// ProjectDigest is how an ask names what a project has of its own: "sha256:" and
// the SHA-256 of ProjectContent.
func ProjectDigest(policy string, modules ...ProjectModule) string {
	sum := sha256.Sum256([]byte(ProjectContent(policy, modules...)))
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

// ProjectUpload hands a gate the policy and the permission modules of a project's
// own that asks name by their digest.
type ProjectUpload struct {
	V Version `json:"v"`
	// Project is the id that the asks say.
	Project string `json:"project"`
	Digest  string `json:"digest"`
	// Policy is the file's whole text.
	Policy string `json:"policy"`
	// Modules are the project's permission modules in the order in which they are
	// asked.
	Modules []ProjectModule `json:"modules,omitempty"`
}

func (u *ProjectUpload) version() Version { return u.V }
func (u *ProjectUpload) carries()         {} // larger than an ask
func (u *ProjectUpload) check() error {
	if err := checkProject(u.Policy, u.Modules); err != nil {
		return err
	}
	if err := first(path("project", u.Project), CheckProjectDigest(u.Digest)); err != nil {
		return err
	}
	// The digest is what asks are ruled by: nobody chooses another text for it.
	if u.Digest != ProjectDigest(u.Policy, u.Modules...) {
		return fmt.Errorf("%w: the digest is not that of policy and modules", ErrMismatch)
	}
	return nil
}

// ProjectReceipt says that what a project has of its own is stored.
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
