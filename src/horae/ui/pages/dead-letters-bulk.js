// All dead letters that match a filter, retried or discarded: the number is said before, how far it is meanwhile.

import { html, useState } from "../core/html.js";
import { can, needs, post } from "../core/api.js";
import { ActionButton, copies, toast } from "../core/act.js";
import { link } from "../core/route.js";
import { number, plural } from "../core/format.js";
import { confirm } from "../parts/dialog.js";
import { FormDialog } from "../parts/form-dialog.js";
import { cut, inParts } from "../parts/many.js";

const AT_ONCE = 500; // letters that one request takes
export const GONE = "They leave this list and are not run again. Their history stays.";
const FLAGS = { job: "--job", queue: "--queue", errorType: "--error-type", reason: "--reason", text: "--text", olderThan: "--older-than", until: "--until" };
const flags = (filter) => (Object.keys(filter).length ? Object.entries(filter).flatMap(([name, value]) => [FLAGS[name], value]) : ["--all"]);

/** Retry or discard all that match. `more`: there are more than were counted. */
export function Bulk({ filter, count, more, after, small = false }) {
  const [asking, setAsking] = useState(false);
  const said = `${number(count)}${more ? " and more" : ""}`;
  const these = count === 1 && !more ? "this one" : `these ${said}`;
  const title = small ? "Discard" : `Discard ${these}`;
  const same = { path: "/dlq/discard", body: { filter }, cli: ["dlq", "discard", ...flags(filter), "--yes"] };
  return html`<button type="button" class=${small ? "" : "primary"} disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setAsking(true)}>${small ? "Retry …" : `Retry ${these} …`}</button><${ActionButton} action=${{ ...same, title, run: (ns) => discard(filter, count, said, after, same, ns) }} />
    ${asking && html`<${Retry} filter=${filter} said=${said} onClose=${() => { setAsking(false); after(); }} />`}`;
}

// From the newest on, each time where the last request ended: what fails again meanwhile is not among those that were counted.
async function* discarded(filter, ns) {
  let cursor;
  do {
    const answer = await post("/dlq/discard", { filter: { ...filter, limit: AT_ONCE, ...(cursor ? { cursor } : {}) } }, { ns });
    yield answer;
    cursor = answer.more ? answer.nextCursor : null;
  } while (cursor);
}

async function discard(filter, count, said, after, same, ns) {
  if (!(await confirm({ title: `Discard ${said}?`, body: GONE, action: `Discard ${said}`, danger: true }))) return;
  await tell(inParts({ title: `Discarding ${said}`, total: count, parts: discarded(filter, ns) }), "discarded", same);
  after();
}

/** These by name, as one request would have it: the same for scripts. */
export const named = (verb, ids) => ({ path: `/dlq/${verb}`, body: { ids }, cli: ["dlq", verb, ...ids, "--yes"] });

async function* each(verb, ids, ns) {
  for (const part of cut(ids, AT_ONCE)) yield await post(`/dlq/${verb}`, { ids: part }, { ns });
}

/** Retry those named, of a namespace; answers whether some were. */
export const retryEach = (ids, ns) => tell(inParts({ title: `Retrying ${number(ids.length)}`, total: ids.length, parts: each("retry", ids, ns) }), "run again", named("retry", ids));
export const discardEach = (ids, ns) => tell(inParts({ title: `Discarding ${number(ids.length)}`, total: ids.length, parts: each("discard", ids, ns) }), "discarded", named("discard", ids));

async function tell(going, word, same) {
  const { done, skipped, stopped, error } = await going;
  if (done || !error) toast({ text: `${plural(done, "dead letter")} ${word}${skipped ? `, ${number(skipped)} left out` : ""}${stopped ? "; the others stay" : ""}.`, ...copies(same) });
  if (error) toast({ error: true, text: error.detail ?? error.message, remedy: error.remedy });
  return done > 0 || !error;
}

function Retry({ filter, said, onClose }) {
  const [rate, setRate] = useState("10/1s");
  const [paced, setPaced] = useState(true);
  const action = {
    title: `Retry ${said}`, path: "/dlq/replays", body: { filter, ...(paced ? { rate } : {}) }, cli: ["dlq", "replay", ...flags(filter), ...(paced ? ["--rate", rate] : [])],
    done: (answer) => `${answer.total === null ? "Very many dead letters" : plural(answer.total, "dead letter")} run again${paced ? `, ${rate}` : ""}; it goes on by itself.`,
    see: () => link("/dead-letters", { tab: "replays" }), after: onClose,
  };
  return html`<${FormDialog} title=${said === "1" ? "Retry a dead letter" : `Retry ${said} dead letters`} action=${action} submit=${action.title} onClose=${onClose} disabled=${paced && !/^\d+\/\w+$/.test(rate)}><p>Each runs again as a new execution with the same params; a workflow goes on from what failed, by its present definition. The servers go on with it by themselves.</p>
    <label class="line"><input type="checkbox" checked=${paced} onChange=${(event) => setPaced(event.target.checked)} /> at a pace</label>
    ${paced && html`<div class="field"><label for="rate">So many in a span</label><input id="rate" value=${rate} onInput=${(event) => setRate(event.target.value)} placeholder="10/1s" /></div>`}<//>`;
}
