package shell

import (
	"slices"
	"strings"
)

// crossed are the tools whose name may have a system in front for which they
// build. Their doors are those of the plain tool.
var crossed = set("gcc g++ cc c++ cpp clang clang++ gfortran gccgo gdc ld ar nm ranlib objcopy strip")

// buildDoors are doors of compilers, builders and what else runs other programs
// by its settings.
func buildDoors() map[string]doorway {
	compiler := doorway{long: []string{"prefix", "compiler-bindir"}, words: []string{"-wrapper", "-fplugin", "-B", "-specs", "--specs", "@", "-fpass-plugin",
		"-load", "--ld-path", "-ccc-", "-ccbin", "-iplugindir", "-plugin", "--plugin"}, texts: []string{",-plugin", ",--plugin", ",@"}}
	linker := doorway{words: []string{"-plugin", "--plugin", "@"}}
	jdk := doorway{words: []string{"-J", "@", "-processor", "--processor", "-Xplugin", "-doclet", "-taglet"}}
	out := map[string]doorway{
		"bun":    {short: "e", valued: "crdp", long: []string{"eval"}},
		"gem":    {short: "e", long: []string{"editor"}},
		"rake":   {short: "epE", valued: "fIRrGTjtW", long: []string{"execute", "execute-print", "execute-continue"}},
		"mvn":    {texts: []string{"exec.executable", "ext.class.path", "compiler.executable", "djvm="}},
		"gradle": {texts: []string{"org.gradle.java.home", "org.gradle.jvmargs", "onerror", "onoutofmemory", "-javaagent", "-agentpath"}},
		"helm":   {long: []string{"post-renderer"}},
		"docker": {long: []string{"config"}}, // its folder may hold plugins
		"gcloud": {long: []string{"flags-file"}},
		"tox":    {short: "x", valued: "ec", long: []string{"override"}},
		"just":   {short: "c", valued: "fdE", long: []string{"shell", "shell-arg", "chooser", "command"}},
		"ctest":  {long: []string{"test-command", "build-makeprogram"}},
		"bazel": {long: []string{"run_under", "workspace_status_command", "server_javabase", "host_javabase", "host_jvm_args", "shell_executable",
			"python_path"}},
		"terraform": {words: []string{"-plugin-dir", "--plugin-dir"}},
		"scala":     {words: []string{"-e"}}, "kotlin": {words: []string{"-e"}},
	}
	for _, name := range strings.Fields("gcc g++ cc c++ cpp clang clang++ clang-cl gfortran gccgo gdc gnatmake gnatbind tcc c89 c99 icc icx icpc ifort emcc em++ nvcc hipcc") {
		out[name] = compiler
	}
	for _, name := range strings.Fields("ld ld.bfd ld.gold ld.lld lld ar nm ranlib objcopy strip gcc-ar gcc-nm gcc-ranlib") {
		out[name] = linker
	}
	for _, name := range strings.Fields("javac jar javadoc jarsigner keytool jdeps jlink jmod javap jps jstack jmap jcmd") {
		out[name] = jdk
	}
	out["gradlew"], out["mvnw"], out["tofu"], out["bazelisk"], out["podman"] = out["gradle"], out["mvn"], out["terraform"], out["bazel"], out["docker"]
	return out
}

// buildDoor is the door that a command opens by what stands behind an option
// rather than by the option.
func buildDoor(name string, args []string) string {
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-fuse-ld=") && strings.Contains(a, "/") }) {
		return "-fuse-ld"
	}
	switch name {
	case "gh":
		// Behind "--", what clones takes options of git.
		if end := slices.Index(args, "--"); end >= 0 {
			rest := args[end+1:]
			if door := gitDoors["clone"].open(rest); door != "" {
				return "-- " + door
			}
			return gitCommon.open(rest)
		}
	case "npm", "pnpm", "yarn", "bun":
		return created(args)
	case "cmake":
		return cmakeDoor(args)
	case "pip", "pip3", "uv", "virtualenv", "pipx":
		return interpreterNamed(args)
	}
	return ""
}

// created: "npm init NAME" and "npm create NAME" fetch and run create-NAME.
func created(args []string) string {
	at := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if at < 0 || !slices.Contains([]string{"init", "innit", "create"}, args[at]) {
		return ""
	}
	for _, a := range args[at+1:] {
		if !strings.HasPrefix(a, "-") {
			return args[at]
		}
	}
	return ""
}

// cmakePrograms are what names of variables end with that hold a program which
// the build, or cmake itself, runs.
var cmakePrograms = strings.Fields("_COMPILER _PROGRAM _LAUNCHER _EXECUTABLE _LINKER _AR _RANLIB _COMMAND")

func cmakeDoor(args []string) string {
	for i, a := range args {
		a = strings.TrimPrefix(a, "-D")
		if len(a) == len(args[i]) && (i == 0 || args[i-1] != "-D") {
			continue
		}
		name := a
		if end := strings.IndexAny(a, ":="); end >= 0 {
			name = a[:end]
		}
		if slices.ContainsFunc(cmakePrograms, func(s string) bool { return strings.HasSuffix(strings.ToUpper(name), s) }) {
			return "-D" + name
		}
	}
	return ""
}

// interpreterNamed: "pip --python ./x" runs ./x; a version is looked up.
func interpreterNamed(args []string) string {
	for i, a := range args {
		option, value, given := strings.Cut(a, "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case len(option) > 4 && strings.HasPrefix("--python", option):
		case strings.HasPrefix(a, "-p") && len(a) > 2:
			value = a[2:]
		case a == "-p":
		default:
			continue
		}
		if strings.Contains(value, "/") {
			return "--python"
		}
	}
	return ""
}
