package module

// Check is one check that a module registered.
type Check struct {
	Level   Level
	Module  string
	Version string // the module's: "sha256:…"
	Name    string
	// Description says in the prompt what the check is for.
	Description string
	// Tools are the names of the tools it is about; nil is every call, or what a
	// function in the module decides.
	Tools []string
	// Function: the module decides by a function of its own whether a call is
	// the check's.
	Function bool
}

// ID names the check in grants and records: "<level>:<module>/<check name>".
func (c Check) ID() string {
	return string(c.Level) + ":" + c.Module + "/" + c.Name
}
