package bundle

import "testing"

// Modules as they are written for pi-permissions run as they are: they import the
// library under its published name and give no matcher.
func TestPublishedModulesRunUnchanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		module string
		bash   map[string]string // command to answer
		calls  map[string]string // input to answer
	}{
		"a subcommand": {
			module: `import { gitValueFlags, matchCommand, matchTool, type PermissionsAPI, request } from "@thurstonsand/pi-permissions";
const push = matchCommand({ program: "git", subcommands: ["push"], valueFlags: gitValueFlags, onMatch: () => request({ guidance: "Look at the branch." }) });
export default function permissions(api: PermissionsAPI) {
  api.onToolUse({ name: "git push", description: "Ask before a push.", handler: (input) => matchTool(input.tool, { bash: push }) });
}`,
			bash: map[string]string{
				"git push":                             "request Look at the branch. [git|push]",
				"git -C sub push origin":               "request Look at the branch. [git|push]",
				"ls; sudo -u x git push && git push":   "request Look at the branch. [git|push|git|push]",
				"bash -c 'git push'":                   "request Look at the branch. [git|push]",
				"find . -exec git push \\;":            "request Look at the branch. [git|push]",
				"FOO=1 /usr/bin/git push":              "request Look at the branch. [/usr/bin/git|push]",
				"GIT push":                             "request Look at the branch. [GIT|push]",
				"/mnt/c/Git/git.exe push":              "request Look at the branch. [/mnt/c/Git/git.exe|push]",
				"Git.EXE push":                         "request Look at the branch. [Git.EXE|push]",
				"=git push":                            "request Look at the branch. [=git|push]",
				"git.sh push; git.execute push":        "none",
				"git PUSH":                             "none",
				"echo 'git push'":                      "none",
				`git commit -m "git push"`:             "none",
				"git log push":                         "none",
				"git -C push status":                   "none",
				"gitpush; git-push; mygit push":        "none",
				"grep -r 'git push' . # git push":      "none",
				"cat <<'E'\ngit push\nE":               "none",
				"git stash push":                       "none",
				"command -v git":                       "none",
				"bash -c 'echo git push'":              "none",
				"xargs -n1 git -c push.default=x push": "request Look at the branch. [git|push]",
			},
			calls: map[string]string{fileCall("read", "git push"): "none"},
		},
		"flags": {
			module: `import { matchCommand, matchTool, type PermissionsAPI, request, type SimpleCommand } from "@thurstonsand/pi-permissions";
const forced = (c: SimpleCommand) => c.programName === "rm" ? c.hasFlag("-r", "-R", "--recursive") && c.hasFlag("-f", "--force") : c.hasFlag("-delete");
export default function (api: PermissionsAPI) {
  api.onToolUse({
    name: "removal", description: "Ask before much is removed.",
    handler(input) {
      return matchTool(input.tool, { bash: matchCommand({ program: ["rm", "find"], where: forced, onMatch: ({ commands }) => request({ highlight: commands.map((c) => c.span) }) }) });
    },
  });
}`,
			bash: map[string]string{
				"ls && rm -rf build":          "request [rm -rf build]",
				"rm --recursive --force x":    "request [rm --recursive --force x]",
				"sudo rm -r x -f":             "request [sudo rm -r x -f]",
				"find . -name '*.o' -delete":  "request [find . -name '*.o' -delete]",
				"rm -r x; rm -f y":            "none",
				"rm -- -rf":                   "none",
				"find . -name delete":         "none",
				"rmdir -rf x":                 "none",
				"sh -c 'cd x && rm -fr .git'": "request [rm -fr .git]",
			},
		},
		"files": {
			module: `import { block, matchTool, type PermissionsAPI } from "@thurstonsand/pi-permissions";
export default function permissions(api: PermissionsAPI) {
  api.onToolUse({ name: "generated", description: "Generated files are generated.", handler(input) {
    return matchTool(input.tool, {
      edit(tool) { if (tool.projectPath?.startsWith("gen/")) return block("Run make generate instead."); },
      write(tool) { if (tool.projectPath?.startsWith("gen/")) return block("Run make generate instead."); },
    });
  } });
}`,
			calls: map[string]string{
				fileCall("edit", "gen/a.go"):  "block: Run make generate instead.",
				fileCall("write", "gen/b.go"): "block: Run make generate instead.",
				fileCall("read", "gen/a.go"):  "none",
				fileCall("edit", "general"):   "none",
				toolCall("edit", `{}`, ""):    "none", // without a path it is no edit that the library knows
			},
			bash: map[string]string{"touch gen/a.go": "none"},
		},
		"a custom tool": {
			module: `import { matchTool, type PermissionsAPI, request } from "@thurstonsand/pi-permissions";
export default function permissions(api: PermissionsAPI) {
  api.onToolUse({ name: "release", description: "Ask before a release.", handler(input) {
    return matchTool(input.tool, { custom: { create_release(tool) {
      return request({ guidance: "Check " + String(tool.input["tag"]), approveLabel: "Create", rejectLabel: "Cancel", highlight: [/v[0-9.]+/] });
    } } });
  } });
}`,
			calls: map[string]string{
				toolCall("create_release", `{"tag":"v1.2"}`, ""): "request Check v1.2 [v1.2]",
				toolCall("create_release", `{}`, ""):             "request Check undefined []",
				toolCall("create_releases", `{}`, ""):            "none",
				toolCall("constructor", `{}`, ""):                "none",
				toolCall("toString", `{}`, ""):                   "none",
			},
		},
		"a parsed command in an async handler": {
			module: `import { isBashToolInput, parseShellCommand, request, type PermissionsAPI } from "@thurstonsand/pi-permissions";
export default async function permissions(api: PermissionsAPI) {
  api.onToolUse({ name: "mail", description: "Ask before mail.", async handler(input) {
    if (!isBashToolInput(input.tool)) return;
    const parsed = await parseShellCommand(input.tool.command, { wrappers: [{ program: "retry", positionalSkips: 1 }] });
    const mail = parsed.commands.filter((c) => c.programName === "mail");
    if (mail.length > 0) return request({ highlight: mail.flatMap((c) => c.args.filter((a) => a.text.includes("@"))) });
    if (parsed.hasErrors) return request({ guidance: "unreadable" });
  } });
}`,
			bash: map[string]string{
				"retry 3 mail -s x a@b.org":   "request [a@b.org]",
				"mail a@b.org 'c@d.org'":      "request [a@b.org|'c@d.org']",
				"echo mail a@b.org":           "none",
				"mail a@b.org ; )":            "request [mail a@b.org ; )]",
				"$MAILER a@b.org":             "request unreadable []",
				"email a@b.org; mailx a@b.or": "none",
			},
		},
		"strict": {
			module: `import { matchCommand, matchTool, request } from "@thurstonsand/pi-permissions";
export default function (api) {
  api.onToolUse({ name: "curl", description: "Ask before curl.", handler: ({ tool }) => matchTool(tool, { bash: matchCommand({ program: "curl", strict: true, onMatch: () => request() }) }) });
}`,
			bash: map[string]string{
				"curl x":      "request [curl]",
				"ls":          "none",
				"ls )":        "request Not all of this command can be read before it runs. [ls )]",
				"eval \"$x\"": "request Not all of this command can be read before it runs. [eval \"$x\"]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, row.module)
			for command, want := range row.bash {
				if got := s.says(t, bashCall(command)).says(command); got != want {
					t.Errorf("%q: %s, want %s", command, got, want)
				}
			}
			for call, want := range row.calls {
				if got := s.says(t, call).says(detailOf(t, call)); got != want {
					t.Errorf("%s: %s, want %s", call, got, want)
				}
			}
		})
	}
}
