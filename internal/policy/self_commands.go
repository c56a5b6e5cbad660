package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/protocol"
)

// command rules what a command does to Assent other than by a path.
func (t *selfText) command(i int) {
	u := &t.cmd.Units[i]
	if len(u.Words) == 0 {
		t.sockets(i)
		return
	}
	name, args := selfProgram(u.Words[0]), u.Words[1:]
	switch {
	case runsAssent(u):
		if !harmlessAssent(u) {
			t.deny(groupCommand, "assent *", i)
		}
	case stops(name, args) || killsFound(name, t.cmd):
		t.deny(groupProcesses, stopsAssent, i)
	case agentNames[name] != "" && t.withoutHook(i, agentNames[name], args):
		t.deny(groupStart, agentWithoutHook, i)
	case name == "alias" && slices.ContainsFunc(args, aliasOfAssent):
		t.deny(groupCommand, "assent *", i)
	case carriesElsewhere(u) && assentAmong(args):
		t.deny(groupCommand, "assent *", i)
	}
	if natsClients[name] && t.namesSubjects() {
		t.deny(groupSubjects, assentSubjects, i)
	}
	t.sockets(i)
}

// sockets: a shell speaks to a server by a redirection too.
func (t *selfText) sockets(i int) {
	for _, r := range t.cmd.Units[i].Redirects {
		if strings.HasPrefix(r.Target, "/dev/tcp/") && t.namesSubjects() {
			t.deny(groupSubjects, assentSubjects, i)
		}
	}
}

func (t *selfText) deny(group, pattern string, unit int) {
	at := groupIndex(group)
	if t.s.self.lifted&(1<<at) != 0 {
		return
	}
	u := t.cmd.Units[unit]
	t.addSelf(BuiltinRule{group, surfaceBash, pattern, Deny, selfGroups[at].reason}, surfaceBash, u.Text, unit)
	if unit < len(t.out.Units) {
		t.out.Units[unit].Action, t.out.Units[unit].Pattern = Deny, pattern
	}
}

// selfProgram is the name of a program without its folder, in lower case.
func selfProgram(word string) string {
	name := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ending)
	}
	return strings.TrimPrefix(name, "=")
}

// runsAssent says whether a command runs Assent's own binary, or may: by a glob
// or by a word that the shell computes and that speaks of it.
func runsAssent(u *shell.Unit) bool {
	name := selfProgram(u.Words[0])
	switch u.Kind(0) {
	case shell.Unknown:
		return hasWord(u.Words[0], "assent") && !harmlessWords(u.Words[1:])
	case shell.Glob:
		return reach("assent", globTokens(name)) && slices.Contains(forbidden, strings.ToLower(argument(u.Words, 1)))
	}
	return name == "assent" || name == "go" && goRun(u.Words[1:]) != nil
}

func argument(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// forbidden are the first words of Assent's commands for people, where nothing
// else shows that Assent is meant.
var forbidden = strings.Fields("answer approve creds freeze thaw grants install uninstall up gate terminal auditor node")

// goRun is what "go run" hands on where it runs Assent by its import path, nil
// where it does not.
func goRun(args []string) []string {
	if len(args) == 0 || args[0] != "run" {
		return nil
	}
	for i, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		pkg, _, _ := strings.Cut(a, "@")
		if strings.Contains(pkg, "/") && path.Base(pkg) == "assent" {
			return args[i+1:]
		}
		return nil
	}
	return nil
}

// harmlessAssent says whether a command of Assent's only asks or checks.
func harmlessAssent(u *shell.Unit) bool {
	args := u.Words[1:]
	if rest := goRun(args); rest != nil && selfProgram(u.Words[0]) == "go" {
		return harmlessWords(rest[1:])
	}
	for i := range min(2, len(args)) {
		if u.Kind(i+1) != shell.Fixed && !harmlessWords(args[:i]) {
			return false
		}
	}
	return harmlessWords(args)
}

// harmlessWords: nothing shows a help text, and so do --help and --version where
// no option in front can take them for its value.
func harmlessWords(args []string) bool {
	option := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if len(args) == 0 || option >= 0 && slices.Contains([]string{"--help", "-h", "--version"}, args[option]) {
		return true
	}
	for _, h := range harmlessCommands {
		words := strings.Fields(h)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return true
		}
	}
	return false
}

// aliasOfAssent says whether a word gives another name to Assent.
func aliasOfAssent(word string) bool {
	_, value, ok := strings.Cut(word, "=")
	first, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	return ok && selfProgram(first) == "assent"
}

// carriesElsewhere says whether a command carries another one to a place of
// which nobody here reads more.
func carriesElsewhere(u *shell.Unit) bool {
	switch selfProgram(u.Words[0]) {
	case "docker", "podman", "nerdctl", "docker-compose", "kubectl", "oc", "tmux", "screen", "ssh":
		return true
	}
	return strings.HasPrefix(u.Why, shell.WhyWrapper)
}

// assentAmong says whether words hold a command of Assent's for people.
func assentAmong(args []string) bool {
	words := strings.Fields(strings.Join(args, " "))
	for i, w := range words {
		if selfProgram(strings.Trim(w, `'"`)) != "assent" {
			continue
		}
		next := argument(words, i+1)
		if slices.Contains(forbidden, next) || next == "policy" && !harmlessWords(words[i+1:]) {
			return true
		}
	}
	return false
}

// hasWord says whether a text holds a name as a word of its own: "assent-gate-1"
// does, "dissent" and "assented" do not.
func hasWord(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }), name)
}

func anyWord(args []string, name string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return hasWord(a, name) })
}

// managers are the programs that start and stop services and containers, with
// the words behind which they only show something, or make something new.
var managers = map[string]string{
	"systemctl": "status show cat is-active is-enabled is-failed list-units list-unit-files list-timers start help daemon-reload",
	"service":   "status --status-all", "rc-service": "status", "supervisorctl": "status tail pid", "pm2": "list ls status show describe logs",
	"launchctl": "list print print-disabled blame help", "brew": "", "sc": "query qc", "sc.exe": "query qc", "net": "",
	"docker":  "ps logs inspect images build run pull push tag image login search version info network volume history stats top port events create start buildx",
	"kubectl": "get describe logs top explain api-resources version config apply create wait events", "helm": "list status get history template lint show search repo pull",
}

// stops says whether a command stops, changes or enters what runs Assent.
func stops(name string, args []string) bool {
	switch name {
	case "pkill", "killall", "taskkill", "killall5", "stop-process", "skill", "xkill":
		return slices.ContainsFunc(args, func(a string) bool { return hasWord(a, "assent") || name == "pkill" && matchesAssent(a) })
	case "kill":
		return anyWord(args, "assent") || len(args) > 1 && args[len(args)-1] == "-1"
	case "podman", "nerdctl":
		name = "docker"
	case "oc":
		name = "kubectl"
	case "docker-compose":
		name = "docker"
	}
	shows, ok := managers[name]
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end] // what runs inside is not what is spoken of
	}
	if !ok || !anyWord(args, "assent") {
		return false
	}
	return stopping(name, args, strings.Fields(shows))
}

// stopping looks at the verb of a manager's command. brew and net are known by
// what stops, the others by what does not.
func stopping(name string, args, shows []string) bool {
	switch name {
	case "brew":
		return argument(args, 0) == "services" && !slices.Contains([]string{"list", "info", "start"}, argument(args, 1))
	case "net":
		return strings.EqualFold(argument(args, 0), "stop")
	case "service", "rc-service":
		return len(args) > 1 && hasWord(args[0], "assent") && !slices.Contains(append(shows, "start"), args[1])
	}
	verbs := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	if name == "docker" {
		verbs = containerVerbs(verbs)
	}
	for i, v := range verbs {
		if slices.Contains(shows, v) {
			return name == "kubectl" && v == "get" && slices.ContainsFunc(verbs[i+1:], func(a string) bool { return strings.HasPrefix(a, "secret") })
		}
		if slices.Contains(stopVerbs, v) {
			// The name of a command run inside, or of a file, is no target.
			return v != "exec" && v != "cp" || name != "docker" || slices.ContainsFunc(verbs[i+1:], func(a string) bool {
				before, _, file := strings.Cut(a, ":")
				return hasWord(before, "assent") && (file || v == "exec" && a == argument(verbs, i+1))
			})
		}
	}
	return false
}

// containerVerbs drops the word that only says what the next is about.
func containerVerbs(verbs []string) []string {
	if len(verbs) > 1 && slices.Contains([]string{"container", "compose", "stack", "service", "pod"}, verbs[0]) {
		return verbs[1:]
	}
	return verbs
}

var stopVerbs = strings.Fields("stop kill rm remove restart pause exec attach cp commit export update rename down disable mask freeze try-restart reload-or-restart " +
	"condrestart isolate edit set-property revert link bootout unload remove kickstart disable delete scale rollout patch replace drain debug annotate label set edit uninstall " +
	"upgrade rollback config signal shutdown reload clear")

// assentLines are command lines of Assent, for patterns of processes.
var assentLines = []string{"assent", "assent up", "/usr/local/bin/assent up --policy policy.jsonc", "/usr/local/bin/assent gate"}

// matchesAssent says whether a pattern of pkill selects Assent, and not by being
// too short to mean anything.
func matchesAssent(pattern string) bool {
	if strings.HasPrefix(pattern, "-") || len(pattern) > maxShown {
		return false
	}
	re, err := regexp.Compile(pattern)
	return err == nil && slices.ContainsFunc(assentLines[:2], re.MatchString)
}

// killsFound says whether a text looks up Assent's processes and kills what it
// finds.
func killsFound(name string, cmd shell.Command) bool {
	if name != "kill" {
		return false
	}
	return slices.ContainsFunc(cmd.Units, func(u shell.Unit) bool {
		switch selfProgram(u.Program()) {
		case "pgrep", "pidof", "grep", "egrep", "rg", "awk", "ps", "lsof", "systemctl", "docker":
			return anyWord(u.Words[1:], "assent")
		}
		return false
	})
}

// natsClients are programs that can speak to NATS.
var natsClients = programSet("nats natscli nc ncat netcat socat telnet openssl websocat wscat curl stan-pub nats-pub nats-sub nats-req")

// subjectMarks are what Assent's subjects, streams and buckets are known by.
var subjectMarks = []string{
	"assent.v1.", "$JS.API", "$KV.ASSENT_", "$O.ASSENT_", "KV_ASSENT_", "OBJ_ASSENT_",
	protocol.StreamDecisions, protocol.StreamReview, protocol.BucketPolicy, protocol.BucketPending,
	protocol.BucketGrants, protocol.BucketPresence, protocol.BucketProjects, protocol.ObjectsModules,
}

// namesSubjects says whether the text names anything of Assent's on NATS.
func (t *selfText) namesSubjects() bool {
	named := func(text string) bool {
		return slices.ContainsFunc(subjectMarks, func(m string) bool { return strings.Contains(text, m) })
	}
	return named(t.cmd.Text) || slices.ContainsFunc(t.cmd.Units, func(u shell.Unit) bool { return slices.ContainsFunc(u.Words, named) })
}

// agentNames are the programs of agents with a hook, and packages that hold
// them, by the agent.
var agentNames = map[string]string{
	"claude": "claude", "claude-code": "claude", "codex": "codex", "gemini": "gemini", "gemini-cli": "gemini",
	"opencode": "opencode", "opencode-ai": "opencode", "pi": "pi", "pi-coding-agent": "pi",
}

// hookOptions are the options with which an agent leaves its hook out.
var hookOptions = map[string][]string{
	"claude":   {"--bare", "--settings", "--setting-sources"},
	"gemini":   {"--acp", "--experimental-acp"},
	"opencode": {"--pure"},
	"pi":       {"--no-extensions", "-ne"},
}

// hookVariables are the variables that say where an agent finds its settings.
var hookVariables = []string{
	"HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CONFIG_DIR",
	"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT", "PI_CODING_AGENT_DIR",
}

// withoutHook says whether an agent is started so that its hook is not called.
func (t *selfText) withoutHook(i int, agent string, args []string) bool {
	for k, a := range args {
		option, value, _ := strings.Cut(a, "=")
		if value == "" {
			value = argument(args, k+1)
		}
		if slices.Contains(hookOptions[agent], option) {
			return true
		}
		if agent == "codex" && slices.Contains([]string{"--disable", "-c", "--config"}, option) && strings.Contains(value, "hook") {
			return true
		}
	}
	if slices.Contains([]string{"sudo", "doas", "su", "runuser", "pkexec", "run0"}, t.cmd.Units[i].Via) {
		return true // another person's settings
	}
	return slices.ContainsFunc(t.cmd.Units, movesSettings)
}

// movesSettings says whether a command sets a variable that leads an agent to
// other settings.
func movesSettings(u shell.Unit) bool {
	sets := func(word string) bool {
		name, _, ok := strings.Cut(word, "=")
		return ok && slices.Contains(hookVariables, name)
	}
	switch selfProgram(u.Program()) {
	case "export", "env", "declare", "typeset", "sudo", "set", "readonly":
		if slices.ContainsFunc(u.Words, sets) {
			return true
		}
	}
	return slices.ContainsFunc(u.Assigns, sets)
}
