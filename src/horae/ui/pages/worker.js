// One worker: what it is, what it can run, and what it runs now.

import { html } from "../core/html.js";
import { useData, useList, useNow } from "../core/data.js";
import { executionPath, link } from "../core/route.js";
import { bytes, duration, number, seconds } from "../core/format.js";
import { shown, State } from "../core/states.js";
import { ActionButton } from "../core/act.js";
import { Facts, Id, Page, Panel, Progress, Ready, Tags, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { drain, Load } from "./workers.js";

export default function Worker({ id }) {
  const worker = useData(`/workers/${encodeURIComponent(id)}`, undefined, { live: ["worker"], wait: 2000, poll: 10000 });
  const one = worker.data;
  const may = one && (one.status === "live" || one.status === "late");
  return html`<${Page} title=${one?.workerId ?? "Worker"} crumbs=${html`<a href=${link("/workers")}>Workers</a>`} actions=${may && html`<${ActionButton} action=${drain(one, worker.reload)} />`}>
    <${Ready} of=${worker} what="the worker" others=${[link("/workers"), "All workers"]}>${(data) => html`<div class="columns"><${Panel} title="How it stands"><${Facts} facts=${[
      ["state", html`<${State} of=${data.status} />`], ["slots", html`<${Load} worker=${data} />`], ["since", html`<${Time} at=${data.startedAt} />`],
      ["heard of", html`<${Time} at=${data.lastHeartbeat} ago />`], ["host", `${data.host}, process ${data.pid}`], ["version", data.version], ["session", html`<${Id} id=${data.sessionId} />`],
    ]} /><//><${Panel} title="What it can run"><${Facts} facts=${[
      ["queues", data.queues.join(", ")], ["labels", html`<${Tags} tags=${data.labels} />`],
      ["resources", taken(data)], ["functions", data.jobs.join(", ")],
    ]} /><//></div><${Runs} worker=${data.workerId} />`}<//>
  <//>`;
}

// How much of a resource is taken, e.g. of memory.
const taken = (worker) => Object.entries(worker.resources).map(([name, value]) => `${name} ${amount(worker.used[name] ?? 0, value)} of ${amount(value)}`).join(", ");
const amount = (value, all = value) => (all >= 2 ** 20 ? bytes(value) : number(value));

const COLUMNS = [
  { title: "job", className: "execution-job", cell: (one) => one.jobName },
  { title: "state", cell: (one) => html`<${State} of=${shown(one)} />` },
  { title: "started", cell: (one) => html`<${Time} at=${one.startedAt} ago />` },
  { title: "took", className: "number", cell: (one) => (one.completedAt ? duration(seconds(one.startedAt, one.completedAt)) : html`<${Since} at=${one.startedAt} />`) },
  { title: "", key: "progress", className: "wide", cell: (one) => (one.status === "running" ? html`<${Progress} value=${one.progress} message=${one.message} />` : html`<span class="soft">${one.errorMessage ?? ""}</span>`) },
];
const Since = ({ at }) => duration(Math.max(0, Math.round((useNow(1000) - new Date(at)) / 1000)));

function Runs({ worker }) {
  const now = useList("/executions", { worker, status: "running", limit: 50 }, { live: ["execution"], wait: 2000, poll: 5000 });
  const all = useList("/executions", { worker, limit: 50 }, { live: ["execution"], wait: 2000 });
  const table = (title, list, rows, empty) => html`<${Panel} title=${title}><${Table} what=${title} columns=${COLUMNS} rows=${rows} list=${list} keyOf=${(one) => one.executionId} href=${(one) => link(executionPath(one.executionId))} empty=${html`<p class="soft">${empty}</p>`} /><//>`;
  return html`${table("What it runs", now, now.items, "Nothing now.")}${table("What it ran", all, all.items?.filter((one) => one.completedAt), "Nothing yet.")}`;
}
