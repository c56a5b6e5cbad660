import { block, matchCommand, matchTool, type PermissionsAPI } from "@assent/permissions";

const folder = "corpus/";
const instead = "The corpus is too large to read whole: look for what you need with grep, or read at most 200 lines with limit.";

const dumped = (cwd: string) =>
  matchCommand({
    program: ["cat", "less", "more", "bat"],
    where: (command) => command.positionals().some((word) => inCorpus(within(cwd, word.text))),
    onMatch: () => block(instead),
  });

// The words of a command are as they are typed, and agents like to type whole paths.
function within(cwd: string, path: string): string {
  return path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

function inCorpus(path: string | undefined): boolean {
  return path !== undefined && path.replace(/^(\.\/)+/, "").startsWith(folder);
}

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "large corpus",
    description: "Reading the corpus whole fills the context and says little.",
    matcher: ["read", "bash"],
    handler: ({ tool, cwd }) =>
      matchTool(tool, {
        read({ projectPath, input }) {
          const limit = input["limit"];
          const little = typeof limit === "number" && limit <= 200;
          return inCorpus(projectPath) && !little ? block(instead) : undefined;
        },
        bash: dumped(cwd),
      }),
  });
}
