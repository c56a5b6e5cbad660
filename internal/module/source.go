package module

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// Bounds of what an Engine loads. What is beyond them is a Problem.
const (
	// MaxSources is how many modules one Set may hold.
	MaxSources = 256
	// MaxChecks is how many checks one Set may hold.
	MaxChecks = 4096
	// MaxCode is the size of one bundled module in bytes.
	MaxCode = 1 << 20
)

// Level says who put a module in force. The caller of Load gives the order;
// a project's stand first, so that what is nearest to the call speaks first.
type Level string

// The levels of modules.
const (
	LevelProject Level = "project"
	LevelFleet   Level = "fleet"
	LevelUser    Level = "user"
)

// Valid says whether l is one of the three.
func (l Level) Valid() bool {
	return l == LevelProject || l == LevelFleet || l == LevelUser
}

// Source is one module, bundled to one script.
type Source struct {
	// Name is the file's or folder's without its extension.
	Name  string
	Level Level
	// Root is what the module is told as input.permissionRoot.
	Root string
	// Code is a classic script whose completion value is
	// {checks: string, ask(order, input): string | Promise<string>}; see README.md.
	Code string
}

// Version identifies the code: "sha256:" and the hex digest of it.
func (s Source) Version() string {
	sum := sha256.Sum256([]byte(s.Code))
	return "sha256:" + hex.EncodeToString(sum[:])
}

var moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidName says whether a module may be called name.
func ValidName(name string) bool { return moduleName.MatchString(name) }

// check refuses what no worker should be handed.
func (s Source) check() error {
	switch {
	case !ValidName(s.Name):
		return fmt.Errorf("%q is no name of a module: letters, digits, dot, dash and underscore, at most 64", clip(s.Name, 80))
	case !s.Level.Valid():
		return fmt.Errorf("%q is no level: project, fleet or user", clip(string(s.Level), 40))
	case len(s.Code) > MaxCode:
		return fmt.Errorf("it has %d bytes once bundled, the limit is %d", len(s.Code), MaxCode)
	case s.Code == "":
		return fmt.Errorf("it is empty")
	}
	return nil
}

// Problem says why a module is not in force. Message is one line without
// control characters, safe to show.
type Problem struct {
	Module  string
	Level   Level
	Message string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s module %s: %s", p.Level, p.Module, p.Message)
}
