package shell

import (
	"strings"
	"testing"
)

// why reads one command and returns what keeps it from being simple.
func why(text string) string { return Read(text).Why }

func TestProgramsThatRunOthersAreNotSimple(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		WhyOption: {
			"git grep '-Otouch x' hi", "git grep --open-files='touch x' hi", "git grep -nO./x hi", "git fetch --upload-pa='touch x' .",
			"git ls-remote --exe='touch x' .", "git push --receive-pa=x .", "git push --exe=x .", "git rebase '-xtouch x' HEAD~1",
			"git rebase --exe=x HEAD~1", "git clone '-utouch x' . c", "git clone --upload-pa=x . c", "git clone --templ=evil . c",
			"git archive --remot=. --exe=x HEAD", "git diff --outpu=Makefile", "git log --ext-dif", "git --git-dir=evil status", "git submodule foreach ls",
			"sort -S 1k --compress-prog=./x big", "sort -o out in", "sort -uo out in", "tar --checkpoint-act=exec=x -cf a f",
			"tar -cf a --use-compress-prog=x f", "tar '-cItouch x' -f a f", "tar --to-com=x -xf b", "tar cfI a x f", "tar xT list -f a", "fd -Hx touch x",
			"fd -HX rm", "rsync -ae 'touch x' a b:c", "rsync --rs=x a b:c", "less '+!touch x' f", "find . -fprintf f x", "wc --files0-from=list",
			"printf -v 'a[$(x)]' x", "printf -v x y", "make 'X=$(shell x)'", "go env -w CC=x", "go build -ldflags=-extld=x ./...", "curl -sK f", "wget --use-ask=x u",
			"split --filt=x f", "psql -c '\\! x'", "cmake -E env x", "npm test --script-shell=x", "alias ls=rm", "hash -p /bin/rm ls", "gtar -xIx -f a",
		},
		WhyInterpreter: {
			"python3 -Ic x", "python3 -m timeit x", "python3 -mpdb x.py", "python3 /dev/stdin", "php -r x", "php --run x", "node --eval=x", "node -pe x",
			"node --import 'data:text/javascript,x' y.js", "perl -le x", "perl '-Mstrict;x' y", "ruby -e x", "PYTHON3 -c x", "fish --command=x", "fish -C x",
			"bash --norc -c x", "bash -oc errexit x", "gawk -o/x '{print}' f", "awk -i inplace x f", "awk '@load \"filefuncs\"'", "awk '{print > \"x\"}'", "awk '{print $1 > $2}'", "awk '{ if ($1) print \"a\" >> f }'", "awk '{print | \"sh\"}'",
			"awk '{\"x\" | getline}'", "awk '/\"/ {print \"a\" > \"b\"}'", "awk 'BEGIN{printf \"%s\", 1 > \"f\"}'", "gawk 'BEGIN{f=\"sys\" \"tem\";@f(\"x\")}'", "julia -e x", "ed f", "ex -sc '!x' -cq",
			"vim -S x", "vim -es f", "tsx -e x", "deno --quiet eval x",
		},
		WhyRuns: {
			"python3 --check-hash-based-pycs always --odd -c x", "node --odd x -e y", "php -d auto_prepend_file=x y.php", "nvim '+!x'",
			"sed -n '1e touch x' f", "sed -n '1w x' f", "sed 's/a/b/e' f", "sed 's/a/b/w x' f", "sed 's/a/b/gew x' f", "sed -f x f", "sed -ne '1e x' f",
			"sed --expr='1e x' f", "sed -e p -e '1!e x' f", "sed '/a/{e x' f", "sed '1r .env' f", "sed 'y/a/b/;e x' f", "sed 's/[/]e x;s/a]/b/' f",
			"sed '\\,a,e x' f", "sed 'a\\\nx\ne x' f", "uniq in out", "uniq -c -f 1 in out", "sqlite3 a '.shell x'", "sqlite3 -cmd '.shell x' a",
			"sqlite3 a \"select writefile('x',1)\"", "git config alias.st '!x'", "git config core.fsmonitor x", "git config -e", "test -v 'a[$(x)]'",
			"read 'a[`x`]'", "unset 'a[$(x)]'", "compgen -W '$(x)'", "compgen -C x a", "emacs --batch --eval x",
		},
		WhyWrapper: {
			"prlimit rm x", "numactl rm x", "x86_64 rm x", "i386 rm x", "valgrind rm x", "perf stat rm x", "unbuffer rm x", "ssh-agent rm x",
			"tmux new -d 'rm x'", "pnpm exec rm x", "pnpm --filter test exec rm x", "yarn exec rm x", "npm x -c rm", "uv run rm x", "uvx rm", "poetry run rm x",
			"bundle exec rm x", "nix develop -c rm x", "noglob rm x", "mise exec -- rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "gtimeout --odd 5 rm x", "SUDO rm x",
		},
	} {
		for _, text := range texts {
			if got := why(text); !strings.HasPrefix(got, want+":") {
				t.Errorf("%q: %q, want %s", text, got, want)
			}
		}
	}
}

// Commands of every day, which a rule that allows their program allows.
func TestEverydayCommandsAreSimple(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"git status -sb", "git grep -nE 'a|b' -- src", "git grep -e foo -C 3", "git commit -am 'Output --exec'", "git rebase --onto main a b", "git rebase -i main",
		"git clone --depth 1 -b main https://example.com/a.git x", "git fetch --all --prune", "git push -u origin x", "git config user.name",
		"git config --get remote.origin.url", "git config --list", "git config user.email a@b.c", "git config --global init.defaultBranch main",
		"git archive HEAD", "git submodule update --init", "git log --oneline -n 5", "git show HEAD:README.md", "git cherry-pick -x abc", "git --no-pager log",
		"sed -n 1,20p f", "sed -n '1,20p;30q' f", "sed 's/a/b/g' f", "sed -e 's/a/b/' -e '/x/d' f", "sed -i.bak 's|/usr|/opt|g' f", "sed -i '' 's/a/b/' f",
		"sed -E 's/(a+)\\/b/\\1/;s/c/d/2p' f", "sed '/^$/d' f", "sed -n '/start/,/end/p' f", "sed '1i\\hello' f", "sed '$a hello world' f",
		"sed -ne '/func/{=;p}' f", "sed 's/[^a-z]//g' f", "sed 's/e/w/' f", "sort -u a", "sort -k2,2n -t, a", "uniq -c a", "uniq -f 1 a",
		"tar czf a.tgz src", "tar -czf a.tgz src", "tar xf a.tgz -C out", "tar --extract --file a.tar", "tar --exclude=.git -cf a .", "fd -HI pattern src",
		"fd -e go", "rg --pretty foo", "rsync -avz --delete --exclude .git a/ b/", "find . -name x -type f", "make test -j4", "make VERSION=1.2 V=1", "npm run build",
		"npm test -- --watch", "npm i -g x", "pnpm --filter web test", "yarn add x", "cargo build --release", "go test ./... -run TestX -count=1 -race",
		"go build -ldflags '-s -w -X main.v=1' ./...", "go env GOPATH", "python3 x.py -c a", "python3 -mpytest", "python3 -u -W ignore x.py", "python3 --version",
		"python3 -m venv .venv", "node x.js -e", "node --max-old-space-size=4096 x.js", "node --import tsx x.ts", "node --test --test-reporter spec",
		"php -l x.php", "ruby -Ilib test.rb", "perl -c x.pl", "Rscript x.R", "bun install", "deno test", "bash -x script.sh", "bash --version", "echo 'a[$(x)]'",
		"printf '[%s] $5\\n' x", "test -f x", "awk -F'|' '{print $2}' f", "awk -F '|' '{print $2}' f", "awk 'NR > 1 {s += $3} END {print s}' f", "awk '$1 > 2 {print \"a|b > c\"}' f", "awk -F: '$3 == x || $4 {print}' f", "curl -sSL -o x https://example.com/a", "curl -fsSL -H 'A: b' https://x.y/z",
		"wget -nv -O x https://e.com", "less +G f", "man ls", "vim f", "sqlite3 -readonly a.db 'select 1'", "sqlite3 a.db .tables", "psql -c 'select 1' db",
		"zip -r a.zip src", "split -l 100 f", "gcc -O2 -Wall -o x x.c", "install -m 755 a b", "cmake -S . -B build", "perf report", "arch", "xargs --version",
		"uv sync", "poetry install", "bundle install", "nix build", "docker ps", "kubectl get pods", "tsx src/x.ts --watch", "julia --project=. x.jl",
	} {
		if got := why(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestNewCarriersAreLookedInto(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"prlimit rm x", "uv run --with y rm x", "pnpm exec rm x", "tmux new -d 'rm x'", "nix develop -c rm x", "bundle exec rm x", "env '-Srm x'", "noglob rm x",
		"=rm x", "perf stat -- rm x", "fish --command='rm x'", "pwsh -Command 'rm x'", "bash -oc errexit 'rm x'", "bash -euo pipefail -c 'rm x'", "bash -eo pipefail -uc 'rm x'", "gtimeout 5 rm x",
	} {
		found := false
		for _, u := range Read(text).Units {
			for _, r := range append(u.Readings(), u.Text) {
				found = found || r == "rm x"
			}
		}
		if !found {
			t.Errorf("%q: rm is not found in %+v", text, Read(text).Units)
		}
	}
}

// FuzzDoors: no panic, and no word that opens a door is hidden by words around
// it.
func FuzzDoors(f *testing.F) {
	f.Add("sort", "-u a", "b")
	f.Add("git grep", "-n", "-- x")
	f.Add("sed", "-n -e p", "s/a/b/")
	f.Fuzz(func(t *testing.T, program, front, back string) {
		words := append(strings.Fields(program), strings.Fields(front)...)
		if len(words) == 0 {
			return
		}
		programWhy(append(words, strings.Fields(back)...))
		for name, door := range map[string]string{"sort": "--compress-prog=x", "tar": "--to-com=x", "find": "-delete", "fd": "--exec"} {
			args := append(append(strings.Fields(front), door), strings.Fields(back)...)
			if got := programWhy(append([]string{name}, args...)); got == "" {
				t.Fatalf("%s %q is simple", name, args)
			}
		}
	})
}

// FuzzSed: a script that ends in a command which runs a program is never
// harmless, whatever harmless script stands in front of it.
func FuzzSed(f *testing.F) {
	f.Add("s/a/b/g;p")
	f.Add("/[/]/d")
	f.Add("y/abc/xyz/;1,$!{p}")
	f.Fuzz(func(t *testing.T, script string) {
		if strings.HasSuffix(script, "\\") || !sedHarmless(script, false) || !sedHarmless(script, true) {
			return
		}
		if sedHarmless(script+"\ne x", false) && sedHarmless(script+"\ne x", true) {
			t.Fatalf("%q hides a command", script)
		}
	})
}
