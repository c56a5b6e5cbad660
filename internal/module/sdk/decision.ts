import type { PermissionDecision, PermissionRequestPrompt } from "@assent/permissions";

export const block = (reason: string): PermissionDecision => ({ decision: "block", reason });

export const request = (prompt?: PermissionRequestPrompt): PermissionDecision =>
  prompt === undefined ? { decision: "request" } : { decision: "request", prompt };
