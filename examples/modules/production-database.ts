import { isBashToolInput, parseShellCommand, request, type HighlightSpan, type PermissionsAPI } from "@assent/permissions";

const clients = new Set(["psql", "mysql", "pg_dump", "pg_restore", "mongosh"]);
// Our own script: `with-db NAME command …` sets the address and runs the command.
const wrappers = [{ program: "with-db", positionalSkips: 1 }, { program: ["sudo", "env"] }];

export default function permissions(api: PermissionsAPI) {
  api.onToolUse({
    name: "production database",
    description: "What runs against production is seen by a person first.",
    matcher: (input) => isBashToolInput(input.tool) && /prod/i.test(input.tool.command),
    async handler({ tool }) {
      if (!isBashToolInput(tool)) return;
      const parsed = await parseShellCommand(tool.command, { wrappers });
      if (parsed.hasErrors) return request({ guidance: "Not all of this command can be read, and it speaks of production." });
      const found: HighlightSpan[] = [];
      for (const { programName, args, assignments, span } of parsed.commands) {
        if (programName === undefined || !clients.has(programName)) continue;
        const named = [...assignments, ...args].filter((word) => /prod/i.test(word.text));
        const wrapped = /^with-db\s+\S*prod/i.test(tool.command.slice(span.start, span.end));
        found.push(...(named.length === 0 && wrapped ? [span] : named));
      }
      if (found.length > 0) return request({ guidance: "Does it write? Is there a backup?", highlight: found });
    },
  });
}
