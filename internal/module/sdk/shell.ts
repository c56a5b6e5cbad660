import type {
  BashPermissionToolInput,
  CommandSpec,
  HighlightSpan,
  ParsedShellCommand,
  ParseShellCommandOptions,
  PermissionDecision,
  ShellToken,
  SimpleCommand,
  TokenWalkOptions,
} from "@assent/permissions";
import { request } from "./decision";
import { settled } from "./promise";

// The host reads the command with the reader that the rules use.
declare const __assentParseShell: (command: string, options: string) => string;

interface Read {
  commands: {
    program?: ShellToken;
    programName?: string;
    knownAs?: string;
    args: ShellToken[];
    assignments: ShellToken[];
    span: HighlightSpan;
  }[];
  hasErrors: boolean;
}

export const gitValueFlags: readonly string[] = [
  "-C",
  "-c",
  "--attr-source",
  "--config-env",
  "--exec-path",
  "--git-dir",
  "--list-cmds",
  "--namespace",
  "--super-prefix",
  "--work-tree",
];

// The checks of a module ask about one call after the other: the last command
// that was read is often the next one. Only its text is kept: what a check does
// to the words that it gets must not reach the next check, or the next call.
let last: { command: string; options: string; read: string } | undefined;

export async function parseShellCommand(command: string, options?: ParseShellCommandOptions): Promise<ParsedShellCommand> {
  return parsedCommand(command, options);
}

function parsedCommand(command: string, options?: ParseShellCommandOptions): ParsedShellCommand {
  const { commands, hasErrors } = readCommand(command, options);
  return { commands: commands.map(simple), hasErrors };
}

function readCommand(command: string, options?: ParseShellCommandOptions): Read {
  const wire = options?.wrappers === undefined ? "" : JSON.stringify({ wrappers: options.wrappers });
  if (last === undefined || last.command !== command || last.options !== wire) {
    last = { command, options: wire, read: __assentParseShell(command, wire) };
  }
  return JSON.parse(last.read) as Read;
}

function simple({ program, programName, knownAs, args, assignments, span }: Read["commands"][number]): SimpleCommand {
  return {
    program,
    programName,
    knownAs,
    args,
    assignments,
    span,
    hasFlag: (...spellings) => hasFlag(args, spellings),
    subcommand: (options) => positionals(args, options)[0],
    positionals: (options) => positionals(args, options),
  };
}

function hasFlag(args: readonly ShellToken[], spellings: readonly string[]): boolean {
  for (const { text } of args) {
    if (text === "--") return false;
    if (spellings.some((spelling) => isFlag(text, spelling))) return true;
  }
  return false;
}

function isFlag(text: string, spelling: string): boolean {
  if (text === spelling) return true;
  if (spelling.startsWith("--")) return text.startsWith(`${spelling}=`);
  // One letter may stand in a cluster: -f in -rf.
  return /^-[^-]$/.test(spelling) && /^-[^-]/.test(text) && text.includes(spelling.slice(1));
}

function positionals(args: readonly ShellToken[], options: TokenWalkOptions = {}): ShellToken[] {
  const valued = new Set(options.valueFlags);
  const out: ShellToken[] = [];
  for (let i = 0; i < args.length; i++) {
    const token = args[i] as ShellToken;
    if (token.text === "--") return out.concat(args.slice(i + 1));
    if (token.text.length < 2 || !token.text.startsWith("-")) {
      out.push(token);
    } else if (valued.has(token.text)) {
      i++;
    }
  }
  return out;
}

export function matchCommand(spec: CommandSpec): (tool: BashPermissionToolInput) => Promise<PermissionDecision | undefined> {
  const programs = new Set(typeof spec.program === "string" ? [spec.program] : spec.program);
  // A matcher that can match nothing would be taken for one that never objects.
  if (programs.size === 0 || typeof spec.onMatch !== "function") throw new Error("matchCommand takes {program, onMatch, …}");
  // A text has includes() too, and would be searched for parts of words.
  if (spec.subcommands !== undefined && !Array.isArray(spec.subcommands)) throw new Error('matchCommand: subcommands is a list of words, as ["push"]');
  if (spec.subcommands?.length === 0) throw new Error("matchCommand: subcommands is an empty list, which no command matches");
  const match = (tool: BashPermissionToolInput): PermissionDecision | undefined => {
    const read = readCommand(tool.command);
    if (spec.strict === true && read.hasErrors) {
      return request({
        guidance: "Not all of this command can be read before it runs.",
        highlight: [{ start: 0, end: tool.command.length }],
      });
    }
    const commands: SimpleCommand[] = [];
    const spans: HighlightSpan[] = [];
    for (const one of read.commands) {
      if (!isOneOf(programs, one)) continue;
      const command = simple(one);
      const subcommand = matchingSubcommand(command, spec);
      if (spec.subcommands !== undefined && subcommand === undefined) continue;
      if (spec.where !== undefined && !spec.where(command)) continue;
      commands.push(command);
      for (const token of [command.program, subcommand]) {
        if (token !== undefined) spans.push({ start: token.start, end: token.end });
      }
    }
    return commands.length === 0 ? undefined : withHighlight(spec.onMatch({ commands, spans }), spans);
  };
  return (tool) => settled(() => match(tool));
}

// Some file systems find git under the name GIT, some systems as git.exe.
function isOneOf(programs: ReadonlySet<string>, { programName: name, knownAs }: Read["commands"][number]): boolean {
  if (name === undefined) return false;
  return programs.has(name) || programs.has(name.toLowerCase()) || (knownAs !== undefined && programs.has(knownAs));
}

function matchingSubcommand(command: SimpleCommand, spec: CommandSpec): ShellToken | undefined {
  const walk: TokenWalkOptions = spec.valueFlags === undefined ? {} : { valueFlags: spec.valueFlags };
  const words = command.positionals(walk);
  const candidates = spec.subcommandPosition === "any" ? words : words.slice(0, 1);
  return candidates.find(({ text }) => spec.subcommands?.includes(text) === true);
}

function withHighlight(decision: PermissionDecision | undefined | void, spans: readonly HighlightSpan[]): PermissionDecision | undefined {
  if (!decision || decision.decision !== "request" || decision.prompt?.highlight !== undefined) return decision || undefined;
  return { ...decision, prompt: { ...decision.prompt, highlight: spans } };
}
