package policy

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// direction says which way a path is used. Where it is not proven, both count.
type direction uint8

const (
	reads direction = 1 << iota
	writes
	both = reads | writes
)

// pathKeys are the names under which any other tool is taken to name a file.
var pathKeys = map[string]bool{
	"path": true, "paths": true, "file": true, "files": true, "filename": true, "filepath": true, "file_path": true,
	"file_paths": true, "absolute_path": true, "notebook_path": true, "dir": true, "dir_path": true, "directory": true,
	"root": true, "source": true, "src": true, "destination": true, "dest": true, "dst": true, "old_path": true, "new_path": true, "uri": true,
}

// Bounds of what is looked at in a tool's input.
const (
	maxInputDepth = 32
	maxInputTexts = 4096
)

// arguments decodes a tool's input. No input and null are no arguments; ok is
// false for everything that is no object, and then nothing is known of it.
func arguments(input jsontext.Value) (args map[string]any, ok bool) {
	switch string(input) {
	case "", "null", "{}", "[]":
		return nil, true
	}
	if args, ok := plainArguments(input); ok {
		return args, true
	}
	if tooNestedInput(input) {
		return nil, false
	}
	var read map[string]any
	if err := json.Unmarshal(input, &read); err != nil {
		return nil, false
	}
	return read, true
}

// tooNestedInput bounds the recursion over an input; brackets in texts count,
// which only makes a strange input opaque.
func tooNestedInput(input jsontext.Value) bool {
	depth := 0
	for _, c := range input {
		switch c {
		case '{', '[':
			if depth++; depth > 1000 {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// namedTexts returns the texts of the arguments that keys name; odd says that
// one of them is there and is no text.
func namedTexts(args map[string]any, keys []string) (texts []string, odd bool) {
	for _, k := range keys {
		switch v := args[k].(type) {
		case nil:
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				s, ok := e.(string)
				odd = odd || !ok
				if ok {
					texts = append(texts, s)
				}
			}
		default:
			odd = true
		}
	}
	return texts, odd
}

// textsUnder collects the texts in v that stand under a key that keep accepts;
// the order is that of sorted keys, so that a ruling is the same everywhere. It
// returns false where v holds more, or deeper, than is looked at.
func textsUnder(v any, kept bool, keep func(string) bool, depth int, out *[]string) bool {
	if depth > maxInputDepth || len(*out) >= maxInputTexts {
		return false
	}
	all := true
	switch v := v.(type) {
	case string:
		if kept {
			*out = append(*out, v)
		}
	case []any:
		for _, e := range v {
			all = textsUnder(e, kept, keep, depth+1, out) && all
		}
	case map[string]any:
		switch len(v) {
		case 0:
		case 1:
			for k, e := range v {
				all = textsUnder(e, kept || keep(k), keep, depth+1, out)
			}
		default:
			for _, k := range sortedKeys(v) {
				all = textsUnder(v[k], kept || keep(k), keep, depth+1, out) && all
			}
		}
	}
	return all
}

// otherPaths are the paths that a tool without a table entry seems to name; all
// is false where the input was too large to find them all.
func otherPaths(args map[string]any) (paths []string, all bool) {
	all = textsUnder(args, false, func(k string) bool { return pathKeys[strings.ToLower(k)] }, 0, &paths)
	return paths, all
}

// commandKeys are the names, in lower case, under which a shell's call might
// hold what it runs, or what changes it, other than "command".
var commandKeys = map[string]bool{
	"command": true, "commands": true, "cmd": true, "cmds": true, "script": true, "shell": true, "args": true, "argv": true, "arguments": true,
	"code": true, "exec": true, "executable": true, "program": true, "env": true, "environment": true, "stdin": true, "input": true,
}

// isFileURL says whether s names a file by a URL.
func isFileURL(s string) bool { return len(s) > 5 && strings.EqualFold(s[:5], "file:") }

// fromURL are the paths that an argument names: itself, or for a URL of a file
// the path in it, as it stands and decoded.
func fromURL(s string) []string {
	if !isFileURL(s) {
		return []string{s}
	}
	p := s[5:]
	if rest, ok := strings.CutPrefix(p, "//"); ok {
		host, behind, _ := strings.Cut(rest, "/")
		p = "/" + behind // without the host
		if strings.HasPrefix(host, "$HOME") || strings.HasPrefix(host, "${HOME}") || strings.HasPrefix(host, "$PWD") || strings.HasPrefix(host, "${PWD}") {
			p = rest // which brings its slash along
		}
	}
	out := []string{p}
	if decoded, err := url.PathUnescape(p); err == nil && decoded != p {
		out = append(out, decoded)
	}
	return out
}

// plainText is an input that is one text and no object.
func plainText(input jsontext.Value) (string, bool) {
	if input.Kind() != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(input, &s) == nil
}
