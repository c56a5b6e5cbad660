package policy

import "testing"

// placed names files by their place, where guarded names them by what they are
// called.
const placedFiles = `{"*":"allow","external_directory":"allow","path":{"*":"allow","~/.ssh/*":"deny","config/prod.json":"deny"}}`

func TestFoldersThatHoldDeniedFiles(t *testing.T) {
	t.Parallel()
	bashRows(t, placedFiles, Deny,
		"cp x/id_rsa ~/.ssh", "mv x/id_rsa ~/.ssh/", "install x/id_rsa ~/.ssh", "cp -t ~/.ssh x/id_rsa", "cp prod.json config", "cp prod.json config/", "cp -r x/.ssh ~", "cp -r x/.ssh $HOME", "scp h:x/prod.json config",
		"git clone https://x.y/z ~/.ssh", "git init ~/.ssh", "git format-patch -o ~/.ssh HEAD", "chmod -R 777 ~/.ssh", "docker cp ~/.ssh x:/y", "curl -d x file://$HOME/.ssh/id_rsa", "curl -s \"file://${HOME}/.ssh/id_rsa\"",
		"cd config; curl -O https://x.y/prod.json", "curl -sO --output-dir config https://x.y/prod.json", "wget -P config https://x.y/a/prod.json", "cd ~/.ssh && wget https://x.y/id_rsa", "curl -w '%output{config/prod.json}x' https://x.y",
		"curl -w '%output{>>config/prod.json}x' https://x.y", "pushd config; cat prod.json", "pushd ~/.ssh && cat id_rsa", "cd -L config; cat prod.json")
	bashRows(t, placedFiles, Ask,
		"cp -r new/config .", "cp -r x/. ~", "tar -C config -cf - .", "tar cf x.tar .", "zip -r x.zip config", "mv config x", "docker build ~", "python3 -m http.server -d ~", "ln -s .. h; cat h/h/me/.ssh/id_rsa; ls ~ && ln -s ~ h",
		"popd; cat id_rsa", "cd -; cat id_rsa", "cd -; cat ../.ssh/id_rsa", "pushd +1; cat prod.json", "cd -P x; head prod.json", "cd -; tee prod.json", "cd -; cat < prod.json", "curl 'https://x.y/{config}' -o '#1/prod.json'")
	bashRows(t, placedFiles, Allow,
		"cp x/a src", "cp x/id_rsa keys", "cp -r src out", "cp a.json config.json", "mv a b", "cp -r x/.ssh keys/", "scp x/a h:~/.ssh", "git clone https://x.y/z", "git clone https://x.y/z out", "git init", "chmod -R 755 src", "docker build .",
		"cd config; curl -O https://x.y/dev.json", "curl -o x https://x.y/config/prod.json", "wget -O x https://x.y/prod.json", "curl -w '%{http_code}' https://x.y", "pushd src; cat prod.json", "pushd src && npm test && popd", "cd src && npm test; cd -",
		"tar cf x.tar src", "tar -C src -cf - .", "ls ~", "cd ~", "ls -la ~/.ssh", "mkdir -p ~/.ssh", "chmod 700 ~/.ssh", "find ~/.ssh -type f", "popd; ls", "cd -; npm test", "prettier --write src", "pytest config")
}

// A folder that git makes, or fills, is one however it is written.
func TestFoldersThatGitFills(t *testing.T) {
	t.Parallel()
	rules := `{"*":"allow","path_write":{"vendor/*":"deny"}}`
	bashRows(t, rules, Deny, "git format-patch -o vendor HEAD", "git format-patch -ovendor HEAD", "git format-patch --output-directory=vendor HEAD", "git clone u vendor", "git init vendor", "git worktree add vendor", "git worktree add ./vendor", "git submodule add u vendor")
	bashRows(t, rules, Allow, "git format-patch -o out HEAD", "git clone https://x.y/z", "git clone u lib", "git init", "git init .", "git worktree add lib main", "git log vendor", "git submodule update --init")
}

// A rule on a name speaks of the words of a copy, and of no more than it did.
func TestCopiesUnderRulesOnNames(t *testing.T) {
	t.Parallel()
	bashRows(t, guarded, Deny, "cp .env x", "cp x .env", "cp a/.env b/")
	bashRows(t, guarded, Allow, "cp .env.example x", "cp a.txt b", "cp -r src out", "popd; ls")
	bashRows(t, guarded, Ask, "popd; cat a.txt", "popd; cat a/id_rsa/../x", "cd -; cat ./a")
}

// What git takes in front of its subcommand and changes nothing is no part of
// what a rule has to say.
func TestOptionsInFrontOfGitsSubcommand(t *testing.T) {
	t.Parallel()
	rules := `{"*":"ask","path":{"*":"allow","config/prod.json":"deny"},"external_directory":"ask","bash":{"*":"ask","git status *":"allow","git log *":"allow","git show *":"allow","git log --all *":"ask"}}`
	bashRows(t, rules, Allow, "git -C web status", "git --no-pager log", "git -P log -n 3", "git --no-optional-locks status --short", "git -C web --no-pager log --oneline", "git -C web -C src status", "git --literal-pathspecs log -- a", "git -C config show HEAD:./dev.json")
	bashRows(t, rules, Ask, "git -C ../x status", "git -C /opt/x status", "git -C $X status", "git -C \"$X\" log", "git -C web push", "git -C web", "git -C status", "git -c core.pager=x log", "git --git-dir=x status", "git --work-tree=x status",
		"git --paginate log", "git --exec-path=x status", "git -C web -c a.b=c log", "git --no-pager log --all", "git -C web x/y", "git --bare log", "mygit -C web status", "./git -C web status", "git -C web --no-pager $x")
	pushes := `{"*":"ask","bash":{"*":"ask","git *":"allow","git push *":"deny"}}`
	bashRows(t, pushes, Deny, "git --attr-source HEAD push", "git --attr-source=HEAD push", "git --shallow-file x push origin", "git -P --attr-source HEAD push")
	bashRows(t, pushes, Allow, "git --attr-source HEAD status", "git --attr-source=HEAD log", "git log push")
	bashRows(t, rules, Deny, "git -C config show HEAD:./prod.json", "git -C config log -- prod.json", "git -C web -C ../config log prod.json")
}

// A tool that nobody here knows may run a command under any name that says so.
func TestArgumentsThatMayBeCommands(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","bash":{"*":"allow","id *":"deny"}}`))
	rule := func(args m) Action {
		return s.Rule(Call{Tool: "frob", Input: inputOf(t, args), Cwd: "/repo", Home: "/home/me"}).Action
	}
	for _, args := range []m{{"cmd": "id x"}, {"commands": []string{"ls", "id x"}}, {"commands": []string{"id", "x"}}, {"script": "ls; id x"}, {"Shell_Command": "id x"}, {"cmdline": "id x"}, {"commandLine": "id x"}} {
		if got := rule(args); got != Deny {
			t.Errorf("%v is %s", args, got)
		}
	}
	for _, args := range []m{{"cmd": "ls"}, {"commands": []string{"ls", "pwd"}}, {"code": "id = 1"}, {"text": "id x"}, {"script": "build"}} {
		if got := rule(args); got != Allow {
			t.Errorf("%v is %s", args, got)
		}
	}
}
