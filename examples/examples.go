// Package examples holds the policy that a newcomer starts from.
package examples

import _ "embed"

// Policy is policy.jsonc: what `assent up` uses where no policy is named.
//
//go:embed policy.jsonc
var Policy string
