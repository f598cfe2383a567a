// Queues: what stands in line, for how long, what decides who is next, and what holds them.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { link, route } from "../core/route.js";
import { number, duration } from "../core/format.js";
import { State } from "../core/states.js";
import { Page, Ready, SearchBox, Empty } from "../parts/basics.js";
import { Table } from "../parts/table.js";

export default function Queues() {
  const queues = useData("/queues", undefined, { live: ["execution", "hold"], wait: 2000 });
  const search = (route.value.query.search ?? "").toLowerCase();
  const columns = [
    { title: "queue", cell: (one) => one.name },
    { title: "state", cell: (one) => (one.holds?.length || one.held ? html`<${State} of="held" />` : html`<${State} of="active" />`) },
    { title: "policy", cell: (one) => one.policy ?? "" },
    { title: "queued", className: "number", cell: (one) => number(one.queued) },
    { title: "running", className: "number", cell: (one) => number(one.running) },
    { title: "oldest", className: "number", cell: (one) => duration(one.oldestSeconds) },
  ];
  return html`<${Page} title="Queues"><div class="chips"><${SearchBox} /></div>
    <${Ready} of=${queues} what="queues">${(data) => html`<${Table} what="queues" columns=${columns} rows=${data.items.filter((one) => one.name.toLowerCase().includes(search))} keyOf=${(one) => one.name} href=${(one) => link(`/queues/${encodeURIComponent(one.name)}`)} empty=${html`<${Empty} title="No queue of that name." />`} />`}<//>
  <//>`;
}
