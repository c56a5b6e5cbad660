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

// A rule on a name speaks of the words of a copy, and of no more than it did.
func TestCopiesUnderRulesOnNames(t *testing.T) {
	t.Parallel()
	bashRows(t, guarded, Deny, "cp .env x", "cp x .env", "cp a/.env b/")
	bashRows(t, guarded, Allow, "cp .env.example x", "cp a.txt b", "cp -r src out", "popd; ls")
	bashRows(t, guarded, Ask, "popd; cat a.txt", "popd; cat a/id_rsa/../x", "cd -; cat ./a")
}
