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
	"compilers for other systems": {`x86_64-linux-gnu-gcc -wrapper x,y z.c`, `aarch64-linux-gnu-g++ -B./ z.c`, `x86_64-linux-gnu-gcc-13 -fplugin=./x.so z.c`, `arm-none-eabi-gcc -specs=x z.c`, `cpp -B. z.c`, `gfortran -B. z.f`,
		`c89 -B. z.c`, `nvcc -ccbin x z.cu`, `ld -plugin ./x.so z.o`, `x86_64-linux-gnu-ld --plugin=./x.so z.o`, `ar --plugin ./x.so r a.a b.o`, `nm --plugin ./x.so a`, `gcc -Xlinker -plugin -Xlinker ./x.so z.c`,
		`gcc -Wl,-O1,-plugin,./x.so z.c`, `gcc -Wl,@x z.c`, `clang-17 -fuse-ld=x/y z.c`},
	"builders": {`mvn -Dexec.executable=x exec:exec`, `mvn exec:exec -D exec.executable=x`, `mvn -Dmaven.ext.class.path=./x.jar v`, `gradle -Dorg.gradle.java.home=./x build`, `./gradlew -Dorg.gradle.jvmargs=-XX:OnError=x b`, `javac -J-XX:OnError=x Y.java`,
		`jar -J-javaagent:x tf y.jar`, `javac @x`, `javac -processor X Y.java`, `cmake -DCMAKE_C_COMPILER=x .`, `cmake -D CMAKE_CXX_COMPILER_LAUNCHER:STRING=x .`, `cmake -DCMAKE_MAKE_PROGRAM=x .`, `cmake -DPYTHON_EXECUTABLE=./x .`, `ctest --test-command x`,
		`bazel build --run_under=x //y`, `bazel --host_jvm_args=-XX:OnError=x build`, `cargo rustc -- -Clink-arg=-B.`, `rustc -C link-args=-wrapper x.rs`, `rustc @x`, `tox -x testenv.commands=x`, `just --shell=./x y`, `just -c x`, `terraform init -plugin-dir=x`,
		`rake -e x`, `helm template . --post-renderer=./x`, `docker --config x ps`, `pip --python ./x list`, `uv pip install --python=./x y`, `uv venv -p ./x`, `scala -e x`},
	"npm and gh": {`npm init --init-module ./x.js -y`, `npm init --init-mod=./x.js -y`, `npm init x`, `yarn create x`, `pnpm create x`, `yarn node -e x`, `yarn --use-yarnrc x`, `gh extension exec x`, `gh ext install x`, `gh cs ssh -- -oProxyCommand=x`, `gh repo clone a/b -- -c core.fsmonitor=x`,
		`gh repo clone a/b -- --upload-pack=x`, `gh gist clone x -- -uy`, `helm plugin install ./x`, `composer config scripts.x y`, `composer exec x`, `rustup toolchain link x ./y`, `RM=x npm test`, `export RM=x; npm test`},
	"git":     {`git x/y`, `git -C sub x/y`, `git --work-tree=.. add x`, `git clone ext::x y`, `git fetch 'ext::sh -c x'`},
	"queries": {`yq 'load(".env")' f`, `yq -n 'load_str(".env")'`, `yq -s '".env"' f`, `yq "$x" f`, `jq -n 'import "./secrets" as $s; $s'`},
	"tar":     {`tar cf evil:x .`, `tar -cf evil:x .`, `tar -cfevil:x .`, `tar --file=evil:x -c .`, `tar --fil=u@evil:x -c .`},
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
	`x86_64-linux-gnu-gcc -O2 -o x x.c`, `ld -o x x.o`, `ar rcs a.a b.o`, `mvn -DskipTests package`, `mvn test -Dtest=XTest`, `gradle test`, `./gradlew build --info`, `javac -d out X.java`, `cmake -S . -B build -DCMAKE_BUILD_TYPE=Release`, `cmake --build build -j 4`,
	`ctest --test-dir build`, `bazel test //...`, `cargo rustc -- -O`, `tox -e py311`, `just test`, `terraform plan`, `rake test`, `helm template .`, `docker compose config`, `uv venv --python 3.12`, `pip install -r requirements.txt`,
	`npm init -y`, `npm install x`, `yarn add x`, `gh extension list`, `gh repo clone a/b`, `gh repo clone a/b -- --depth 1`, `helm plugin list`, `rustup show`, `git clone https://x.y/z.git`, `git log --oneline`, `yq .a f`, `yq -i '.a = 1' f`, `jq '.import' f`,
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
