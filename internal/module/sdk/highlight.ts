import type { HighlightSpan, PermissionHighlight } from "@assent/permissions";

// How many ranges one highlight may have, and how many places are looked at for
// them: a pattern that matches everywhere must not cost the call its time.
const most = 1000;

export function highlightSpans(detail: string, highlight: PermissionHighlight): HighlightSpan[] {
  try {
    return merged(found(detail, highlight), detail.length);
  } catch {
    return []; // a prompt without emphasis is better than none
  }
}

function found(detail: string, highlight: PermissionHighlight): HighlightSpan[] {
  const wanted: unknown = typeof highlight === "function" ? highlight(detail) : highlight;
  const items: unknown[] = Array.isArray(wanted) ? wanted : [wanted];
  const spans: HighlightSpan[] = [];
  for (const item of items) {
    if (typeof item === "string") {
      literal(detail, item, spans);
    } else if (item instanceof RegExp) {
      pattern(detail, item, spans);
    } else if (isSpan(item)) {
      spans.push(item);
    }
  }
  return spans;
}

function isSpan(item: unknown): item is HighlightSpan {
  if (typeof item !== "object" || item === null) return false;
  const { start, end } = item as Partial<HighlightSpan>;
  return typeof start === "number" && typeof end === "number";
}

function literal(detail: string, text: string, spans: HighlightSpan[]): void {
  if (text === "") return;
  let at = detail.indexOf(text);
  while (at >= 0 && spans.length < most) {
    spans.push({ start: at, end: at + text.length });
    at = detail.indexOf(text, at + text.length);
  }
}

// The author's own object is left alone: it may be a constant of the module, and
// its lastIndex would carry over to the next call.
function pattern(detail: string, author: RegExp, spans: HighlightSpan[]): void {
  const own = new RegExp(author.source, author.flags.replace(/[gy]/g, "") + "g");
  for (let tries = 0; tries < 2 * most && spans.length < most; tries++) {
    const match = own.exec(detail);
    if (match === null) return;
    if (match[0] === "") {
      own.lastIndex++;
    } else {
      spans.push({ start: match.index, end: match.index + match[0].length });
    }
  }
}

function merged(spans: readonly HighlightSpan[], length: number): HighlightSpan[] {
  const within = (n: number) => Math.min(Math.max(Math.trunc(n), 0), length);
  const sorted = spans
    .filter(({ start, end }) => Number.isFinite(start) && Number.isFinite(end))
    .map(({ start, end }) => ({ start: within(start), end: within(end) }))
    .filter(({ start, end }) => start < end)
    .sort((a, b) => a.start - b.start || a.end - b.end);
  const out: HighlightSpan[] = [];
  for (const span of sorted) {
    const last = out[out.length - 1];
    if (last !== undefined && span.start <= last.end) {
      last.end = Math.max(last.end, span.end);
    } else {
      out.push(span);
    }
  }
  return out;
}
