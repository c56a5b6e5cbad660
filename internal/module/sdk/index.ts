// The library that modules import. What it exports is declared in permissions.d.ts.
export { block, request } from "./decision";
export { highlightSpans } from "./highlight";
export { gitValueFlags, matchCommand, parseShellCommand } from "./shell";
export {
  isBashToolInput,
  isCustomToolInput,
  isEditToolInput,
  isFindToolInput,
  isGrepToolInput,
  isLsToolInput,
  isReadToolInput,
  isWriteToolInput,
  matchTool,
} from "./tool";
