// The last outcomes of a job as columns: the colour says how each ended, the height how long it took.

import { html } from "../core/html.js";
import { duration, exact } from "../core/format.js";
import { look } from "../core/states.js";
import { link, executionPath } from "../core/route.js";

/** items: [{executionId, status, seconds, at}], newest last. Each is a link if `links`, otherwise the whole is one picture. */
export function Strip({ items = [], width = 6, gap = 2, height = 24, links = false, most = 100 }) {
  const shown = items.slice(-most);
  if (!shown.length) return html`<span class="soft small">no executions yet</span>`;
  const longest = Math.max(...shown.map((one) => one.seconds ?? 0), 0.001);
  const tall = (one) => Math.max(4, Math.round(height * Math.sqrt((one.seconds ?? 0) / longest)));
  const words = summary(shown);
  const column = (one, at) => html`<rect key=${one.executionId} class="fill-${look(one.status).tone}" x=${at * (width + gap)} y=${height - tall(one)} width=${width} height=${tall(one)} rx="1"><title>${told(one)}</title></rect>`;
  return html`<svg class="strip" width=${shown.length * (width + gap)} height=${height} role=${links ? "group" : "img"} aria-label=${words}>${shown.map((one, at) => (links
    ? html`<a key=${one.executionId} href=${link(executionPath(one.executionId))} aria-label=${told(one)}><rect class="hit" x=${at * (width + gap)} y="0" width=${width + gap} height=${height} />${column(one, at)}</a>`
    : column(one, at)))}</svg>`;
}

const told = (one) => `${look(one.status).word}${one.seconds === null || one.seconds === undefined ? "" : `, ${duration(one.seconds)}`}\n${exact(one.at)}`;

function summary(items) {
  const counts = {};
  for (const one of items) counts[one.status] = (counts[one.status] ?? 0) + 1;
  return `the last ${items.length}: ${Object.entries(counts).map(([state, n]) => `${n} ${look(state).word}`).join(", ")}`;
}
