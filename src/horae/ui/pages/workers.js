// Workers: who is there, how much each can take and does, and asking one to finish and leave.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { link, route } from "../core/route.js";
import { number } from "../core/format.js";
import { State } from "../core/states.js";
import { ActionButton } from "../core/act.js";
import { Chips, Empty, Page, Ready, SearchBox, Tags, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";

export const workerPath = (name) => `/workers/${encodeURIComponent(name)}`;

export const drain = (worker, after) => ({
  title: "Drain", path: `/workers/${encodeURIComponent(worker.sessionId)}/drain`, cli: ["workers", "drain", worker.workerId], after,
  confirm: { title: `Drain ${worker.workerId}?`, body: worker.running ? `It takes nothing new, finishes the ${worker.running} that it runs, and leaves.` : "It takes nothing new and leaves.", action: "Drain it" },
  done: `${worker.workerId} finishes what it runs and leaves.`,
});

/** How full a worker is: a bar and its numbers. */
export function Load({ worker }) {
  return html`<span class="progress"><meter min="0" max=${worker.capacity || 1} value=${worker.running} aria-label="slots in use"></meter><span class="small">${number(worker.running)} of ${number(worker.capacity)}</span></span>`;
}

export default function Workers() {
  const workers = useData("/workers", undefined, { live: ["worker", "execution"], wait: 2000, poll: 10000 });
  const { search = "", status } = route.value.query;
  const fits = (one) => (!status || one.status === status) && [one.workerId, one.host, ...one.queues, ...Object.entries(one.labels).map(([name, value]) => `${name}=${value}`)].join(" ").toLowerCase().includes(search.toLowerCase());
  const columns = [
    { title: "worker", cell: (one) => one.workerId },
    { title: "state", cell: (one) => html`<${State} of=${one.status} />` },
    { title: "slots", cell: (one) => html`<${Load} worker=${one} />` },
    { title: "queues", cell: (one) => one.queues.join(", ") },
    { title: "labels", className: "wide", cell: (one) => html`<${Tags} tags=${one.labels} />` },
    { title: "version", cell: (one) => one.version },
    { title: "heard of", cell: (one) => html`<${Time} at=${one.lastHeartbeat} ago />` },
    { title: "", key: "actions", cell: (one) => (one.status === "live" || one.status === "late" ? html`<${ActionButton} action=${drain(one, workers.reload)} />` : null) },
  ];
  const empty = html`<${Empty} title="No workers." command="horae worker --server ${location.origin}">A worker runs what is queued. Start one where the work should happen; it registers by itself.<//>`;
  return html`<${Page} title="Workers" lead="The processes that run what is queued."><div class="chips"><${SearchBox} label="Search workers" /><${Chips} filters=${[{ name: "status", label: "state", options: [["live"], ["late"], ["draining"], ["lost"]] }]} /></div>
    <${Ready} of=${workers} what="workers">${(data) => html`<${Table} what="workers" columns=${columns} rows=${data.items.filter(fits)} keyOf=${(one) => one.sessionId} href=${(one) => link(workerPath(one.sessionId))} empty=${search || status ? html`<p class="soft">No worker is like that.</p>` : empty} />`}<//>
  <//>`;
}
