package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// shellCall rules a call of a tool that runs commands: as bash, whatever the
// tool is called, and by the rules on its own name.
func (e *evaluation) shellCall(t shellTool) {
	text, given := e.commandText(t)
	if other := e.args["command"]; t.command != "command" && other != nil && other != "" {
		e.maybeCommands(map[string]any{"command": other})
		e.add(floor(e.name(), "command", "unknown-argument", "the call holds an argument that may change what runs"))
	}
	if strings.TrimSpace(text) == "" && !given {
		e.noCommand(t)
		return
	}
	outside := e.place
	for _, key := range t.workdir {
		dir, _ := e.args[key].(string)
		if dir == "" {
			continue
		}
		e.crossing(dir, both, 0)
		e.place = outside.at(dir, false)
	}
	if t.command != "command" || e.args["command"] != any(text) || holdsText(e.args, t.workdir) {
		e.args = withoutKeys(e.args, t.workdir...)
		delete(e.args, t.command)
		e.args["command"] = text
	}
	e.bash()
	e.ownShell(t, text)
	if t.typed {
		e.add(floor(e.name(), text, "typed-text", "the text goes to a program that already runs; what that makes of it is not known"))
	}
	e.place = outside
}

func holdsText(args map[string]any, keys []string) bool {
	for _, k := range keys {
		if _, text := args[k].(string); text {
			return true
		}
	}
	return false
}

func withoutKeys(args map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(args))
	for k, v := range args {
		out[k] = v
	}
	for _, k := range keys {
		if _, text := out[k].(string); text {
			delete(out, k) // any other kind is for bash to doubt
		}
	}
	return out
}

// commandText is the command of a call; a list of words is made one text. given
// says that there is one, be it a kind of command that nobody can read.
func (e *evaluation) commandText(t shellTool) (text string, given bool) {
	switch v := e.args[t.command].(type) {
	case string:
		return v, strings.TrimSpace(v) != ""
	case []any:
		return argvText(v), true
	case map[string]any:
		return "", true
	}
	return "", false
}

// commandOf is the command that a call of a shell tool holds, "" for none.
func (s *Snapshot) commandOf(tool string, args map[string]any) string {
	name := canonicalTool(strings.TrimSpace(tool))
	t, ok := s.shells[name]
	if !ok {
		t = shellTools[name]
	}
	e := evaluation{args: args}
	text, _ := e.commandText(t)
	return text
}

// argvText is a list of words as a shell would be given it; "" if it is none.
func argvText(list []any) string {
	var b strings.Builder
	for i, item := range list {
		word, ok := item.(string)
		if !ok {
			return ""
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		if plainWord(word) {
			b.WriteString(word)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "'")
	}
	return b.String()
}

// readText reads a shell text, the same one once.
func (e *evaluation) readText(text string) shell.Command {
	if e.command == nil || e.command.Text != text {
		cmd := shell.Read(text)
		e.command = &cmd
	}
	return *e.command
}

func plainWord(word string) bool {
	return word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+") == ""
}

// noCommand rules a call that holds no command: it runs nothing, unless it holds
// something else that may be one.
func (e *evaluation) noCommand(t shellTool) {
	e.add(Entry{
		Surface: surfaceBash, MatchedPattern: "<no-command>", Origin: OriginBuiltin, Action: Allow,
		Reason: "the call holds no command text",
	})
	e.unknownCommands()
	v := values{exact: []string{""}}
	e.add(e.s.entry(surfaceBash, e.place.home, "", v))
	if found := e.s.rules.last(e.own, e.place.home, v); found != nil && found.action != Allow && !(t.declared && found.origin == LayerFleet) {
		e.add(e.s.decided(found, e.own, "", e.place.home, v))
	}
}

// ownShell adds what the rules on a shell tool's own name say. They only
// tighten: what runs is allowed as bash. Where the fleet layer itself declares
// the tool a shell, its own rules on the name are superseded by that; those of
// other layers count.
func (e *evaluation) ownShell(t shellTool, text string) {
	if e.own == "" || len(e.s.rules.of(e.own)) == 0 {
		return
	}
	units := e.readText(text).Units
	for i := range units {
		got, found := e.s.unitRule(e.own, &e.place, &units[i])
		if found == nil || got.Action == Allow || t.declared && found.origin == LayerFleet {
			continue
		}
		got.Unit = i
		e.add(got)
	}
}

// unitRule is unitEntry for rules that speak of a surface by its name.
func (s *Snapshot) unitRule(surface string, p *place, u *shell.Unit) (Entry, *rule) {
	v := values{exact: []string{u.Text}, wide: u.Readings()}
	found := s.rules.last(surface, p.home, v)
	if found == nil {
		return Entry{}, nil
	}
	return s.decided(found, surface, u.Text, p.home, v), found
}

// maybeCommands adds the denies of bash on what a tool that nothing is known of
// carries under the name of a command: what makes a call a shell call is that
// it runs a command, not what it is called.
func (e *evaluation) maybeCommands(args map[string]any) {
	for _, key := range sortedKeys(args) {
		if !holdsCommand(key) {
			continue
		}
		switch v := args[key].(type) {
		case string:
			e.maybeCommand(v)
		case []any:
			e.maybeCommand(argvText(v))
			for _, one := range v[:min(len(v), maxSuffixes)] {
				if text, ok := one.(string); ok && strings.ContainsAny(text, " \t\n") {
					e.maybeCommand(text) // a list of commands
				}
			}
		}
	}
}

// holdsCommand says whether an argument's name says that it holds a command:
// cmd, shell_command, script. What holds "code" is of any language, where "id = 1"
// is no command.
func holdsCommand(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "command") || strings.Contains(key, "cmd") || key == "script" || key == "shell"
}

func (e *evaluation) maybeCommand(text string) {
	if text == "" {
		return
	}
	cmd := shell.Read(text)
	e.selfShell(cmd)
	for i := range cmd.Units {
		if got, found := e.s.unitRule(surfaceBash, &e.place, &cmd.Units[i]); found != nil && got.Action == Deny && !found.pattern.w.any() {
			e.add(got)
		}
	}
}
