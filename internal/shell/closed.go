package shell

import "strings"

// closed are programs known not to run the words that they are given, beside
// those of inert and those whose grammar this package knows.
var closed = set(`
	git gh glab hub npm pnpm yarn bun go cargo rustc rustup docker podman kubectl helm terraform tofu pulumi aws gcloud az heroku fly vercel netlify
	pip pip3 pipx uv poetry conda gem bundle composer brew apt apt-get apt-cache dnf yum apk pacman zypper dpkg rpm snap flatpak port mvn gradle
	systemctl service journalctl launchctl man info help tldr apropos whatis whereis rg ag ack fd fdfind find sed awk gawk sort uniq wc du split tar
	zip curl wget ssh-keygen rsync scp sftp printf test [ read set shopt export unset less more bat batcat nano make cmake ninja gcc cc g++ clang
	psql mysql sqlite3 redis-cli mongo pytest jest vitest mocha eslint prettier tsc tslint black ruff mypy flake8 isort pylint golangci-lint gofmt
	goimports gopls staticcheck rustfmt swift swiftc javac java dotnet jupyter mkdocs hugo jekyll next vite webpack rollup esbuild playwright cypress
	yq delta diffstat patch openssl gpg age sops vault op crontab command`)

// Closed says whether the program of the unit is known not to run its words.
func (u *Unit) Closed() bool {
	if len(u.Words) == 0 {
		return true
	}
	name := programName(u.Words[0])
	if strings.Contains(u.Words[0], "/") && !strings.HasPrefix(u.Words[0], "/usr/bin/") && !strings.HasPrefix(u.Words[0], "/bin/") {
		return false // a program of the project's may have any name
	}
	return inert[name] || closed[name]
}

// HandsCode says whether words behind the program read as a command that runs
// code which one of them holds, as in "mywrap sed '1e x' f".
func (u *Unit) HandsCode() bool {
	for i := 1; i+1 < len(u.Words); i++ {
		why := programWhy(u.Words[i:])
		if kind, _, _ := strings.Cut(why, ":"); kind == WhyInterpreter || kind == WhyRuns || kind == WhyOption {
			return true
		}
	}
	return false
}
