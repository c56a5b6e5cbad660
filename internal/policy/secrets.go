package policy

import (
	"path"
	"strings"
)

// secretNames are names of files that hold secrets, as lower-case patterns.
var secretNames = compileAll(
	".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	".netrc", ".npmrc", ".pypirc", ".git-credentials",
	// Assent's own: credentials files and the seeds of keys.
	"*.creds", "*.nk",
)

// samples are the endings of files that only show what a secret would look
// like.
var samples = []string{".env.example", ".env.sample", ".env.template"}

// secretFolders are folders under which everything is secret, and files that
// are only secret in their folder.
var secretFolders = []string{
	".ssh", ".aws", ".gnupg", ".kube", ".config/gcloud", ".docker/config.json",
	".config/assent", ".local/share/assent", ".local/state/assent",
}

// secretExamples stand for the names when a glob is asked what it could match.
var secretExamples = []string{
	".env", ".env.local", "a.pem", "a.key", "a.p12", "a.pfx", "a.jks", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	".netrc", ".npmrc", ".pypirc", ".git-credentials", ".ssh", ".aws", ".gnupg", ".kube", "a.creds", "a.nk",
}

func compileAll(patterns ...string) []wildcard {
	out := make([]wildcard, len(patterns))
	for i, p := range patterns {
		out[i] = compileWildcard(p)
	}
	return out
}

// secretIn returns the part of s that has the shape of a secret's path, "" if
// there is none. s may be a path, a word or a whole text; extra are more
// patterns, matched against path and name. Letters count in either case, and
// backslashes as slashes: on some hosts they are.
func secretIn(s string, extra []wildcard) string {
	s = strings.ToLower(strings.ReplaceAll(s, `\`, "/"))
	if secretPath(s, extra) {
		return s
	}
	for _, token := range strings.FieldsFunc(s, separates) {
		if secretPath(token, extra) {
			return token
		}
	}
	return ""
}

// separates says whether a path may end at r inside of a text.
func separates(r rune) bool { return strings.ContainsRune(" \t\r\n\x00'\"`=:,;@()<>|&", r) }

// secretPath says whether one path has the shape of a secret.
func secretPath(p string, extra []wildcard) bool {
	clean := path.Clean("/" + p)
	name := path.Base(clean)
	for _, w := range extra {
		if w.match(p) || w.match(clean) || w.match(clean[1:]) || w.match(name) {
			return true
		}
	}
	for _, folder := range secretFolders {
		if strings.Contains(clean+"/", "/"+folder+"/") {
			return true
		}
	}
	return secretName(name) || globbedSecret(clean)
}

func secretName(name string) bool {
	for _, s := range samples {
		if name == s {
			return false
		}
	}
	for _, w := range secretNames {
		if w.match(name) {
			return true
		}
	}
	return false
}

// globbedSecret says whether a part of the path is a glob that could select a
// secret. Brackets and braces are taken for a star: too wide is safe here.
func globbedSecret(clean string) bool {
	if !strings.ContainsAny(clean, "*?[{") {
		return false
	}
	for _, part := range strings.Split(clean, "/") {
		if !strings.ContainsAny(part, "*?[{") {
			continue
		}
		w := compileWildcard(starred(part))
		for _, example := range secretExamples {
			hidden := example[0] == '.' && part[0] != '.' && part[0] != '[' && part[0] != '{'
			if !hidden && w.match(example) {
				return true
			}
		}
	}
	return false
}

// starred turns bracket and brace expressions into stars.
func starred(glob string) string {
	var b strings.Builder
	var until byte
	for i := range len(glob) {
		c := glob[i]
		switch {
		case until != 0:
			if c == until {
				until = 0
			}
		case c == '[':
			until = ']'
			b.WriteByte('*')
		case c == '{':
			until = '}'
			b.WriteByte('*')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
