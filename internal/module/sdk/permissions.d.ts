// Types of the library that permission modules import. `assent module new` puts a
// copy of this file beside the module, so that an editor and `tsc` know them; at
// run time the library is built into assent.

declare module "@assent/permissions" {
  /** What a module's default export gets. */
  export interface PermissionsAPI {
    /** Registers a check. Checks are asked in the order in which they are registered. */
    onToolUse(check: ToolUsePermissionHook): void;
  }

  /** The default export of a module. It may be async, but there is nothing to wait for: no file, no network, no timer. */
  export type PermissionModule = (api: PermissionsAPI) => void | Promise<void>;

  /** One check. */
  export interface ToolUsePermissionHook {
    /** Short and unique within the module. It stands in prompts, records, and where an approver turns the check off for a session. */
    name: string;
    /** What the check is for, whatever the call is. It always stands in the prompt. */
    description: string;
    /**
     * The calls that the handler is asked about: one tool's, those of several tools, or what a function picks.
     * Without it: every call. Names cost nothing where they do not match, a function does.
     */
    matcher?: PermissionMatcher;
    handler: PermissionHandler;
  }

  export type PermissionMatcher =
    | PermissionToolName
    | readonly PermissionToolName[]
    | ((input: PermissionInput) => boolean | Promise<boolean>);

  /** Returns nothing to go on, or a decision. What it throws, or leaves open for too long, makes the call a person's, and the failure is shown. */
  export type PermissionHandler = (
    input: PermissionInput,
  ) => PermissionDecision | undefined | void | Promise<PermissionDecision | undefined | void>;

  /** There is no allow: a module only tightens what the rules say. */
  export type PermissionDecision =
    | { decision: "block"; reason: string }
    | { decision: "request"; prompt?: PermissionRequestPrompt };

  export interface PermissionRequestLabels {
    approveLabel?: string;
    /** Only of a call that an approver can edit. */
    editLabel?: string;
    rejectLabel?: string;
  }

  /** How the call is put to the approver. Labels change words, never what is chosen by default. */
  export interface PermissionRequestPrompt extends PermissionRequestLabels {
    /** What to look at in this very call. */
    guidance?: string;
    /** The part of `tool.detail` that says why there is a prompt. */
    highlight?: PermissionHighlight;
  }

  /** Which modules a check came with. Kept for modules written for other hosts; nothing here returns one. */
  export type PermissionSource = "project" | "fleet" | "user" | `package:${string}`;

  /** Denies the call. The reason is for the agent: say what holds, and what to do instead. */
  export function block(reason: string): PermissionDecision;

  /** Leaves the call to a person. Neither rules, grants, judges nor yolo answer it. */
  export function request(prompt?: PermissionRequestPrompt): PermissionDecision;

  // --- what a call is ---

  export interface PermissionInput {
    /** The agent's working directory. */
    cwd: string;
    /** The folder of this module, as its author knows it: a name, nothing to read from. */
    permissionRoot: string;
    session: PermissionSession;
    /** The project that the call belongs to; its fields are "" where the adapter said none. */
    project: PermissionProject;
    tool: PermissionToolInput;
  }

  export interface PermissionSession {
    id: string;
    /** The session that started this one, "" for none. */
    parent: string;
    /** The session at the top of the tree. */
    root: string;
    /** A person sits at it. */
    interactive: boolean;
  }

  export interface PermissionProject {
    id: string;
    root: string;
  }

  export type BuiltInToolName = "bash" | "read" | "write" | "edit" | "grep" | "find" | "ls";
  export type PermissionToolName = BuiltInToolName | (string & {});

  interface BasePermissionToolInput<TName extends string, TInput> {
    /**
     * The exact name; of a built-in tool the name of its kind, so "bash" of an agent's "Bash" too; of an MCP tool
     * "mcp__SERVER__TOOL", whatever way the agent calls it. The matcher "mcp" is every MCP tool.
     */
    toolName: TName;
    /** The name under which the agent's adapter asks, always. */
    agentToolName: string;
    /** The input as the agent sent it; of an MCP tool what the tool is given. */
    input: TInput;
    /** The call in one text, as the approver sees it; highlights are parts of it. */
    detail: string;
  }

  /** A check is asked about a call that names several files once for each of them. */
  interface NamedPath {
    /** As the agent wrote it. */
    path: string;
    /** Seen from `cwd`, without `.` and `..`; links are not followed. */
    absolutePath: string;
    /** From `cwd`, with forward slashes; only of a path inside it. */
    projectPath?: string;
  }

  type ToolRecord = Record<string, unknown>;

  export interface BashPermissionToolInput extends BasePermissionToolInput<"bash", ToolRecord & { command: string }> {
    command: string;
  }
  export interface ReadPermissionToolInput extends BasePermissionToolInput<"read", ToolRecord>, NamedPath {}
  export interface WritePermissionToolInput extends BasePermissionToolInput<"write", ToolRecord>, NamedPath {}
  export interface EditPermissionToolInput extends BasePermissionToolInput<"edit", ToolRecord>, NamedPath {}
  export interface GrepPermissionToolInput extends BasePermissionToolInput<"grep", ToolRecord>, Partial<NamedPath> {}
  export interface FindPermissionToolInput extends BasePermissionToolInput<"find", ToolRecord>, Partial<NamedPath> {}
  export interface LsPermissionToolInput extends BasePermissionToolInput<"ls", ToolRecord>, Partial<NamedPath> {}
  export interface CustomPermissionToolInput<TName extends string = string> extends BasePermissionToolInput<TName, ToolRecord> {}

  export type PermissionToolInput =
    | BashPermissionToolInput
    | ReadPermissionToolInput
    | WritePermissionToolInput
    | EditPermissionToolInput
    | GrepPermissionToolInput
    | FindPermissionToolInput
    | LsPermissionToolInput
    | CustomPermissionToolInput;

  export function isBashToolInput(tool: PermissionToolInput): tool is BashPermissionToolInput;
  export function isReadToolInput(tool: PermissionToolInput): tool is ReadPermissionToolInput;
  export function isWriteToolInput(tool: PermissionToolInput): tool is WritePermissionToolInput;
  export function isEditToolInput(tool: PermissionToolInput): tool is EditPermissionToolInput;
  export function isGrepToolInput(tool: PermissionToolInput): tool is GrepPermissionToolInput;
  export function isFindToolInput(tool: PermissionToolInput): tool is FindPermissionToolInput;
  export function isLsToolInput(tool: PermissionToolInput): tool is LsPermissionToolInput;
  /** Of tools that are not built in. */
  export function isCustomToolInput(tool: PermissionToolInput, toolName: BuiltInToolName): tool is never;
  export function isCustomToolInput<TName extends string>(
    tool: PermissionToolInput,
    toolName: TName,
  ): tool is CustomPermissionToolInput<TName>;

  // --- matching by tool ---

  export type ToolMatchResult<T> = T | Promise<T>;

  export interface ToolMatchHandlers<T> {
    bash?: (tool: BashPermissionToolInput) => ToolMatchResult<T>;
    read?: (tool: ReadPermissionToolInput) => ToolMatchResult<T>;
    write?: (tool: WritePermissionToolInput) => ToolMatchResult<T>;
    edit?: (tool: EditPermissionToolInput) => ToolMatchResult<T>;
    grep?: (tool: GrepPermissionToolInput) => ToolMatchResult<T>;
    find?: (tool: FindPermissionToolInput) => ToolMatchResult<T>;
    ls?: (tool: LsPermissionToolInput) => ToolMatchResult<T>;
    /** By exact name. */
    custom?: Record<string, (tool: CustomPermissionToolInput) => ToolMatchResult<T>>;
    /** Whatever the handlers above leave undecided. */
    default?: (tool: PermissionToolInput) => ToolMatchResult<T>;
  }

  /** Calls the handler of the tool. */
  export function matchTool<T>(
    tool: PermissionToolInput,
    handlers: ToolMatchHandlers<T>,
  ): ToolMatchResult<T | undefined>;

  // --- matching shell commands ---

  export interface CommandSpec {
    /** The base name of the program, or several. */
    program: string | readonly string[];
    /** Any of these words as subcommand. Without it: every call of the program. */
    subcommands?: readonly string[];
    /** The flags of the program that take the next word as their value, such as `gitValueFlags`. */
    valueFlags?: readonly string[];
    /** "first" (default): the first word that is no flag. "any": any of them, for programs whose flags nobody lists. */
    subcommandPosition?: "first" | "any";
    /** Says of one command whether it counts. */
    where?: (command: SimpleCommand) => boolean;
    /** Request what cannot be read completely, whatever it is. */
    strict?: boolean;
    /** Called once, with all commands that match. */
    onMatch: (match: CommandMatch) => PermissionDecision | undefined | void;
  }

  export interface CommandMatch {
    commands: readonly SimpleCommand[];
    /** The programs and subcommands that matched. A request without a highlight of its own gets these. */
    spans: readonly HighlightSpan[];
  }

  /** A handler of bash calls for `matchTool`. */
  export function matchCommand(
    spec: CommandSpec,
  ): (tool: BashPermissionToolInput) => Promise<PermissionDecision | undefined>;

  /** The flags of git in front of its subcommand that take a value. */
  export const gitValueFlags: readonly string[];

  /**
   * Reads a command as the rules do: what stands in lists, pipes, substitutions, loops, payloads of `sh -c` and behind
   * `find -exec` and its kin are commands too; text in quotes is none.
   */
  export function parseShellCommand(
    command: string,
    options?: ParseShellCommandOptions,
  ): Promise<ParsedShellCommand>;

  export interface ParseShellCommandOptions {
    /** The programs to see through, instead of the usual ones (sudo, env, timeout, xargs, …). */
    wrappers?: readonly WrapperSpec[];
  }

  export interface WrapperSpec {
    program: string | readonly string[];
    valueFlags?: readonly string[];
    /** How many words stand between its flags and the command. */
    positionalSkips?: number;
  }

  export interface ParsedShellCommand {
    commands: readonly SimpleCommand[];
    /** A part could not be read, or nobody can know it before it runs. There may be more commands. */
    hasErrors: boolean;
  }

  export interface SimpleCommand {
    /** The program behind all wrappers; undefined where there is none. */
    program: ShellToken | undefined;
    /** Its base name. */
    programName: string | undefined;
    /** The name by which rules know the program, where that is another one: git, of `GIT` and `git.exe`. */
    knownAs?: string | undefined;
    args: readonly ShellToken[];
    /** The assignments in front. */
    assignments: readonly ShellToken[];
    /** The whole command with wrappers and redirections. */
    span: HighlightSpan;
    /** Whether any of the spellings is used as a flag. `-r` is found in `-rf`, `--x` in `--x=1`, nothing behind `--`. */
    hasFlag(...spellings: readonly string[]): boolean;
    /** The first positional. */
    subcommand(options?: TokenWalkOptions): ShellToken | undefined;
    /** The words that are neither flags nor values of `valueFlags`. */
    positionals(options?: TokenWalkOptions): readonly ShellToken[];
  }

  export interface TokenWalkOptions {
    valueFlags?: readonly string[];
  }

  /** A word without its quotes, and where it stands with them. */
  export interface ShellToken extends HighlightSpan {
    text: string;
  }

  // --- highlights ---

  /** A half-open range of `tool.detail`. */
  export interface HighlightSpan {
    start: number;
    end: number;
  }

  /** Every occurrence of a text or pattern, ranges, or a function that finds them. What it does not find is not highlighted. */
  export type PermissionHighlight =
    | string
    | RegExp
    | readonly (string | RegExp)[]
    | readonly HighlightSpan[]
    | ((detail: string) => readonly HighlightSpan[]);

  /** The ranges of a highlight: in order, within the text, merged where they meet. */
  export function highlightSpans(detail: string, highlight: PermissionHighlight): HighlightSpan[];
}

/** The name under which modules written for pi-permissions import the library. */
declare module "@thurstonsand/pi-permissions" {
  export * from "@assent/permissions";
}
