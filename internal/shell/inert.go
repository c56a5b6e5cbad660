package shell

import (
	"slices"
	"strings"
)

// inert are programs that no word can make run another program, or reach files
// that no word names. What a word of theirs will be need not be known.
var inert = set(`
	: true false echo ls cat wc du head tail nl tac rev cut paste join comm fold fmt expand unexpand tr seq yes basename dirname realpath readlink
	cd pwd pushd popd dirs mkdir rmdir rm cp mv ln touch chmod chown chgrp stat file df sleep cmp diff   md5sum sha1sum sha224sum sha256sum
	sha384sum sha512sum shasum b2sum cksum sum base32 base64 od xxd hexdump strings which type uname id whoami groups logname tty nproc arch
	printenv ps pgrep kill pkill killall lsof free uptime w who last jq grep egrep fgrep zgrep tee expr mktemp truncate sync exit return break continue
	shift  umask getconf locale numfmt tsort factor ping dig host nslookup column clear tput date cal gzip gunzip zcat bzip2 bunzip2
	xz unxz zstd unzip zipinfo tree  tokei    times pidof   lsblk`)

// inertGit are git's subcommands of that kind. Hooks and settings of the
// repository may run programs; no word chooses them.
var inertGit = set(`
	add status rm mv restore checkout switch branch stash reset rev-parse ls-files blame rev-list commit tag cat-file show-ref symbolic-ref
	merge-base name-rev describe check-ignore update-index cherry ls-tree hash-object clean var remote shortlog`)

// inertGH are subcommands of gh that only talk to the service.
var inertGH = set(`pr issue repo run release api search label workflow gist status browse cache secret variable ruleset project`)

// scripted are programs for which a word may be a program of its own, or name a
// setting that is one, wherever it stands.
var scripted = set(`
	sed awk gawk mawk nawk sqlite3 psql mysql mariadb make gmake tar bsdtar uniq vim vi nvim emacs unset export declare typeset
	local readonly let getopts mapfile readarray compgen complete bind alias set shopt printf test [ read trap sort shuf split rsync gcc cc
	g++ c++ clang clang++ less more man yq`)

// options are those of a program that are known: which take the next word as
// their value, where a word can be no option and means no program, and which do
// not.
type options struct{ valued, plain string }

var taking = map[string]options{
	"find": {` -name -iname -path -ipath -wholename -iwholename -regex -iregex -newer -maxdepth -mindepth -mtime -mmin -size -type -user -group -perm `,
		` -L -H -P -print -print0 -not -a -o -and -or -empty -prune -depth `},
	"rg":    {` -g --glob -e --regexp -t --type -T -A -B -C -m --max-count --iglob `, ` -n -l -i -o -c -w -F -U -S -v -N --hidden --no-heading --files --no-ignore `},
	"git":   {` --author --grep --since --until --after --before `, ` --oneline --stat -p --name-only --name-status --cached --staged -q --quiet --all --decorate --graph --no-color --short -s --follow --tags --prune --force -f -u --set-upstream `},
	"npm":   {` --prefix -w --workspace `, ` -s --silent -D --save-dev -g `},
	"go":    {` -run -bench -count -timeout -o -tags -coverprofile -skip -fuzz -fuzztime -benchtime -cpu -parallel `, ` -v -race -short -x -failfast -cover -a `},
	"cargo": {` -p --package --features --bin --test --example --target --manifest-path `, ` -q --quiet --release --all --workspace --lib -v --all-features `},
	"curl": {` -H --header -d --data --data-raw --data-binary --data-urlencode -X --request -o --output -u --user -A --max-time -m -w -F --url `,
		` -s -S -L -f -k -v -i -I -sS -sSL -sL -fsSL -fsS -sf -sSf --silent --fail --location `},
	"wget":    {` -O --output-document --header `, ` -q -nv -c --quiet `},
	"docker":  {` -t --tag -f --file --name --filter --format --since --until -n --tail --build-arg --platform `, ` --rm -q -a --no-cache --pull -d `},
	"kubectl": {` -n --namespace -l --selector -o --output -f --filename -c --container --context `, ` -A --all-namespaces -w `},
	"pytest":  {` -k -m -n --maxfail `, ` -q -v -x -s -vv `},
}

func set(names string) map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(names) {
		out[n] = true
	}
	return out
}

// wordsHarmless says whether a program does no more than its rule allows
// whatever becomes of the words that are not known.
func wordsHarmless(name string, words []word) bool {
	args := words[1:]
	switch name {
	case "git":
		return gitHarmless(args)
	case "gh":
		// Behind "--", "gh repo clone" takes options of git.
		if len(args) > 0 && args[0].fixed() && inertGH[args[0].text] {
			return !slices.ContainsFunc(args, func(r word) bool { return !r.one || r.text == "--" })
		}
	case "command":
		return len(args) > 0 && args[0].fixed() && (args[0].text == "-v" || args[0].text == "-V")
	case "test", "[":
		return testHarmless(args)
	case "printf":
		return len(args) > 0 && args[0].fixed() && !strings.HasPrefix(args[0].text, "-")
	case "read":
		return false
	}
	if inert[name] {
		return true
	}
	if interprets(name) && !slices.Contains(readers, name) {
		return scriptHarmless(name, args)
	}
	return inPlace(name, args, scripted[name])
}

// gitHarmless is wordsHarmless for git, whose subcommand has to be known.
func gitHarmless(args []word) bool {
	texts := make([]string, len(args))
	for i, r := range args {
		texts[i] = r.text
	}
	global, rest := cut(texts, gitValued)
	at := len(texts) - len(rest)
	if len(rest) == 0 {
		return false
	}
	for i := range at + 1 {
		// "git -C "$dir" status": the value of -C is a folder.
		if !args[i].fixed() && !(i > 0 && i < len(global) && args[i-1].text == "-C" && args[i].one) {
			return false
		}
	}
	return inertGit[rest[0]] || inPlace("git", args[at+1:], false)
}

// testHarmless is wordsHarmless for test and [: with a few words, what is an
// operator is told by its place. -v expands an index.
func testHarmless(args []word) bool {
	if n := len(args); n > 0 && args[n-1].fixed() && args[n-1].text == "]" {
		args = args[:n-1]
	}
	for _, r := range args {
		if !r.fixed() && !r.one {
			return false
		}
	}
	if len(args) > 2 && args[0].fixed() && args[0].text == "!" {
		args = args[1:]
	}
	switch len(args) {
	case 0, 1:
		return true
	case 2:
		return args[0].fixed() && strings.HasPrefix(args[0].text, "-") && args[0].text != "-v" && args[0].text != "-R"
	case 3:
		return args[1].fixed() && slices.Contains(comparisons, args[1].text)
	}
	return false
}

var comparisons = []string{"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}

// scriptHarmless is wordsHarmless for interpreters: what stands behind the file
// that they run is for that program.
func scriptHarmless(name string, args []word) bool {
	texts := make([]string, len(args))
	for i, r := range args {
		texts[i] = r.text
	}
	in, ok := interpreters[name]
	if !ok {
		in = interpreters[strings.TrimRight(name, "0123456789.-")]
	}
	if isShell(name) {
		in = shellGrammar
	}
	operands, odd := in.read(texts)
	if odd != "" || len(operands) == 0 {
		return false
	}
	for _, r := range args[:len(args)-len(operands)+1] {
		if !r.fixed() {
			return false
		}
	}
	return true
}

// inPlace says whether every unknown word stands where it can be no option and
// no part of a script: behind a fixed front, as the value of an option, or
// behind "--".
func inPlace(name string, args []word, script bool) bool {
	d, known := doors[name], taking[name]
	dashes, sure := false, true // sure: no option in front may take this word
	for i := 0; i < len(args); i++ {
		r := args[i]
		switch {
		case !r.fixed():
			if script || len(d.texts) > 0 || !(dashes && r.one && name != "go" && name != "find") && (!r.one && r.kind != Glob || !placed(r.front, d)) {
				return false
			}
			sure = true
		case dashes:
		case r.text == "--" && sure:
			dashes = true
		case sure && strings.Contains(known.valued, " "+r.text+" ") && i+1 < len(args) && args[i+1].one:
			if i++; !args[i].fixed() && (script || len(d.texts) > 0) {
				return false
			}
		default:
			sure = !strings.HasPrefix(r.text, "-") || strings.Contains(r.text, "=") || strings.Contains(known.plain, " "+r.text+" ")
		}
	}
	return true
}

// placed says whether a fixed front keeps a word from being an option that is
// not known, and from being one of the words that are doors.
func placed(front string, d doorway) bool {
	if front == "" {
		return false
	}
	for _, w := range d.words {
		if strings.HasPrefix(front, w) || strings.HasPrefix(w, front) {
			return false
		}
	}
	if front[0] != '-' {
		return true
	}
	return strings.HasPrefix(front, "--") && strings.Contains(front, "=") && d.option(front) == ""
}
