package claudecode

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/pkg/protocol"
)

// ErrVersion: a Claude Code whose hooks cannot stop a call reliably.
var ErrVersion = errors.New("unsuitable version of Claude Code")

// LeastVersion is the first version that knows onFailure. Older ones ignore the
// key without a word, and run the call when its hook crashes or is killed.
const LeastVersion = "2.1.295"

var versionText = regexp.MustCompile(`^\s*v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)

// CheckVersion takes what `claude --version` prints. Errors wrap ErrVersion.
func CheckVersion(printed string) error {
	have, ok := version(printed)
	if !ok {
		return fmt.Errorf("%w: it says %q, want a version such as %s", ErrVersion, protocol.Safe(printed, 80, false), LeastVersion)
	}
	if least, _ := version(LeastVersion); slices.Compare(have, least) < 0 {
		return fmt.Errorf("%w: %d.%d.%d, want %s or later: older ones ignore onFailure, and run the call when its hook fails; run `claude update`", ErrVersion, have[0], have[1], have[2], LeastVersion)
	}
	return nil
}

func version(text string) ([]int, bool) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	var out []int
	for _, part := range m[1:] {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
