// One worker: what it is, what it can run, and what it runs now.

import { html } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { executionPath, link } from "../core/route.js";
import { seconds, duration } from "../core/format.js";
import { State } from "../core/states.js";
import { ActionButton } from "../core/act.js";
import { Facts, Id, Page, Panel, Progress, Ready, Tags, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { drain, Load } from "./workers.js";

export default function Worker({ id }) {
  const worker = useData(`/workers/${encodeURIComponent(id)}`, undefined, { live: ["worker"], wait: 2000, poll: 10000 });
  const one = worker.data;
  const may = one && (one.status === "live" || one.status === "late");
  return html`<${Page} title=${one?.workerId ?? "Worker"} crumbs=${html`<a href=${link("/workers")}>Workers</a>`} actions=${may && html`<${ActionButton} action=${drain(one, worker.reload)} />`}>
    <${Ready} of=${worker} what="the worker">${(data) => html`<div class="columns"><${Panel} title="How it stands"><${Facts} facts=${[
      ["state", html`<${State} of=${data.status} />`], ["slots", html`<${Load} worker=${data} />`], ["since", html`<${Time} at=${data.startedAt} />`],
      ["heard of", html`<${Time} at=${data.lastHeartbeat} ago />`], ["host", `${data.host}, process ${data.pid}`], ["version", data.version], ["session", html`<${Id} id=${data.sessionId} />`],
    ]} /><//><${Panel} title="What it can run"><${Facts} facts=${[
      ["queues", data.queues.join(", ")], ["labels", html`<${Tags} tags=${data.labels} />`],
      ["resources", Object.entries(data.resources).map(([name, value]) => `${name} ${value}`).join(", ")], ["functions", data.jobs.join(", ")],
    ]} /><//></div><${Runs} worker=${data.workerId} />`}<//>
  <//>`;
}

function Runs({ worker }) {
  const list = useList("/executions", { worker, limit: 50 }, { live: ["execution"], wait: 2000 });
  const columns = [
    { title: "job", cell: (one) => one.jobName },
    { title: "state", cell: (one) => html`<${State} of=${one.status} />` },
    { title: "started", cell: (one) => html`<${Time} at=${one.startedAt} ago />` },
    { title: "took", className: "number", cell: (one) => duration(seconds(one.startedAt, one.completedAt ?? new Date().toISOString())) },
    { title: "", key: "progress", className: "wide", cell: (one) => (one.status === "running" ? html`<${Progress} value=${one.progress} message=${one.message} />` : null) },
  ];
  return html`<${Panel} title="What it runs and ran"><${Table} what="executions" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.executionId} href=${(one) => link(executionPath(one.executionId))} empty=${html`<p class="soft">Nothing yet.</p>`} /><//>`;
}
