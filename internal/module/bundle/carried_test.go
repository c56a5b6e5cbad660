package bundle

import "testing"

// What a check does to the words of a command that it was given reaches neither
// the checks after it nor the next call: shift() on the arguments is an idiom.
func TestTheWordsOfACommandAreEachChecksOwn(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"left alone":               `""`,
		"an argument taken off":    `(c.args as unknown[]).shift()`,
		"the commands taken off":   `(parsed.commands as unknown[]).pop()`,
		"a word written over":      `(c.args[0] as { text: string }).text = "status"`,
		"the program written over": `(c as { programName?: string }).programName = "ls"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, `import { block, matchCommand, parseShellCommand, type BashPermissionToolInput, type PermissionsAPI } from "@assent/permissions";
export default (api: PermissionsAPI) => {
  api.onToolUse({ name: "spoils", description: "d", matcher: "bash", handler: async ({ tool }) => {
    const parsed = await parseShellCommand((tool as BashPermissionToolInput).command);
    for (const c of parsed.commands) `+spoil+`;
  } });
  api.onToolUse({ name: "blocks", description: "d", matcher: "bash", handler: ({ tool }) =>
    matchCommand({ program: "git", subcommands: ["push"], onMatch: () => block("no") })(tool as BashPermissionToolInput) });
};`)
			for call := range 2 {
				if got := s.says(t, bashCall("git push")).says("git push"); got != "block: no" {
					t.Errorf("call %d: %s", call+1, got)
				}
			}
			if got := s.says(t, bashCall("git status")).says("git status"); got != "none" {
				t.Errorf("another command: %s", got)
			}
		})
	}
}
