// One queue: its policy and limits, who stands in it, who holds its places, and what holds it.

import { html, useState } from "../core/html.js";
import { now } from "../core/clock.js";
import { useData, useList } from "../core/data.js";
import { executionPath, link } from "../core/route.js";
import { number, seconds, duration, plural } from "../core/format.js";
import { State, shown } from "../core/states.js";
import { ActionButton } from "../core/act.js";
import { can, needs } from "../core/api.js";
import { Empty, Facts, Json, Page, Panel, Ready, Time } from "../parts/basics.js";
import { FormDialog } from "../parts/form-dialog.js";
import { Table } from "../parts/table.js";
import { EditQueue } from "./queue-edit.js";
import { boundWords, policyWords, standing } from "./queues.js";

const path = (name, more = "") => `/queues/${encodeURIComponent(name)}${more}`;

export default function Queue({ id: name }) {
  const queue = useData(path(name), undefined, { live: ["execution", "hold"], wait: 1500 });
  return html`<${Page} title=${name} crumbs=${html`<a href=${link("/queues")}>Queues</a>`} actions=${queue.data && html`<${Actions} queue=${queue.data} reload=${queue.reload} />`}>
    <${Ready} of=${queue} what="the queue" others=${[link("/queues"), "All queues"]}>${(data) => html`<div class="columns"><${About} queue=${data} /><${Holds} queue=${data} reload=${queue.reload} /></div>
      <${Running} name=${name} /><${Next} name=${name} />`}<//>
  <//>`;
}

function Actions({ queue, reload }) {
  const [asking, setAsking] = useState(null);
  const { name } = queue;
  const close = () => { setAsking(null); reload(); };
  const resume = { title: "Resume", path: path(name, "/resume"), cli: ["queues", "resume", name], done: `${name} goes on.`, after: reload };
  const pause = { title: "Pause", path: path(name, "/pause"), cli: ["queues", "pause", name], done: `Nothing of ${name} is started until it is resumed; what runs goes on.`, undo: { ...resume, title: "Resume" }, after: reload };
  const purge = {
    title: "Purge", path: path(name, "/purge"), params: { confirm: name }, cli: ["queues", "purge", name], after: reload,
    confirm: { title: `Cancel all that is queued in ${name}?`, body: `${queue.queued === 1 ? "1 execution that has not begun is" : `${plural(queue.queued, "execution")} that have not begun are`} cancelled, and what waits for this queue. This cannot be undone.`, action: "Cancel them", danger: true, type: name },
    done: (answer) => `${plural(answer.cancelled, "execution")} cancelled.`,
  };
  const drain = { title: "Drain", path: path(name, "/drain"), cli: ["queues", "drain", name], done: `${name} takes nothing new; what it has runs.`, undo: { ...resume, title: "Resume" }, after: reload };
  const still = queue.state === "paused" || queue.state === "draining"; // a hold with an end is released below
  return html`<button type="button" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setAsking("edit")}>Change …</button><${ActionButton} key=${still ? "resume" : "pause"} action=${still ? resume : pause} kind=${still ? "primary" : ""} />
    <button type="button" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setAsking("hold")}>Hold for a time …</button>${queue.state !== "draining" && html`<${ActionButton} action=${drain} />`}<${ActionButton} action=${purge} disabled=${!queue.queued} why="Nothing is queued." />
    ${asking === "hold" && html`<${Hold} name=${name} onClose=${close} />`}${asking === "edit" && html`<${EditQueue} queue=${queue} onClose=${() => setAsking(null)} onDone=${close} />`}`;
}

function Hold({ name, onClose }) {
  const [span, setSpan] = useState("30m");
  const [reason, setReason] = useState("");
  const action = {
    title: "Hold", path: path(name, "/hold"), body: { for: span, reason }, cli: ["queues", "hold", name, "--for", span, "--reason", reason || "by hand"],
    done: `Nothing of ${name} is started for ${span}.`, undo: { title: "Release", method: "DELETE", path: path(name, "/hold"), cli: ["queues", "release", name], done: `${name} goes on.` }, after: onClose,
  };
  return html`<${FormDialog} title="Hold ${name}" action=${action} submit="Hold" onClose=${onClose} disabled=${!span}><p>Nothing of it is started for this time, on any server; what runs goes on.</p>
    <div class="field"><label for="hold-for">For how long</label><input id="hold-for" value=${span} onInput=${(event) => setSpan(event.target.value)} placeholder="30m, 2h" /></div>
    <div class="field"><label for="hold-why">Why</label><input id="hold-why" value=${reason} onInput=${(event) => setReason(event.target.value)} placeholder="deploy-123" /></div><//>`;
}

function About({ queue }) {
  return html`<${Panel} title="How it stands"><${Facts} facts=${[
    ["state", html`<${State} of=${standing(queue)} />`], ["queued", number(queue.queued)], ["running", queue.concurrency ? `${number(queue.running)} of ${number(queue.concurrency)} places` : number(queue.running)],
    ["who is next", policyWords(queue.policy)], ["limits", boundWords(queue) || "none"], ["policy", html`<${Json} value=${queue.policy} />`],
  ]} /><${Lanes} lanes=${queue.lanes.filter((lane) => lane.queued)} /><//>`;
}

const MOST_LANES = 8; // that are shown; the largest

// Only those in which something stands: there is a lane for every kind of need that was ever seen.
function Lanes({ lanes }) {
  if (!lanes.length) return null;
  return html`<h3>Lanes</h3><ul class="plain">${lanes.slice(0, MOST_LANES).map((lane) => html`<li key=${lane.needs.join() + lane.share}><b>${number(lane.queued)}</b> queued for workers with <code>${lane.needs.join(", ") || "anything"}</code>${lane.share && html`, share ${lane.share}`}</li>`)}${lanes.length > MOST_LANES && html`<li class="soft">and ${plural(lanes.length - MOST_LANES, "lane")} with less</li>`}</ul>`;
}

function Holds({ queue, reload }) {
  const release = { title: "Release", method: "DELETE", path: path(queue.name, "/hold"), cli: ["queues", "release", queue.name], done: `${queue.name} goes on.`, after: reload };
  return html`<${Panel} title="What holds it" actions=${queue.holds.length > 0 && html`<${ActionButton} action=${release} />`}>${queue.holds.length
    ? html`<ul class="plain">${queue.holds.map((one, at) => html`<li key=${one.holdId ?? at}><${State} of="held">${one.indefinite ? "paused" : one.calendar ? `window ${one.calendar}` : "held"}<//> ${one.reason && html`“${one.reason}” `}${one.createdBy && html`<span class="soft">by ${one.createdBy}</span> `}${one.until && html`until <${Time} at=${one.until} />`}</li>`)}</ul>`
    : html`<p class="soft">Nothing: work starts as soon as a worker is free.</p>`}<//>`;
}

function Running({ name }) {
  const list = useList("/executions", { queue: name, status: "running", limit: 20 }, { live: ["execution"], wait: 2000 });
  const columns = [
    { title: "job", className: "execution-job", cell: (one) => one.jobName },
    { title: "worker", cell: (one) => one.workerId },
    { title: "running for", className: "number", cell: (one) => duration(seconds(one.startedAt, new Date(now()).toISOString())) },
    { title: "key", cell: (one) => one.key ?? "" },
  ];
  return html`<${Panel} title="Who holds its places"><${Table} what="what runs" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.executionId} href=${(one) => link(executionPath(one.executionId))} empty=${html`<p class="soft">Nothing of this queue runs now.</p>`} /><//>`;
}

function Next({ name }) {
  const list = useList("/executions", { queue: name, status: "pending", limit: 20 }, { live: ["execution"], wait: 2000 });
  const columns = [
    { title: "job", className: "execution-job", cell: (one) => one.jobName },
    { title: "state", cell: (one) => html`<${State} of=${shown(one)} />` },
    { title: "since", cell: (one) => html`<${Time} at=${one.queuedAt ?? one.scheduledAt} ago />` },
    { title: "priority", className: "number", cell: (one) => one.priority },
  ];
  return html`<${Panel} title="Who waits"><${Table} what="what waits" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.executionId} href=${(one) => link(executionPath(one.executionId))} empty=${html`<${Empty} title="Nothing is waiting." />`} /><//>`;
}
