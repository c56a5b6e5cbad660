package policy

import (
	"slices"
	"strings"
)

// The groups of built-in rules: what the fleet layer may lift, by name.
const (
	groupFiles       = "assent-files"
	groupCredentials = "assent-credentials"
	groupProject     = "assent-project"
	groupCommand     = "assent-command"
	groupProcesses   = "assent-processes"
	groupSubjects    = "assent-subjects"
	groupClaude      = "claude-settings"
	groupCodex       = "codex-settings"
	groupGemini      = "gemini-settings"
	groupOpenCode    = "opencode-settings"
	groupPi          = "pi-settings"
	groupStart       = "agent-start"
)

// selfGroup is one group: what it keeps from agents, and what an agent is told.
type selfGroup struct{ name, keeps, reason string }

// selfGroups in the order in which they are listed.
var selfGroups = []selfGroup{
	{groupFiles, "Assent's configuration, store and program",
		"These files are Assent's own, and no agent may touch them. Go on without them, or tell the person you work for what you need and why."},
	{groupCredentials, "credentials files and seeds of keys",
		"This file lets its holder act as somebody else, so no agent may touch it. Ask the person you work for to run what needs it."},
	{groupProject, "a project's own rules and modules: agents may read and not write them",
		"A project's rules are for its people to write. Show the change you want as text, and ask the person you work for to make it."},
	{groupCommand, "Assent's command line, but for what only asks or checks",
		"This command is for people and not for agents. Open questions are answered by a person; to try a policy, use `assent policy check`, `eval`, `explain` or `test`; for a permission module, `assent module new` and `test`."},
	{groupProcesses, "Assent's processes and services",
		"Assent has to go on running while you work. If it is in the way, tell the person you work for."},
	{groupSubjects, "Assent's subjects, streams and buckets on NATS",
		"Talking to Assent's NATS directly is not for agents. Your calls are asked about by themselves; there is nothing to send."},
	{groupClaude, "Claude Code's settings, which hold its hook",
		"These settings decide whether your calls are asked about, so you may read them and not change them. Ask the person you work for to make the change."},
	{groupCodex, "Codex's configuration and hooks",
		"This configuration decides whether your calls are asked about, so you may read it and not change it. Ask the person you work for to make the change."},
	{groupGemini, "Gemini CLI's settings, which hold its hook",
		"These settings decide whether your calls are asked about, so you may read them and not change them. Ask the person you work for to make the change."},
	{groupOpenCode, "OpenCode's configuration and plugins",
		"This configuration decides whether your calls are asked about, so you may read it and not change it. Ask the person you work for to make the change."},
	{groupPi, "Pi's settings, extensions and packages",
		"These decide whether your calls are asked about, so you may read them and not change them. Ask the person you work for to make the change."},
	{groupStart, "starting an agent with its hook left out",
		"An agent started like this would run without being asked about. Start it without that option or variable, or let the person you work for start it."},
}

// SelfGroups are the names of the groups of built-in rules.
func SelfGroups() []string {
	out := make([]string, len(selfGroups))
	for i, g := range selfGroups {
		out[i] = g.name
	}
	return out
}

// selfSet is a set of groups, one bit each.
type selfSet uint16

func groupIndex(name string) int {
	return slices.IndexFunc(selfGroups, func(g selfGroup) bool { return g.name == name })
}

func (s selfSet) has(group string) bool { return s&(1<<groupIndex(group)) != 0 }

// BuiltinRule is a rule of the engine itself, which keeps Assent and the agents'
// hooks out of reach of agents. It stands beside the rules of all layers, and
// the strictest wins; only the fleet layer lifts it, by its group.
type BuiltinRule struct {
	// Group is the name by which "selfProtection" lifts it.
	Group string
	// Surface is path, path_read, path_write or bash.
	Surface string
	// Pattern is a pattern of rules, or a sentinel in angle brackets where no
	// pattern says what is meant.
	Pattern string
	Action  Action
	// Reason is told to the agent.
	Reason string
}

// aboutFolder is told to the agent where a folder is changed as a whole.
const aboutFolder = "This folder holds files that are out of reach of agents. Name the files in it that you mean."

// asksAboutFolder is told to the approver where a folder is changed as a whole.
const asksAboutFolder = "The folder holds files of Assent, or settings that hold an agent's hook. Before you allow this, make sure that it leaves them unchanged."

// selfPathRule is a built-in rule on paths, compiled. Letter case counts for
// nothing: what a file system may find, it matches.
type selfPathRule struct {
	BuiltinRule
	group selfSet
	dir   direction
	w     pattern
	// home: only who takes or moves the whole folder touches what is meant.
	home bool
}

// selfPathTable is the data: group, surface, action, patterns. A path is matched
// from its root; denies stand before asks.
var selfPathTable = []struct {
	group, surface string
	action         Action
	patterns       string
}{
	{groupFiles, surfacePath, Deny, "*/.config/assent */.config/assent/* */.local/share/assent */.local/share/assent/* */.local/state/assent */.local/state/assent/* " +
		"*/$XDG_CONFIG_HOME/assent */$XDG_CONFIG_HOME/assent/* */${XDG_CONFIG_HOME}/assent */${XDG_CONFIG_HOME}/assent/* " +
		"*/$XDG_DATA_HOME/assent */$XDG_DATA_HOME/assent/* */${XDG_DATA_HOME}/assent */${XDG_DATA_HOME}/assent/* " +
		"*/$XDG_STATE_HOME/assent */$XDG_STATE_HOME/assent/* */${XDG_STATE_HOME}/assent */${XDG_STATE_HOME}/assent/* " +
		"*/$ASSENT_STORE */$ASSENT_STORE/* */${ASSENT_STORE} */${ASSENT_STORE}/* " +
		"*/assent/local.json /etc/assent /etc/assent/* /var/lib/assent /var/lib/assent/* /run/assent /run/assent/*"},
	{groupFiles, surfacePath + suffixWrite, Deny, "/usr/bin/assent /usr/local/bin/assent /opt/*/bin/assent */.local/bin/assent */go/bin/assent ~/bin/assent *:/*/bin/assent.exe"},
	{groupCredentials, surfacePath, Deny, "*.creds *.nk"},
	{groupProject, surfacePath + suffixWrite, Deny, "*/.assent */.assent/*"},
	{groupClaude, surfacePath + suffixWrite, Deny, "*/.claude/settings*.json */.claude.json */$CLAUDE_CONFIG_DIR/settings*.json */${CLAUDE_CONFIG_DIR}/settings*.json " +
		"/etc/claude-code /etc/claude-code/* */ClaudeCode/managed-settings*"},
	{groupCodex, surfacePath + suffixWrite, Deny, "*/.codex/config.toml */.codex/hooks.json */.codex/requirements.toml */$CODEX_HOME/config.toml */${CODEX_HOME}/config.toml " +
		"*/$CODEX_HOME/hooks.json */${CODEX_HOME}/hooks.json /etc/codex /etc/codex/*"},
	{groupGemini, surfacePath + suffixWrite, Deny, "*/.gemini/settings.json */.gemini/system-defaults.json /etc/gemini-cli /etc/gemini-cli/* */GeminiCli/settings.json */GeminiCli/system-defaults.json"},
	{groupOpenCode, surfacePath + suffixWrite, Deny, "*/.opencode/opencode.json* */.opencode/plugin */.opencode/plugin/* */.opencode/plugins */.opencode/plugins/* " +
		"*/opencode.json */opencode.jsonc */.config/opencode/config.json */.config/opencode/plugin */.config/opencode/plugin/* " +
		"*/.config/opencode/plugins */.config/opencode/plugins/*"},
	{groupPi, surfacePath + suffixWrite, Deny, "*/.pi/settings.json */.pi/extensions */.pi/extensions/* */.pi/agent/settings.json */.pi/agent/extensions */.pi/agent/extensions/* " +
		"*/.pi/agent/npm */.pi/agent/npm/* */.pi/agent/git */.pi/agent/git/*"},

	// Folders that hold what is denied above.
	{groupClaude, surfacePath + suffixWrite, Ask, "*/.claude */$CLAUDE_CONFIG_DIR */${CLAUDE_CONFIG_DIR} */ClaudeCode"},
	{groupCodex, surfacePath + suffixWrite, Ask, "*/.codex */$CODEX_HOME */${CODEX_HOME}"},
	{groupGemini, surfacePath + suffixWrite, Ask, "*/.gemini */GeminiCli"},
	{groupOpenCode, surfacePath + suffixWrite, Ask, "*/.opencode */.config/opencode"},
	{groupPi, surfacePath + suffixWrite, Ask, "*/.pi */.pi/agent"},
	{groupProject, surfacePath + suffixWrite, Ask, "."},
	{groupFiles, surfacePath, Ask, "~ ~/.config ~/.local ~/.local/share ~/.local/state"},
}

var selfPathRules = compileSelfPaths()

func compileSelfPaths() []selfPathRule {
	var out []selfPathRule
	for _, row := range selfPathTable {
		at := groupIndex(row.group)
		reason := selfGroups[at].reason
		if row.action == Ask {
			reason = aboutFolder
		}
		for _, p := range strings.Fields(row.patterns) {
			r := selfPathRule{
				BuiltinRule: BuiltinRule{row.group, row.surface, p, row.action, reason},
				group:       1 << at, dir: directionOf(row.surface), w: compilePattern(lowerPattern(p)),
			}
			r.home = row.action == Ask && r.w.home != nil
			out = append(out, r)
		}
	}
	return out
}

func directionOf(surface string) direction {
	switch {
	case strings.HasSuffix(surface, suffixRead):
		return reads
	case strings.HasSuffix(surface, suffixWrite):
		return writes
	}
	return both
}

// harmlessCommands are the commands of Assent that an agent may run: they ask, as the
// agent's hook does, or work on what they are handed.
var harmlessCommands = []string{
	"ask", "hook", "health", "doctor", "version", "help", "completion",
	"policy check", "policy eval", "policy explain", "policy test", "policy schema", "module new", "module test",
}

// Sentinels of built-in rules on commands.
const (
	stopsAssent      = "<stops-assent>"
	assentSubjects   = "<assent-subjects>"
	agentWithoutHook = "<agent-without-hook>"
)

// BuiltinRules are all of them, in the order in which they are consulted.
func BuiltinRules() []BuiltinRule {
	var out []BuiltinRule
	for _, r := range selfPathRules {
		out = append(out, r.BuiltinRule)
	}
	command := selfGroups[groupIndex(groupCommand)].reason
	out = append(out, BuiltinRule{groupCommand, surfaceBash, "assent *", Deny, command})
	for _, h := range harmlessCommands {
		out = append(out, BuiltinRule{groupCommand, surfaceBash, "assent " + h + " *", Allow, "it only asks, checks or explains; what other rules say stands"})
	}
	for _, one := range [][2]string{{groupProcesses, stopsAssent}, {groupSubjects, assentSubjects}, {groupStart, agentWithoutHook}} {
		out = append(out, BuiltinRule{one[0], surfaceBash, one[1], Deny, selfGroups[groupIndex(one[0])].reason})
	}
	return out
}
