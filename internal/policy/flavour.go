package policy

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// foldText is s as file systems compare it that find a name in any letter case:
// case and composition of characters count for nothing, and a backslash is a
// slash. For what denies and asks; it would be too wide for an allow.
func foldText(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			s = norm.NFC.String(cases.Fold().String(norm.NFD.String(s)))
			break
		}
	}
	return strings.ReplaceAll(strings.ToLower(s), `\`, "/")
}

// drive says whether p starts with the letter of a drive, or is a share.
func drive(p string) bool {
	return len(p) > 2 && letter(p[0]) && p[1] == ':' && (p[2] == '/' || p[2] == '\\') || strings.HasPrefix(p, `\\`)
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// windowsPath makes a typed path absolute, with slashes and the drive in upper
// case: "C:/repo/a". base is what relative paths start from, "" where that is
// not known. odd names what keeps the path from being proven to be what it
// says, "" if nothing does; abs is then only good enough to deny and ask.
func windowsPath(typed, base string) (abs, odd string) {
	p := strings.ReplaceAll(typed, `\`, "/")
	if rest, ok := strings.CutPrefix(p, "//?/"); ok {
		p, odd = rest, "verbatim"
		if share, ok := strings.CutPrefix(p, "UNC/"); ok {
			p = "//" + share
		}
	}
	p = ownShare(p)
	switch {
	case strings.HasPrefix(p, "//./"), strings.HasPrefix(p, "//?"):
		return "", "device"
	case len(p) > 1 && letter(p[0]) && p[1] == ':':
		if len(p) == 2 || p[2] != '/' {
			return "", "drive-relative" // to wherever that drive's current directory is
		}
	case strings.HasPrefix(p, "//"):
		server, rest, _ := strings.Cut(p[2:], "/")
		share, _, _ := strings.Cut(rest, "/")
		if strings.Trim(server, ". ?") == "" || strings.Trim(share, ". ") == "" || strings.ContainsAny(server+share, ":") {
			return "", "share" // no server, or none that names a folder
		}
	case len(p) > 1 && p[0] == '/' && letter(p[1]) && (len(p) == 2 || p[2] == '/'):
		p = p[1:2] + ":/" + p[min(3, len(p)):] // as the shells of Windows write drives
	case strings.HasPrefix(p, "/"):
		// The root of the drive to most programs, a folder of its own to a shell.
		if volume, _ := windowsVolume(base); volume != "" {
			p, odd = volume+p, "rooted"
		}
	case base == "":
		return "", odd
	default:
		p = base + "/" + p
	}
	volume, rest := windowsVolume(p)
	clean, how := windowsNames(rest)
	if how != "" {
		odd = how
	}
	return volume + clean, odd
}

// ownShare is a path over the share that Windows makes of each drive, on the
// machine itself, as one of that drive: "//localhost/c$/repo" is "c:/repo".
func ownShare(p string) string {
	share, ok := strings.CutPrefix(p, "//")
	server, rest, _ := strings.Cut(share, "/")
	if !ok || !slices.Contains(ownNames, strings.ToLower(strings.TrimRight(server, "."))) {
		return p
	}
	if len(rest) >= 2 && letter(rest[0]) && rest[1] == '$' && (len(rest) == 2 || rest[2] == '/') {
		return rest[:1] + ":/" + rest[min(3, len(rest)):]
	}
	return p
}

// ownNames are the names by which each machine knows itself.
var ownNames = []string{"localhost", "127.0.0.1", "--1.ipv6-literal.net", "0--1.ipv6-literal.net"}

// windowsVolume splits a path with slashes into drive or share, and the rest.
func windowsVolume(p string) (volume, rest string) {
	if len(p) > 1 && p[1] == ':' {
		return strings.ToUpper(p[:1]) + ":", p[2:]
	}
	if share, ok := strings.CutPrefix(p, "//"); ok {
		server, rest, _ := strings.Cut(share, "/")
		name, rest, _ := strings.Cut(rest, "/")
		return "//" + server + "/" + name, "/" + rest
	}
	return "", p
}

// windowsNames tidies the part of a path behind its volume as Windows does:
// dots and blanks at the end of a name are dropped, what follows a colon names a
// stream of the same file.
func windowsNames(rest string) (clean, odd string) {
	names := strings.Split(rest, "/")
	for i, name := range names {
		if name == "." || name == ".." {
			continue
		}
		if before, _, ok := strings.Cut(name, ":"); ok {
			name, odd = before, "stream"
		}
		if cut := strings.TrimRight(name, ". "); cut != name {
			name, odd = cut, "trailing-dots"
		}
		if shortName(name) {
			odd = "short-name"
		}
		if stem, _, _ := strings.Cut(strings.ToUpper(name), "."); reservedNames[strings.TrimSpace(stem)] {
			odd = "device"
		}
		names[i] = name
	}
	return path.Clean("/" + strings.Join(names, "/")), odd
}

// shortName says whether a name has the shape of a second name that Windows
// makes for a long one, as SECRET~1.TXT. Which one is not known.
func shortName(name string) bool {
	_, behind, ok := strings.Cut(name, "~")
	return ok && behind != "" && behind[0] >= '0' && behind[0] <= '9'
}

var reservedNames = func() map[string]bool {
	out := map[string]bool{"CON": true, "PRN": true, "AUX": true, "NUL": true, "CONIN$": true, "CONOUT$": true}
	for _, c := range "123456789¹²³" {
		out["COM"+string(c)], out["LPT"+string(c)] = true, true
	}
	return out
}()

// windowsSpellings are the ways to write the same path: either slash, either
// case of the drive.
func windowsSpellings(abs string) []string {
	out := []string{abs}
	if len(abs) > 1 && abs[1] == ':' {
		out = append(out, strings.ToLower(abs[:1])+abs[1:])
	}
	if strings.HasPrefix(abs, "//") {
		out = append(out, abs[1:]) // patterns are clean paths, of one slash
	}
	for _, s := range out[:len(out):len(out)] {
		if strings.Contains(s, "/") {
			out = append(out, strings.ReplaceAll(s, "/", `\`))
		}
	}
	return out
}
