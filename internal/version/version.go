// Package version holds the one version of everything in this binary.
package version

// Version is a semantic version, as micro discovery wants it.
const Version = "0.1.0"
