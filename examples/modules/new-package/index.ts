import { matchCommand, matchTool, request, type PermissionsAPI, type ShellToken, type SimpleCommand } from "@assent/permissions";
import { approved } from "./lib/approved";

const valueFlags = ["--registry", "--prefix", "-C", "--dir", "--filter"];

// `npm install` alone installs what is in the lockfile; with a name it adds one.
function strangers(command: SimpleCommand): ShellToken[] {
  const [, ...names] = command.positionals({ valueFlags });
  return names.filter((name) => !approved(name.text.replace(/(.)@.*$/, "$1")));
}

const install = matchCommand({
  program: ["npm", "pnpm", "yarn"],
  subcommands: ["install", "i", "add"],
  valueFlags,
  where: (command) => strangers(command).length > 0,
  onMatch: ({ commands }) =>
    request({
      guidance: "Not on the list of approved packages. Who maintains it, and what does it run when it is installed?",
      highlight: commands.flatMap(strangers),
    }),
});

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "new package",
    description: "A package that nobody here has looked at runs its own code.",
    matcher: "bash",
    handler: ({ tool }) => matchTool(tool, { bash: install }),
  });
}
