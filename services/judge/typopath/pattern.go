package typopath

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlclark/regexp2/v2"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of the patterns.
const (
	MaxPattern  = 1024 // bytes of one pattern
	MaxPatterns = 256
	// matchTime is for one pattern on one path, about: the engine looks at its
	// clock ten times a second. findTime is for all of them on all paths.
	matchTime = 50 * time.Millisecond
	findTime  = time.Second
)

// ErrPattern: a typo pattern that cannot be used; the text names it.
var ErrPattern = errors.New("invalid typo pattern")

// Patterns are compiled typo patterns, in the order in which they are tried.
// They are JavaScript regular expressions, which know back-references and
// look-ahead, and so may take exponential time: each match has a limit. Safe
// for concurrent use.
type Patterns struct{ list []pattern }

type pattern struct {
	text string
	re   *regexp2.Regexp
}

// match is a path and the pattern, as it was written, that it matched.
type match struct{ path, pattern string }

// Why a path went no further; the words of the record.
const (
	missNoPath  = "no-path"
	missPattern = "pattern-miss"
	missTooLong = "pattern-timeout"
)

// Compile compiles patterns. Errors wrap ErrPattern and name the first bad one.
func Compile(texts []string) (Patterns, error) {
	if len(texts) > MaxPatterns {
		return Patterns{}, fmt.Errorf("%w: %d patterns, the limit is %d", ErrPattern, len(texts), MaxPatterns)
	}
	var ps Patterns
	for _, text := range texts {
		re, err := compile(text)
		if err != nil {
			return Patterns{}, err
		}
		ps.list = append(ps.list, pattern{text: text, re: re})
	}
	return ps, nil
}

// Len is how many patterns there are.
func (ps Patterns) Len() int { return len(ps.list) }

func (ps Patterns) texts() []string {
	texts := make([]string, len(ps.list))
	for i, p := range ps.list {
		texts[i] = p.text
	}
	return texts
}

func compile(text string) (re *regexp2.Regexp, err error) {
	shown := protocol.Safe(text, 120, false)
	defer func() {
		if p := recover(); p != nil {
			re, err = nil, fmt.Errorf("%w: %q: %v", ErrPattern, shown, p)
		}
	}()
	if text == "" {
		return nil, fmt.Errorf("%w: an empty one would match every path", ErrPattern)
	}
	if len(text) > MaxPattern {
		return nil, fmt.Errorf("%w: %q has %d bytes, the limit is %d", ErrPattern, shown, len(text), MaxPattern)
	}
	re, err = regexp2.Compile(text, regexp2.ECMAScript)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrPattern, shown, err)
	}
	re.MatchTimeout = matchTime
	return re, nil
}

// find returns the first path that matches, trying all patterns on it before
// the next path; or why there is none. A pattern that came to its limit is not
// tried again, and the miss then says so: it is not known to be one.
func (ps Patterns) find(ctx context.Context, paths []string) (hit match, miss string) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	miss = missPattern
	spent := make([]bool, len(ps.list))
	for _, path := range paths {
		for i, p := range ps.list {
			if ctx.Err() != nil {
				return match{}, missTooLong
			}
			if spent[i] {
				continue
			}
			matched, err := p.re.MatchString(path)
			if err != nil {
				spent[i], miss = true, missTooLong
				continue
			}
			if matched {
				return match{path: path, pattern: p.text}, ""
			}
		}
	}
	return match{}, miss
}
