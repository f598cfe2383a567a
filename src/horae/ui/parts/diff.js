// What differs between two texts, line by line; what is the same far around it is folded away.

import { html, useMemo, useState } from "../core/html.js";

const AROUND = 3; // lines that are the same, before and after what differs
const MOST = 4_000_000; // comparisons of lines: what differs in more is told as a whole

/** The lines that differ, between what both begin and end with: ["+" | "-" | " ", line]. */
function between(a, b) {
  if (a.length * b.length > MOST) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const told = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { told.push([" ", a[i]]); i += 1; j += 1; }
    else if (j < b.length && (i === a.length || common[i][j + 1] > common[i + 1][j])) { told.push(["+", b[j]]); j += 1; }
    else { told.push(["-", a[i]]); i += 1; }
  }
  return told;
}

function lines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < least - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (from, to) => a.slice(from, to).map((line) => [" ", line]);
  return [...same(0, head), ...between(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...same(a.length - tail, a.length)];
}

/** Long runs of what is the same become one entry, ["…", how many]. */
function folded(told) {
  const near = new Uint8Array(told.length);
  told.forEach(([kind], at) => { if (kind !== " ") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1); });
  const kept = [];
  for (let at = 0; at < told.length; at += 1) {
    if (near[at]) { kept.push(told[at]); continue; }
    const from = at;
    while (at + 1 < told.length && !near[at + 1]) at += 1;
    if (at - from < 2) kept.push(...told.slice(from, at + 1)); else kept.push(["…", at - from + 1]);
  }
  return kept;
}

const WORDS = { "+": "added", "-": "taken away", " ": "" };
const CLASSES = { "+": "added", "-": "removed", " ": "same" };

/** before and after: texts, or values shown as JSON. */
export function Diff({ before, after }) {
  const [whole, setWhole] = useState(false);
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
  const told = useMemo(() => lines(text(before), text(after)), [text(before), text(after)]);
  if (told.every(([kind]) => kind === " ")) return html`<p class="soft">They say the same.</p>`;
  const shown = whole ? told : folded(told);
  return html`<pre class="diff" tabindex="0">${shown.map(([kind, line], at) => (kind === "…"
    ? html`<button key=${at} type="button" class="link" onClick=${() => setWhole(true)}>… ${line} lines that are the same</button>${"\n"}`
    : html`<span key=${at} class=${CLASSES[kind]}><span class="unseen">${WORDS[kind]} </span>${kind} ${line}${"\n"}</span>`))}</pre>`;
}
