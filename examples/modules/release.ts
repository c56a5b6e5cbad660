import { gitValueFlags, matchCommand, matchTool, request, type PermissionsAPI, type ShellToken } from "@assent/permissions";

const version = /^v?\d+\.\d+\.\d+/;

const tagged = matchCommand({
  program: "git",
  subcommands: ["tag", "push"],
  valueFlags: gitValueFlags,
  where: (command) => versions(command.args).length > 0 || command.hasFlag("--tags", "--follow-tags"),
  onMatch({ commands, spans }) {
    const tags = commands.flatMap((command) => versions(command.args));
    const names = tags.map((tag) => tag.text).join(", ") || "all tags of this clone";
    return request({
      guidance: `This releases ${names}. Is the changelog written?`,
      highlight: [...spans, ...tags],
      approveLabel: "Release",
      rejectLabel: "Not yet",
    });
  },
});

function versions(args: readonly ShellToken[]): ShellToken[] {
  return args.filter((arg) => version.test(arg.text));
}

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "release",
    description: "A version tag starts the release pipeline.",
    matcher: "bash",
    handler: ({ tool }) => matchTool(tool, { bash: tagged }),
  });
}
