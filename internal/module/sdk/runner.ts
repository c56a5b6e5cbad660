// What a bundle ends in: it runs the module once and gives the host the two
// things that it calls. The host believes nothing of what it gets.
import type {
  HighlightSpan,
  PermissionHandler,
  PermissionInput,
  PermissionMatcher,
  PermissionRequestPrompt,
  PermissionsAPI,
  ToolUsePermissionHook,
} from "@assent/permissions";
import { highlightSpans } from "./highlight";
import { after, isPromise, type Maybe } from "./promise";

interface Check {
  name: string;
  description: string;
  tools: readonly string[] | null;
  picks: ((input: PermissionInput) => unknown) | undefined;
  handler: PermissionHandler;
}

interface Shown {
  guidance?: string;
  approveLabel?: string;
  editLabel?: string;
  rejectLabel?: string;
  highlight?: HighlightSpan[];
}

type Decided = { decision: "block"; reason: string } | { decision: "request"; prompt: Shown };

type Answer = (Decided & { check: number }) | { decision: "none" };

// What is answered to most calls.
const nothing = '{"decision":"none"}';

export interface Boundary {
  readonly checks: string;
  // A promise only where a check waits for something: to make one, and to look
  // into it, takes the runtime longer than most checks do.
  ask(order: readonly number[], input: string): string | Promise<string>;
}

export function run(exported: { default?: unknown }): Boundary {
  const checks: Check[] = [];
  let open = true;
  const api: PermissionsAPI = {
    onToolUse(hook) {
      if (!open) throw new Error("a check can only be registered while the module loads");
      checks.push(checked(hook, checks));
    },
  };
  const module = exported.default;
  if (typeof module !== "function") throw new Error("the module's default export is no function");
  let state: "done" | "waiting" | { thrown: unknown } = "done";
  const result: unknown = module(api);
  if (isPromise(result)) {
    state = "waiting";
    result.then(
      () => (state = "done"),
      (thrown: unknown) => (state = { thrown }),
    );
  }
  return {
    // Read when the script has come to rest: a module may be async, if it waits for
    // nothing that never comes.
    get checks() {
      open = false;
      if (state === "waiting") throw new Error("the module's function waits for something that never comes: there are no timers and no I/O");
      if (typeof state === "object") throw state.thrown;
      return JSON.stringify(checks.map(({ name, description, tools, picks }) => ({ name, description, tools, function: picks !== undefined })));
    },
    ask: (order, input) => ask(checks, order, input),
  };
}

function checked(hook: ToolUsePermissionHook, others: readonly Check[]): Check {
  if (typeof hook !== "object" || hook === null) throw new Error("onToolUse takes {name, description, handler}");
  const { name, description, matcher, handler } = hook;
  if (typeof name !== "string" || name.trim() === "") throw new Error("a check has no name");
  if (typeof description !== "string" || description.trim() === "") throw new Error(`check ${JSON.stringify(name)} has no description`);
  if (typeof handler !== "function") throw new Error(`check ${JSON.stringify(name)} has no handler`);
  if (others.some((other) => other.name === name)) {
    throw new Error(`two checks are called ${JSON.stringify(name)}: who turns one off would turn off both`);
  }
  return { name, description, handler: (input) => hook.handler(input), ...matched(name, matcher) };
}

function matched(name: string, matcher: PermissionMatcher | undefined): Pick<Check, "tools" | "picks"> {
  if (matcher === undefined) return { tools: null, picks: undefined };
  if (typeof matcher === "function") return { tools: null, picks: matcher };
  const tools: readonly unknown[] = typeof matcher === "string" ? [matcher] : Array.isArray(matcher) ? matcher : [];
  // A check that can match nothing would be taken for one that never objects.
  if (tools.length === 0 || !tools.every((tool) => typeof tool === "string" && tool !== "")) {
    throw new Error(`the matcher of check ${JSON.stringify(name)} is no tool name, list of tool names or function`);
  }
  return { tools: tools as string[], picks: undefined };
}

type Failures = { check: number; error: string }[];

// ask goes through the checks until one decides. One that fails is noted and
// does not keep the others from being asked.
function ask(checks: readonly Check[], order: readonly number[], input: string): string | Promise<string> {
  const failures: Failures = [];
  for (let i = 0; i < order.length; i++) {
    const n = order[i] as number;
    try {
      const found = decide(checks[n], input);
      if (isPromise(found)) return askOn(checks, order.slice(i), found, input, failures);
      if (found !== undefined) return said({ ...found, check: n }, failures);
    } catch (thrown) {
      failures.push({ check: n, error: textOf(thrown) });
    }
  }
  return saidNothing(failures);
}

// askOn is ask from a check on that has something to wait for.
async function askOn(checks: readonly Check[], order: readonly number[], first: PromiseLike<Decided | undefined>, input: string, failures: Failures): Promise<string> {
  for (let i = 0; i < order.length; i++) {
    const n = order[i] as number;
    try {
      const found: Decided | undefined = await (i === 0 ? first : decide(checks[n], input));
      if (found !== undefined) return said({ ...found, check: n }, failures);
    } catch (thrown) {
      failures.push({ check: n, error: textOf(thrown) });
    }
  }
  return saidNothing(failures);
}

const saidNothing = (failures: Failures): string => (failures.length === 0 ? nothing : said({ decision: "none" }, failures));

function said(answer: Answer, failures: Failures): string {
  return JSON.stringify(failures.length > 0 ? { ...answer, failures } : answer);
}

function decide(check: Check | undefined, text: string): Maybe<Decided | undefined> {
  if (check === undefined) throw new Error("there is no such check");
  // Each check reads the call for itself: one that writes into it fools no other.
  const input = JSON.parse(text) as PermissionInput;
  const { detail } = input.tool;
  if (check.picks === undefined) return handle(check, input, detail);
  return after(check.picks(input), (picked) => (picked ? handle(check, input, detail) : undefined));
}

function handle(check: Check, input: PermissionInput, detail: string): Maybe<Decided | undefined> {
  const answer: unknown = check.handler(input);
  return answer === undefined ? undefined : after(answer, (known) => decided(known, detail));
}

function decided(answer: unknown, detail: string): Decided | undefined {
  // `condition && block(…)` answers false where the condition does not hold.
  if (answer === undefined || answer === null || answer === false) return undefined;
  if (typeof answer !== "object") throw new Error(`it answered ${String(answer)}: not nothing, block(…) or request(…)`);
  const { decision, reason, prompt } = answer as { decision?: unknown; reason?: unknown; prompt?: unknown };
  switch (decision) {
    case "block":
      return { decision, reason: words(reason) ?? "" };
    case "request":
      return { decision, prompt: shown(prompt, detail) };
    case "allow":
      throw new Error("it answered allow: a module can only block or request");
  }
  throw new Error(`it answered the decision ${JSON.stringify(decision) ?? "undefined"}: not block or request`);
}

function shown(prompt: unknown, detail: string): Shown {
  if (typeof prompt !== "object" || prompt === null) return {};
  const { guidance, approveLabel, editLabel, rejectLabel, highlight } = prompt as PermissionRequestPrompt;
  return {
    guidance: words(guidance),
    approveLabel: words(approveLabel),
    editLabel: words(editLabel),
    rejectLabel: words(rejectLabel),
    highlight: highlight === undefined ? undefined : highlightSpans(detail, highlight),
  };
}

const words = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `it threw ${String(thrown)}`;
  } catch {
    return "it threw something that has no text";
  }
}
