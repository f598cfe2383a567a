// Queues: what stands in line, for how long, what decides who is next, and what holds them.

import { html, useState } from "../core/html.js";
import { can, has, needs } from "../core/api.js";
import { useData } from "../core/data.js";
import { go, link, route } from "../core/route.js";
import { number, duration } from "../core/format.js";
import { State } from "../core/states.js";
import { Page, Ready, SearchBox, Empty } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { EditQueue } from "./queue-edit.js";

export const queuePath = (name) => `/queues/${encodeURIComponent(name)}`;
export const standing = (queue) => (queue.state !== "active" ? queue.state : queue.holds?.length ? "held" : "active");

/** A policy in a few words. */
export function policyWords(policy) {
  if (!policy) return "";
  const by = policy.by ?? policy.key;
  return `${policy.kind}${by ? ` by ${by}` : ""}${policy.within ? `, then ${policy.within.kind ?? policy.within}` : ""}`;
}

/** What bounds a queue, in words. */
export function boundWords({ concurrency, rate, burst, maxQueued, sequence }) {
  return [
    concurrency && `${number(concurrency)} at once`, rate && `${rate}${burst ? `, ${burst} at once after a pause` : ""}`,
    maxQueued && `at most ${number(maxQueued)} queued`, sequence && "one after another",
  ].filter(Boolean).join("; ");
}

export default function Queues() {
  const [making, setMaking] = useState(false);
  const queues = useData("/queues", undefined, { live: ["execution", "hold"], wait: 2000 });
  const overview = useData(has("statistics") ? "/overview" : null, undefined, { poll: 10000 });
  const ages = Object.fromEntries((overview.data?.queues ?? []).map((one) => [one.queue, one.oldestSeconds]));
  const search = (route.value.query.search ?? "").toLowerCase();
  const columns = [
    { title: "queue", cell: (one) => html`${one.name}${one.default && html` <span class="tag">default</span>`}` },
    { title: "state", cell: (one) => html`<${State} of=${standing(one)} />` },
    { title: "queued", className: "number", cell: (one) => number(one.queued) },
    { title: "running", className: "number", cell: (one) => number(one.running) },
    { title: "oldest", className: "number", cell: (one) => (one.queued ? duration(ages[one.name]) : "–") },
    { title: "who is next", cell: (one) => policyWords(one.policy) },
    { title: "limits", className: "wide", cell: (one) => boundWords(one) || html`<span class="soft">none</span>` },
  ];
  return html`<${Page} title="Queues" lead="Where executions stand in line until a worker takes them." actions=${html`<button type="button" class="primary" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setMaking(true)}>New queue …</button>`}><div class="chips"><${SearchBox} label="Search queues" /></div>
    <${Ready} of=${queues} what="queues">${(data) => html`<${Table} what="queues" columns=${columns} rows=${data.items.filter((one) => one.name.toLowerCase().includes(search))} keyOf=${(one) => one.name} href=${(one) => link(queuePath(one.name))} empty=${html`<${Empty} title=${search ? "No queue of that name." : "No queues yet."} command="horae queues set reports --concurrency 4">A queue comes to be with the first job that names it, or by this command.<//>`} />`}<//>
    ${making && html`<${EditQueue} taken=${(queues.data?.items ?? []).map((one) => one.name)} onClose=${() => setMaking(false)} onDone=${(name) => go(link(queuePath(name)))} />`}
  <//>`;
}
