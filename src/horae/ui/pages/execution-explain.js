// Why it does not run: the gates it meets, in order, what opens each, and when it probably starts.

import { html } from "../core/html.js";
import { Copy, Panel, Time } from "../parts/basics.js";
import { ExecutionLink } from "./execution-side.js";
import { INSTANT } from "./execution-words.js";

/** Words in which commands stand between backticks. */
export function Said({ text, holders = [] }) {
  return html`${(text ?? "").split("`").map((part, at) => (at % 2 ? html`<span key=${at} class="command"><code>${part}</code> <${Copy} text=${part} /></span>` : linked(part, holders)))}`;
}

// Executions that hold it closed are a click away.
const linked = (text, holders) => holders.reduce((parts, id) => parts.flatMap((part) => (typeof part === "string" ? part.split(id).flatMap((one, at) => (at ? [html`<${ExecutionLink} id=${id} />`, one] : [one])) : [part])), [text]).map((part) => (typeof part === "string" ? timed(part) : part));

// Instants in the viewer's zone, with UTC on hover.
const timed = (text) => {
  const instants = text.match(INSTANT) ?? [];
  return text.split(INSTANT).map((part, at) => html`${part}${instants[at] && html`<${Time} at=${instants[at]} />`}`);
};

export function Explain({ explanation }) {
  const { blockers, estimate, summary } = explanation;
  const known = estimate && blockers.some((one) => estimate.reason.includes(one.message)); // it stands above
  return html`<${Panel} title="Why it does not run" className="explain">
    ${blockers.length === 0 ? html`<p>${summary}</p>` : html`<ol class="gates">${blockers.map((one, at) => html`<li key=${one.gate + at} class=${at === 0 ? "first" : ""}>
      <p><strong><${Said} text=${one.message} holders=${one.details?.holders} /></strong> <span class="tag">${one.gate}</span></p>
      <p class="remedy"><span class="soft">What opens it: </span><${Said} text=${one.opens} />${one.until && html` <span class="soft">(<${Time} at=${one.until} ago=${true} />)</span>`}</p></li>`)}</ol>`}
    ${estimate && html`<p class="soft">${estimate.startsAt ? html`It probably starts <${Time} at=${estimate.startsAt} ago=${true} />. ${estimate.reason}` : known ? "When it starts cannot be told." : html`When it starts: <${Said} text=${estimate.reason} />`}${estimate.ahead ? ` ${estimate.ahead} stand before it.` : ""}</p>`}
  <//>`;
}
