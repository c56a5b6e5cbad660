// Package sdk holds the library that permission modules import, in TypeScript. A
// bundle takes a copy of it, so that a stored module keeps the library that it was
// made with.
package sdk

import "embed"

// Files are the sources by name. Index is what a module imports, Runner is what a
// bundle ends in.
//
//go:embed index.ts decision.ts highlight.ts promise.ts shell.ts tool.ts runner.ts
var Files embed.FS

// The files that a bundler starts from.
const (
	Index  = "index.ts"
	Runner = "runner.ts"
)

// Names under which modules import the library. The second is the one that
// published modules use.
const (
	Name          = "@assent/permissions"
	PublishedName = "@thurstonsand/pi-permissions"
)

// Types is the declaration of the library for editors and tsc.
//
//go:embed permissions.d.ts
var Types string
