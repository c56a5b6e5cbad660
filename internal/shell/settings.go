package shell

import "slices"

// settings are the words by which a program sets what it, or its next call,
// runs: script-shell, an alias, an editor, a credential process.
var settings = map[string][][]string{
	"npm":  {{"set"}, {"config", "edit"}, {"c", "edit"}},
	"pnpm": {{"set"}, {"config", "edit"}, {"c", "edit"}},
	"yarn": {{"set"}, {"config", "edit"}},
	"gh": {{"alias", "set"}, {"alias", "import"}, {"config", "set"}, {"extension", "exec"}, {"extension", "install"},
		{"extensions", "exec"}, {"extensions", "install"}, {"ext", "exec"}, {"ext", "install"}, {"codespace", "ssh"}, {"cs", "ssh"}, {"codespace", "cp"}, {"cs", "cp"}},
	"aws":     {{"configure", "set"}, {"configure", "import"}},
	"kubectl": {{"config", "set"}, {"config", "set-credentials"}},
	"pip":     {{"config", "set"}, {"config", "edit"}}, "pip3": {{"config", "set"}, {"config", "edit"}},
	"bundle": {{"config", "set"}},
	"helm":   {{"plugin", "install"}, {"plugin", "update"}},
	"rustup": {{"toolchain", "link"}}, "gem": {{"exec"}},
	"composer": {{"config"}, {"exec"}, {"global"}},
	"gcloud":   {{"compute", "ssh"}, {"compute", "scp"}}, "az": {{"ssh"}, {"extension", "add"}},
	"fly": {{"ssh"}}, "heroku": {{"plugins:install"}, {"run"}},
}

// settingDoor is the last of the words that set one, "" if there is none. They
// may stand behind options and their values.
func settingDoor(name string, args []string) string {
	if end := slices.Index(args, "--"); end >= 0 && (name == "npm" || name == "pnpm" || name == "yarn") {
		args = args[:end] // what follows is for a script
	}
	for _, words := range settings[name] {
		rest := args
		for _, word := range words {
			at := slices.Index(rest, word)
			if at < 0 {
				rest = nil
				break
			}
			rest = rest[at:]
			if word != words[len(words)-1] {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 {
			return words[len(words)-1]
		}
	}
	return ""
}

// remoteArchive says whether tar may take a word for an archive on another host.
func remoteArchive(a string) bool {
	switch {
	case len(a) > 2 && a[0] == '-' && a[1] == '-':
		if i := slices.Index([]byte(a), '='); i > 2 && len("--file") >= i && "--file"[:i] == a[:i] {
			return remote(a[i+1:])
		}
		return false
	case len(a) > 1 && a[0] == '-':
		i := slices.Index([]byte(a), 'f')
		return i > 0 && remote(a[i+1:])
	}
	return remote(a)
}

// remote: a colon with no slash in front of it.
func remote(file string) bool {
	for i := range len(file) {
		switch file[i] {
		case '/':
			return false
		case ':':
			return true
		}
	}
	return false
}
