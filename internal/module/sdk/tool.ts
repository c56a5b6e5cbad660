import type {
  BashPermissionToolInput,
  CustomPermissionToolInput,
  EditPermissionToolInput,
  FindPermissionToolInput,
  GrepPermissionToolInput,
  LsPermissionToolInput,
  PermissionToolInput,
  ReadPermissionToolInput,
  ToolMatchHandlers,
  ToolMatchResult,
  WritePermissionToolInput,
} from "@assent/permissions";

const has = (tool: PermissionToolInput, name: string, ...fields: string[]): boolean =>
  tool.toolName === name && fields.every((field) => field in tool);

// A call of a built-in tool without its main field is none of these: what reads
// `tool.command` must find one.
export const isBashToolInput = (tool: PermissionToolInput): tool is BashPermissionToolInput => has(tool, "bash", "command");
export const isReadToolInput = (tool: PermissionToolInput): tool is ReadPermissionToolInput => has(tool, "read", "path", "absolutePath");
export const isWriteToolInput = (tool: PermissionToolInput): tool is WritePermissionToolInput => has(tool, "write", "path", "absolutePath");
export const isEditToolInput = (tool: PermissionToolInput): tool is EditPermissionToolInput => has(tool, "edit", "path", "absolutePath");
export const isGrepToolInput = (tool: PermissionToolInput): tool is GrepPermissionToolInput => has(tool, "grep");
export const isFindToolInput = (tool: PermissionToolInput): tool is FindPermissionToolInput => has(tool, "find");
export const isLsToolInput = (tool: PermissionToolInput): tool is LsPermissionToolInput => has(tool, "ls");

export function isCustomToolInput(tool: PermissionToolInput, toolName: string): tool is never {
  return tool.toolName === toolName;
}

type Handler<T> = (tool: never) => ToolMatchResult<T>;

export function matchTool<T>(tool: PermissionToolInput, handlers: ToolMatchHandlers<T>): ToolMatchResult<T | undefined> {
  const own = handlerOf(tool, handlers);
  const answer = own === undefined ? undefined : own(tool as never);
  return answer ?? handlers.default?.(tool);
}

function handlerOf<T>(tool: PermissionToolInput, handlers: ToolMatchHandlers<T>): Handler<T> | undefined {
  if (isBashToolInput(tool)) return handlers.bash;
  if (isReadToolInput(tool)) return handlers.read;
  if (isWriteToolInput(tool)) return handlers.write;
  if (isEditToolInput(tool)) return handlers.edit;
  if (isGrepToolInput(tool)) return handlers.grep;
  if (isFindToolInput(tool)) return handlers.find;
  if (isLsToolInput(tool)) return handlers.ls;
  // A tool may be called "constructor": what an object inherits is no handler.
  const custom = handlers.custom;
  const { toolName } = tool as CustomPermissionToolInput;
  return custom !== undefined && Object.prototype.hasOwnProperty.call(custom, toolName) ? custom[toolName] : undefined;
}
