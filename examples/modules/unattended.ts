import { block, matchTool, request, type PermissionsAPI } from "@assent/permissions";

const guarded = [".github/workflows/", ".gitlab-ci.yml", "deploy/"];

function isGuarded(projectPath: string | undefined): boolean {
  return projectPath !== undefined && guarded.some((path) => projectPath === path || (path.endsWith("/") && projectPath.startsWith(path)));
}

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "pipeline files",
    description: "Whoever changes the pipeline can run anything with its secrets.",
    matcher: ["write", "edit"],
    handler({ tool, session }) {
      // An agent at which nobody sits, or one that another agent started, leaves them alone.
      const alone = !session.interactive || session.parent !== "";
      const decide = ({ projectPath }: { projectPath?: string }) => {
        if (!isGuarded(projectPath)) return undefined;
        return alone ? block("Only a session with a person at it changes the pipeline: describe the change in your answer.") : request();
      };
      return matchTool(tool, { write: decide, edit: decide });
    },
  });
}
