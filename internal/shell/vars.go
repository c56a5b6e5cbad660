package shell

import (
	"slices"
	"strings"
)

// Which variables change what runs cannot be listed to the end: every program
// has its own, and to ask about each unknown name would have people approve
// FOO=1 all day. So three kinds are told apart. Names known to change what runs,
// or shaped like those (…PATH, …EDITOR, …FLAGS), are never proven. Names known
// to be harmless may have any value. Every other name may be set within the
// shell, and handed to a program with a value that could not be a program, a
// file, an option or a place on the network: a plain word.

// harmlessNames are variables that change what a program says or how fast it
// is, not what it runs.
var harmlessNames = strings.Fields(`
	CGO_ENABLED GOOS GOARCH GOARM GOAMD64 GOMAXPROCS GOGC GOMEMLIMIT GOTRACEBACK GO111MODULE GOSUMDB
	NODE_ENV NODE_NO_WARNINGS NODE_DEBUG NPM_CONFIG_LOGLEVEL npm_config_loglevel NEXT_TELEMETRY_DISABLED
	DEBUG CI LANG LANGUAGE TZ COLUMNS LINES TERM COLORTERM FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE VERBOSE QUIET LOG_LEVEL LOGLEVEL
	RUST_BACKTRACE RUST_LOG RUST_TEST_THREADS CARGO_INCREMENTAL CARGO_NET_OFFLINE CARGO_TERM_COLOR CARGO_TERM_PROGRESS_WHEN
	PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PYTHONFAULTHANDLER PIP_NO_INPUT
	PIP_DISABLE_PIP_VERSION_CHECK DJANGO_DEBUG FLASK_ENV FLASK_DEBUG RAILS_ENV RACK_ENV APP_ENV ENVIRONMENT MIX_ENV
	GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
	GIT_COMMITTER_DATE GIT_MERGE_AUTOEDIT GH_PROMPT_DISABLED GH_NO_UPDATE_NOTIFIER
	AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_DEFAULT_OUTPUT DOCKER_BUILDKIT COMPOSE_DOCKER_CLI_BUILD BUILDKIT_PROGRESS
	DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_NOLOGO HOMEBREW_NO_AUTO_UPDATE DEBIAN_FRONTEND TF_IN_AUTOMATION TF_LOG
	PORT HOST HOSTNAME DATABASE_URL REDIS_URL BASE_URL API_URL`)

// changing are variables that change what a shell or program runs, reads as
// its settings, or takes for its home.
var changing = strings.Fields(`
	IFS ENV PWD OLDPWD BASH PS0 PS1 PS2 PS4 GLOBIGNORE EXECIGNORE FIGNORE INPUTRC POSIXLY_CORRECT HISTFILE FUNCNEST TIMEFORMAT
	VISUAL BROWSER FCEDIT MAIL RUSTC MAKE MAKEFILES CC CXX CPP AS AR LD NM RANLIB STRIP OBJCOPY YACC LEX M4 TEX INSTALL
	RM FC F77 PC CO GET LINT M2C MAKEINFO TEXI2DVI WEAVE CWEAVE TANGLE CTANGLE
	DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES
	TERMCAP HOSTALIASES LOCALDOMAIN WGETRC NETRC ZIPOPT GZIP BZIP BZIP2 UNZIP DISPLAY
	path fpath cdpath manpath fignore mailpath module_path prompt histchars auto_resume aliases galiases saliases functions commands options nameddirs
	builtins parameters`)

// changingFronts and changingEnds are what such names begin and end with.
var (
	changingFronts = strings.Fields(`
		LD_ DYLD_ BASH_ GIT_ PYTHON PERL RUBY GEM_ BUNDLE_ NODE_ COREPACK_ JAVA_ JDK_ _JAVA MAVEN_ GRADLE_ SBT_ GO CGO_
		RUST CARGO_ CMAKE_ CTEST_ DOCKER_ KUBE AWS_ SSH_ SUDO_ GPG GNUPG XDG_ DBUS_ TERMINFO LESS MAN MORE SVN_ HG P4 CVS_ RSYNC_ RIPGREP_ FZF_ BAT_
		LUA_ PHP R_ JULIA_ DENO_ BUN_ PIP_ UV_ POETRY_ CONDA_ PYENV_ VIRTUAL_ENV DOTNET_ CORECLR_ COMPlus_ MSBUILD NUGET_ OPENSSL_ SSL_ CURL_ GCONV_
		GLIBC_ MALLOC_ GCC_ PKG_ TF_ ANSIBLE_ VAGRANT_ PACKER_ HELM_ ELECTRON_ CHROME_ PUPPETEER_ PLAYWRIGHT_ TS_NODE_ TAR_ SHELL dis_ ZDOT
		PSQL PGSERVICE PGPASS SQLITE MYSQL_ COMPOSE_ CONTAINERS_ BUILDAH_ SBCL_ GUILE_ RACKET ERL_ ELIXIR_ OCAML CAML OPAM STACK_ GHC`)
	anyCaseFronts = strings.Fields(`npm_ pnpm_ yarn_`)
	changingEnds  = strings.Fields(`
		PATH PATHS HOME _ROOT ROOTDIR TMPDIR _DIR PAGER EDITOR SHELL SHELLOPTS BASHOPTS CMD COMMAND _EXEC _EXE _BIN _BINARY _PROGRAM _PROG RUNNER WRAPPER BROWSER
		LAUNCHER HOOK HOOKS PRELOAD LIBRARY LIBRARIES PLUGIN PLUGINS _MODULE _MODULES OPTS OPTIONS _OPT ARGS FLAGS CONFIG CONFIG_FILE _CFG RC _FILE _INIT
		_STARTUP PROXY _proxy ASKPASS HELPER _TOOL COMPILER LINKER DRIVER HANDLER _SCRIPT EVAL LOADER OPEN CLOSE PREPROCESSOR`)
)

// changes says whether a variable may change what runs, whatever its value.
func changes(name string) bool {
	if slices.Contains(harmlessNames, name) || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "GIT_TRACE") {
		return false
	}
	// npm and yarn read theirs in any letter case: Npm_config_script_shell=x.
	lower := strings.ToLower(name)
	return slices.Contains(changing, name) ||
		slices.ContainsFunc(anyCaseFronts, func(s string) bool { return strings.HasPrefix(lower, s) }) ||
		slices.ContainsFunc(changingFronts, func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(changingEnds, func(s string) bool { return strings.HasSuffix(name, s) })
}

// handing says whether a variable with this value may be handed to a program.
func handing(name string, value word) bool {
	switch {
	case (name == "PAGER" || strings.HasSuffix(name, "_PAGER")) && value.fixed() && (value.text == "cat" || value.text == ""):
		return true
	case changes(name):
		return false
	case slices.Contains(harmlessNames, name), strings.HasPrefix(name, "LC_"):
		return true
	}
	return value.fixed() && !value.pipe && !strings.HasPrefix(value.text, "-") && plainValue(value.text)
}

// plainValue says whether s can be no file in another folder, no text for a
// shell and no list of options.
func plainValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("_.,:@%+-*", c) < 0 {
			return false
		}
	}
	return true
}

// set notes that the text assigns a variable, and whether always a number.
func (w *walker) set(name string, number bool) { w.assigned(name, number, number) }

// assigned is set with what is known of the value: handy says that it may be
// handed to a program.
func (w *walker) assigned(name string, number, handy bool) {
	if name == "" {
		return
	}
	if w.numbers == nil {
		w.numbers, w.unhandy = map[string]bool{}, map[string]bool{}
	}
	w.unhandy[name] = w.unhandy[name] || !handy
	before, known := w.numbers[name]
	w.numbers[name] = number && (before || !known)
	if changes(name) {
		w.fail(WhyAssignment)
	}
}

// exports notes that the text hands a variable to every program.
func (w *walker) exports(name string) {
	if w.exported == nil {
		w.exported = map[string]bool{}
	}
	w.exported[name] = true
}

// handsOver judges the exported variables: an assignment anywhere in the text
// counts, as in "X=/tmp/evil; export X" and "export X; X=/tmp/evil". To make,
// every variable may be a program.
func (w *walker) handsOver() {
	for name := range w.exported {
		if w.unhandy[name] {
			w.fail(WhyAssignment)
			return
		}
	}
	if len(w.exported) > 0 && slices.ContainsFunc(w.units, func(u Unit) bool { return isMake(u.Program()) }) {
		w.fail(WhyAssignment)
	}
}
