// Why it does not run: the gates it meets, in order, what opens each, and when it probably starts.

import { html } from "../core/html.js";
import { Panel, Said, Time } from "../parts/basics.js";
import { ExecutionLink } from "./execution-side.js";
import { INSTANT } from "./execution-words.js";

/** Words with commands, executions and instants in them. */
export const Told = ({ text, holders = [] }) => html`<${Said} text=${text} plain=${(part) => linked(part, holders)} />`;

// Executions that hold it closed are a click away.
const linked = (text, holders) => holders.reduce((parts, id) => parts.flatMap((part) => (typeof part === "string" ? part.split(id).flatMap((one, at) => (at ? [html`<${ExecutionLink} id=${id} />`, one] : [one])) : [part])), [text]).map((part) => (typeof part === "string" ? timed(part) : part));

// Instants in the viewer's zone, with UTC on hover.
const timed = (text) => {
  const instants = text.match(INSTANT) ?? [];
  return text.split(INSTANT).map((part, at) => html`${part}${instants[at] && html`<${Time} at=${instants[at]} />`}`);
};

export function Explain({ explanation }) {
  const { blockers, estimate, summary } = explanation;
  return html`<${Panel} title="Why it does not run" className="explain">
    ${blockers.length === 0 ? html`<p><${Told} text=${summary} /></p>` : html`<ol class="gates">${blockers.map((one, at) => html`<li key=${one.gate + at} class=${at === 0 ? "first" : ""}>
      <p><strong><${Told} text=${one.message} holders=${one.details?.holders} /></strong> <span class="tag">${one.gate}</span></p>
      <p class="remedy"><span class="soft">What opens it: </span><${Told} text=${one.opensWhen} />${one.until && html` <span class="soft">(<${Time} at=${one.until} ago=${true} />)</span>`}</p></li>`)}</ol>`}
    ${estimate && html`<p class="soft">${estimate.startsAt ? html`It probably starts <${Time} at=${estimate.startsAt} ago=${true} />. <${Told} text=${estimate.reason} />` : estimate.gate ? "Its start cannot be estimated." : html`Its start cannot be estimated. <${Told} text=${estimate.reason} />`}${estimate.executionsAhead ? ` ${estimate.executionsAhead} stand before it.` : ""}</p>`}
  <//>`;
}
