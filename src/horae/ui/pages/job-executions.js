// A job's executions: as a list with filters, or as a grid that shows thousands of them with their steps.

import { html } from "../core/html.js";
import { useList } from "../core/data.js";
import { link, route, executionPath, setQuery } from "../core/route.js";
import { duration, seconds } from "../core/format.js";
import { shown, State } from "../core/states.js";
import { Chips, Empty, Progress, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { has, person } from "../core/who.js";
import { Grid } from "./job-grid.js";

const STATUSES = ["running", "queued", "waiting", "success", "failed", "cancelled", "skipped"].map((one) => [one]);

export function Executions({ job, steps }) {
  const counted = has("statistics"); // which the grid is a part of
  const view = counted ? route.value.query.view ?? (job.workflow ? "grid" : "list") : "list";
  return html`<div class="stack"><div class="chips">${counted && html`<span class="switch" role="group" aria-label="shown as">${["list", "grid"].map((one) => html`<button key=${one} type="button" aria-pressed=${view === one ? "true" : "false"} onClick=${() => setQuery({ view: one })}>${one}</button>`)}</span>`}
    ${view === "list" && html`<${Chips} filters=${[{ name: "status", label: "state", options: STATUSES, all: "any" }]} /><${Between} />`}</div>
    ${view === "grid" ? html`<${Grid} key=${person.value} job=${job} steps=${steps} />` : html`<${List} job=${job} />`}</div>`;
}

/** The days that the calendar was asked for. */
function Between() {
  const { since, until } = route.value.query;
  if (!since && !until) return null;
  return html`<span class="chip chosen">${since && html`<span>from <${Time} at=${since} /></span>`}${until && html`<span>to <${Time} at=${until} /></span>`}<button type="button" class="link" aria-label="any time" onClick=${() => setQuery({ since: null, until: null })}>×</button></span>`;
}

function List({ job }) {
  const { status, since, until } = route.value.query;
  const list = useList(`/jobs/${job.jobId}/executions`, { status, since, until }, { live: ["execution"], wait: 2000 });
  const filtered = status || since || until;
  const empty = filtered
    ? html`<${Empty} title="None of its executions fits." action=${html`<button type="button" onClick=${() => setQuery({ status: null, since: null, until: null })}>Show all</button>`} />`
    : html`<${Empty} title="It has not run yet." command=${`horae jobs trigger ${job.name} --follow`}>${job.scheduleText ? `It fires ${job.scheduleText}.` : "It runs when it is triggered, here or by a program."}<//>`;
  return html`<${Table} what="executions" columns=${COLUMNS} rows=${list.items} list=${list} keyOf=${(one) => one.executionId} href=${(one) => link(executionPath(one.executionId))} empty=${empty} />`;
}

const took = (one) => (one.completedAt ? seconds(one.startedAt, one.completedAt) : null);

const COLUMNS = [
  { title: "state", cell: (one) => html`<${State} of=${shown(one)} />` },
  { title: "due", className: "nowrap", cell: (one) => html`<${Time} at=${one.scheduledAt ?? one.queuedAt} />` },
  { title: "took", className: "number", cell: (one) => (one.status === "running" ? html`<${Progress} value=${one.progress} />` : duration(took(one))) },
  { title: "tries", className: "number", cell: (one) => one.attempt || "" },
  { title: "version", className: "number", cell: (one) => one.jobVersion },
  { title: "by", cell: (one) => one.origin },
  { title: "worker", className: "nowrap", cell: (one) => one.workerId ?? "" },
  { title: "what it said", className: "cut", cell: (one) => html`<span title=${one.errorMessage ?? one.message ?? one.reason ?? ""}>${one.errorMessage ?? one.message ?? one.reason ?? ""}</span>` },
];
