package shell

import "testing"

// Lines by which something runs, or is written, that no word seems to say.
var hiddenPrograms = map[string][]string{
	"the name of a variable in quotes": {`X=ls; read X\X <<< a; read "X" <<< rm; $X y`, `FOO=ls; read F\OO <<< rm; $FOO x`, `FOO=ls; read "F"OO <<< rm; $FOO x`, `FOO=ls; mapfile -t F'O'O < f; $FOO x`,
		`FOO=ls; read -aF\OO <<< rm; $FOO x`, `FOO=ls; getopts a: F\OO; $FOO x`, `FOO=ls; wait -p F\OO; $FOO x`, `FOO=ls; unset F\OO; $FOO x`, `FOO=ls; printf -v F\OO rm; $FOO x`,
		`FOO=ls; read F\OO[0] <<< rm; $FOO x`, `FOO=ls; read F$'\x4f'O <<< rm; $FOO x`, `FOO=ls; read F{O,}O <<< rm; $FOO x`, `a=FO; FOO=ls; read ${a}O <<< rm; $FOO x`, `FOO=ls; while $FOO x; do read F\OO; done`},
	"what the shell sets": {`REPLY=1; read <<< 'a[$(x)]'; echo $((REPLY))`, `_=1; echo 'a[$(x)]'; echo $((_))`, `OPTARG=1; getopts a: x -a b; echo $((OPTARG))`, `MAPFILE=1; mapfile < f; echo $((MAPFILE))`,
		`OPTIND=1; echo $((OPTIND))`, `COMP_LINE=1; echo $((COMP_LINE))`, `PIPESTATUS=1; (( PIPESTATUS ))`},
	"an index that is a name": {`b='x[$(x)]'; [ -v 'a[b]' ]`, `test -v a[b]`, `read 'a[b]' <<< 1`, `unset 'a[b]'`, `unset 'a[0'`, `wait -p 'a[b]'`, `getopts x 'a[b]'`, `[ ! -v 'a[b+1]' ]`, `[[ -v a[b] ]]`,
		`[[ 'a[b]' -eq 1 ]]`, `printf -v 'a[b]' x`},
	"make": {`make 'X=${shell x}'`, `make 'X!=x'`, `make SHELL:=./x`, `make SHELL::=./x`, `make X?=x`, `make X+=x`, `make 'X := x'`, `make CC=x y`, `make RM=x`, `make PREFIX=/x install`, `make VERSION='1;x'`,
		`make VERSION=-x`, `make VERSION='$(x)'`, `make -f /dev/stdin <<E`, `make -f - < x`, `make -sf- < x`, `make -f//dev/stdin < x`, `make --file=- < x`, `make --makef=/dev/stdin < x`, `make --file - < x`, `make -f <(x)`,
		`RM=x make clean`, `V='1;x' make`, `V=$x make`, `RM=x timeout 5 make clean`, `RM=x; export RM; make`, `export RM=x; make`, `export RM; make`, `make -LEx`, `echo x > Makefile; make`, `echo x > a.mk; make -f a.mk`},
	"awk": {"awk -f - <<'E'\nx\nE", `awk -f /dev/stdin < x`, `awk -f//dev/stdin < x`, `awk -nf - < x`, `awk -f ../../dev/stdin < x`, `awk -f <(x)`, `cd /dev; awk -f stdin`, "awk 'BEGIN { # \"\nprint \"x\" | \"id\" # \"\n}'",
		"awk 'BEGIN{print \"x\",\n\"y\" > \"o\"}'", "awk 'BEGIN{print \"x\" \\\n > \"o\"}'", "awk '{print a ||\nb > \"o\"}'", "awk '{print a ?\nb :\nc > \"o\"}'", `awk '/x/ {print "a;" > "b"}'`, `awk -v f=o '{print /;/ > f}'`,
		"awk '# \"\n{print 1 > \"o\" # \"\n}'", "awk '{print \"a\nb\" > f; \"}'", `echo x > p.awk; awk -f p.awk`},
	"sed":          {`sed ':a e id' f`, `sed 'ba e id' f`, `sed 't e id' f`, "sed ':a\te id' f", "sed 'a foo\\\\\ne id' f", `sed ': a e id' f`},
	"input":        {`echo x | bash //dev/stdin`, `python3 //dev/stdin < x`, `bash /./dev/stdin < x`, `bash ../../../dev/stdin < x`, `cd /dev && bash stdin`, `cd / && bash dev/stdin`, `bash /proc/self/fd/0 < x`, `cd /proc && bash self/fd/0`, `cd /dev/fd && python3 0`, `source //dev/stdin <<< x`, `node -r //dev/stdin y.js`, `node --import=//dev/stdin y.js`},
	"npm and yarn": {`Npm_config_script_shell=x npm test`, `NPM_Config_Script_Shell=x npm test`, `yarn_script_shell=x yarn test`, `Yarn_x=y yarn`, `Npm_config_script_shell=x; export Npm_config_script_shell; npm test`},
	"exports": {`X='y -z'; export X; ls`, `X=../../.env; export X; ls`, `export X; X=/tmp/evil; ls`, `X=$y; export X; ls`, `read X; export X; ls`, `for X in /a; do export X; done`, `X=/a; declare -x X; ls`, `declare -x X; X=/a; ls`,
		`declare X=/a; export X`, `export X=1; X+=/a; ls`},
	"compilers": {`gcc --prefix=./ -c y.c`, `gcc --prefix ./ -c y.c`, `cc --prefi=./ y.c`, `gcc @x`, `gcc-13 -B./ y.c`, `gcc -Wl,-plugin,./x y.c`, `clang -fuse-ld=/x y.c`, `DEPENDENCIES_OUTPUT=f gcc y.c`, `SUNPRO_DEPENDENCIES=f gcc y.c`, `export DEPENDENCIES_OUTPUT; gcc y.c`,
		`java -XX:OnError=x -version`, `java '-XX:OnOutOfMemoryError=x' Y`, `java -javaagent:x Y`, `pylint --init-hook=x y.py`, `pylint --init x y.py`},
	"settings": {`GH_BROWSER=id gh browse`, `npm config set script-shell x`, `npm set script-shell x`, `npm c set script-shell=x`, `npm pkg set scripts.test=x`, `npm --prefix y config set script-shell x`, `yarn config set yarnPath x`, `yarn set version ./x`,
		`pnpm config set script-shell x`, `gh alias set x '!id'`, `gh alias import f`, `gh config set pager x`, `gh config -h x set browser y`, `aws configure set credential_process x`, `aws --profile p configure set credential_process x`,
		`kubectl config set-credentials x --exec-command=y`, `kubectl config set users.x.user.exec.command y`},
	"tar": {`tar cf evil:x .`, `tar -cf evil:x .`, `tar -cfevil:x .`, `tar --file=evil:x -c .`, `tar --fil=u@evil:x -c .`},
}

// Their neighbours, which do what they say.
var plainPrograms = []string{
	`read -r a b <<< x`, `X=ls; read -r l; $X y`, `n=1; echo $((n + 1))`, `read -p 'go on? [y/N] ' x`, `unset 'a[0]'`, `unset a`, `[ -v a ]`, `[ "$a" = '[x]' ]`, `test -f 'a[b]'`, `[ -v 'a[1]' ]`,
	`make VERSION=1.2 V=1`, `make -j4 -C sub test`, `make -f sub/Makefile`, `make --file=x.mk`, `timeout 5 make`, `CI=1 make all`, `V=1 timeout 5 make`, `V=1 npm test`, `echo x > y.txt; make`,
	`awk -f x.awk f`, `awk '{print $1 ";" $2}'`, "awk '{\n  print $1\n}\n$2 > 3 { n++ }'", `awk '!/^#/' f`, `awk '/^#/ {next} {print}' f`, `awk '$1 > 2 || $2 {print}' f`,
	`sed ':a;N;$!ba;s/x/y/' f`, `sed -e ':a' -e 's/x/y/;ta' f`, "sed ': a\ns/x/y/\nt a' f", `sed 'a hello' f`,
	`bash dev/setup.sh`, `python3 ../dev/x.py`, `node --stack-size=900 x.js`, `python3 x.py /dev/stdin`, `Npmx=1 npm test`, `npm_config_loglevel=error npm test`,
	`X=1; export X; ls`, `export X; X=abc; npm test`, `export NODE_ENV=test && npm test`, `X=/tmp/a; ls`, `declare -x X; X=a`,
	`gcc -O2 -o x x.c`, `gcc-13 -O2 x.c`, `gcc -fuse-ld=lld x.c`, `java -Xmx1g -jar x.jar`, `pylint src`,
	`npm config get registry`, `npm config list`, `npm run build -- set`, `npm pkg get name`, `yarn config get x`, `gh alias list`, `gh config get editor`, `aws configure list`, `kubectl config get-contexts`, `kubectl config use-context x`,
	`tar -czf ./a:b.tgz src`, `tar -xzf a.tgz -C out`, `tar czf /tmp/x.tgz .`,
}

func TestHiddenProgramsAreNotProven(t *testing.T) {
	t.Parallel()
	for kind, texts := range hiddenPrograms {
		for _, text := range texts {
			if Read(text).Simple {
				t.Errorf("%s: %q is proven", kind, text)
			}
		}
	}
}

func TestNeighboursOfHiddenProgramsAreProven(t *testing.T) {
	t.Parallel()
	for _, text := range plainPrograms {
		if why := Read(text).Why; why != "" {
			t.Errorf("%q: %s", text, why)
		}
	}
}
