package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of one check, in bytes.
const (
	maxCheckName   = 128
	maxDescription = 1000
	maxTools       = 256
	maxAllTools    = 8192 // of all checks of a module
)

// registered is a check as a script says it.
type registered struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Tools       *[]string `json:"tools"`
	Function    bool      `json:"function"`
}

var errChecks = errors.New("what it says of its checks makes no sense")

// readChecks reads what a module registered. A check that could not be named in
// a prompt, a grant and a record, or told from another one, is refused.
func readChecks(text string, s *Source) ([]Check, error) {
	var list []registered
	if err := json.Unmarshal([]byte(text), &list, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", errChecks, err)
	}
	if len(list) > MaxChecks {
		return nil, fmt.Errorf("it registers %d checks, the limit is %d", len(list), MaxChecks)
	}
	version := s.Version()
	checks := make([]Check, 0, len(list))
	seen := make(map[string]bool, len(list))
	tools := 0
	for i, r := range list {
		if err := r.valid(); err != nil {
			return nil, fmt.Errorf("check %d (%q): %w", i+1, clip(r.Name, 60), err)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("it registers two checks named %q: give each a name of its own", r.Name)
		}
		seen[r.Name] = true
		c := Check{Level: s.Level, Module: s.Name, Version: version, Name: r.Name, Description: protocol.Safe(r.Description, maxDescription, true), Function: r.Function}
		if r.Tools != nil {
			if tools += len(*r.Tools); tools > maxAllTools {
				return nil, fmt.Errorf("its checks name more than %d tools in all", maxAllTools)
			}
			c.Tools = append([]string{}, *r.Tools...)
		}
		checks = append(checks, c)
	}
	return checks, nil
}

func (r *registered) valid() error {
	switch {
	case strings.TrimSpace(r.Name) == "":
		return errors.New("it has no name")
	case len(r.Name) > maxCheckName:
		return fmt.Errorf("its name has %d bytes, the limit is %d", len(r.Name), maxCheckName)
	case line(r.Name, maxCheckName) != r.Name, strings.TrimSpace(r.Name) != r.Name:
		return errors.New("its name holds a control or invisible character, or a space at an end")
	case r.Tools == nil:
		return nil
	case r.Function:
		return errors.New("a function and a list of tools both say what it is about")
	case len(*r.Tools) == 0:
		// It would never be asked: whoever wrote it believes to be guarded.
		return errors.New("its list of tools is empty, so that it would never be asked")
	case len(*r.Tools) > maxTools:
		return fmt.Errorf("it names %d tools, the limit is %d", len(*r.Tools), maxTools)
	}
	for _, t := range *r.Tools {
		if strings.TrimSpace(t) == "" || len(t) > protocol.MaxName {
			return fmt.Errorf("%q is no name of a tool", clip(t, 60))
		}
	}
	return nil
}
