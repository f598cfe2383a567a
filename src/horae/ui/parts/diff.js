// What differs between two texts, line by line.

import { html } from "../core/html.js";

function lines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
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

const WORDS = { "+": "added", "-": "taken away", " ": "" };

/** before and after: texts, or values shown as JSON. */
export function Diff({ before, after }) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
  return html`<pre class="diff" tabindex="0">${lines(text(before), text(after)).map(([kind, line], at) => html`<span key=${at} class=${{ "+": "added", "-": "removed", " ": "same" }[kind]}><span class="unseen">${WORDS[kind]} </span>${kind} ${line}${"\n"}</span>`)}</pre>`;
}
