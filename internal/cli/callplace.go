package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are the systems that calls are ruled for, as Go names them and as
// an ask states them.
var platforms = []string{"linux", "darwin", "windows"}

// otherPlatforms are what people and other runtimes call them.
var otherPlatforms = map[string]string{"macos": "darwin", "mac": "darwin", "osx": "darwin", "macosx": "darwin", "win32": "windows", "win": "windows"}

// checkPlatform refuses a system that is not known: ruled as if it were Linux, a
// deny would miss what macOS and Windows find under another letter case.
func checkPlatform(name string) error {
	if name == "" || slices.Contains(platforms, name) {
		return nil
	}
	hint := ""
	if means := otherPlatforms[strings.ToLower(name)]; means != "" {
		hint = fmt.Sprintf("; write %q", means)
	} else if slices.Contains(platforms, strings.ToLower(name)) {
		hint = "; write it in lower case"
	}
	return fmt.Errorf("platform %q is unknown; expected linux, darwin or windows%s", clipped(name), hint)
}

// checkAbsolute refuses a folder that is not absolute on the agent's system: no
// relative path in the call could be told inside from outside.
func checkAbsolute(what, dir, platform string) error {
	windows := platform == "windows" && (strings.HasPrefix(dir, `\\`) || len(dir) > 2 && dir[1] == ':' && strings.ContainsRune(`/\`, rune(dir[2])))
	if dir == "" || strings.HasPrefix(dir, "/") || windows {
		return nil
	}
	example := "/repo"
	if what == "home" {
		example = "/home/dev"
	}
	if platform == "windows" {
		example = `C:\repo`
	}
	return fmt.Errorf("%s %q is not absolute; expected a path as %s", what, clipped(dir), example)
}

// checkPlace refuses what a line says of where its call runs, if nothing can be
// ruled by it.
func (l evalLine) checkPlace() error {
	if err := checkPlatform(l.Platform); err != nil {
		return err
	}
	if err := checkAbsolute("cwd", l.Cwd, l.Platform); err != nil {
		return err
	}
	return checkAbsolute("home", l.Home, l.Platform)
}

// fromHere makes the folder of a flag absolute: on a command line a relative one
// is meant from where the command is typed.
func fromHere(flag, dir string) (string, error) {
	if dir == "" || checkAbsolute("", dir, "windows") == nil {
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder %q of --%s: %w: name an absolute path", dir, flag, err)
	}
	return abs, nil
}

// clipped bounds what a message repeats of a text that it complains about.
func clipped(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
