// Executions: what runs, waits and has ended, newest first; chosen ones are cancelled or tried again.

import { html, useMemo, useState } from "../core/html.js";
import { can } from "../core/api.js";
import { useData, useList, useNow } from "../core/data.js";
import { executionPath, link, route, setQuery } from "../core/route.js";
import { duration, seconds, shortId } from "../core/format.js";
import { shown, State } from "../core/states.js";
import { Chips, Empty, Page, Progress, Time } from "../parts/basics.js";
import { instantOf, jobNames, SpanChip, TextChip } from "../parts/filters.js";
import { useSteady } from "../parts/steady.js";
import { Table } from "../parts/table.js";
import { Chosen } from "./executions-chosen.js";

const STATUSES = ["running", "queued", "waiting", "pending", "success", "failed", "cancelled", "skipped"].map((one) => [one, one === "pending" ? "waiting or queued" : one]);
const FILTERS = ["status", "job", "queue", "tag", "worker", "since", "until", "parent"];

export default function Executions() {
  const { status, job, queue, tag, worker, since, until, parent } = route.value.query;
  const from = useMemo(() => instantOf(since), [since]);
  const params = { status, job, queue, tag, worker, since: from, until: instantOf(until), parent };
  const [chosen, setChosen] = useState(new Set());
  const read = useList("/executions", params, { live: ["execution"], wait: 2000 });
  const list = useSteady(read, JSON.stringify(params), { keyOf: idOf, held: chosen.size > 0, what: "new execution" });
  const queues = useData("/queues");
  const workers = useData("/workers");
  const rows = list.items;
  const filtered = FILTERS.some((name) => route.value.query[name]);
  const choose = can("operator") ? { chosen, of: idOf, onChange: setChosen } : undefined;
  const clear = () => setChosen(new Set());
  return html`<${Page} title="Executions" lead=${parent && html`Those below <a href=${link(executionPath(parent))}><code>${shortId(parent)}</code></a>. <button type="button" class="link" onClick=${() => setQuery({ parent: null })}>show all</button>`}>
    <div class="chips">
      <${Chips} filters=${[{ name: "status", label: "state", options: STATUSES, all: "any" }]} />
      <${TextChip} name="job" label="job" suggest=${jobNames} />
      <${Chips} filters=${[
        { name: "queue", label: "queue", options: (queues.data?.items ?? []).map((one) => [one.name]), all: "any" },
        { name: "worker", label: "worker", options: (workers.data?.items ?? []).map((one) => [one.workerId]), all: "any" },
      ]} />
      <${TextChip} name="tag" label="tag" placeholder="name or name=value" />
      <${SpanChip} />
    </div>
    ${chosen.size > 0 && rows && html`<${Chosen} executions=${rows.filter((one) => chosen.has(one.executionId))} clear=${clear} reload=${list.reload} />`}
    <${Table} what="executions" columns=${COLUMNS} rows=${rows} list=${list} keyOf=${idOf} choose=${choose} href=${(one) => link(executionPath(one.executionId))} empty=${filtered ? NOTHING : NONE} />
  <//>`;
}

const idOf = (one) => one.executionId;

const COLUMNS = [
  { title: "job", className: "execution-job", cell: (one) => one.jobName },
  { title: "state", cell: (one) => html`<${State} of=${shown(one)} />` },
  { title: "what", className: "execution-what", cell: (one) => html`<${What} one=${one} />` },
  { title: "due", className: "nowrap", cell: (one) => html`<${Time} at=${one.scheduledAt} ago=${true} />` },
  { title: "took", className: "number", cell: (one) => html`<${Took} one=${one} />` },
  { title: "tries", className: "number", cell: (one) => one.attempt || "" },
  { title: "queue", className: "nowrap large-only", cell: (one) => one.queue },
  { title: "worker", className: "cut large-only", cell: (one) => one.workerId ?? "" },
  { title: "id", className: "nowrap large-only", cell: (one) => html`<code title=${one.executionId}>${shortId(one.executionId)}</code>` },
];

// What needs words: how far it is, why it does not run, why it failed.
function What({ one }) {
  if (one.status === "running") return one.progress === null ? html`<span class="soft">${one.message ?? ""}</span>` : html`<${Progress} value=${one.progress} message=${one.message} />`;
  const said = one.status === "failed" ? one.errorMessage : one.hint?.replaceAll("`", "") ?? (one.status === "waiting" && one.errorMessage ? `after ${one.errorMessage}` : null);
  return said ? html`<span class="soft" title=${said}>${said}</span>` : null;
}

function Took({ one }) {
  if (!one.startedAt) return "";
  return one.completedAt ? duration(seconds(one.startedAt, one.completedAt)) : one.status === "running" ? html`<${Running} since=${one.startedAt} />` : "";
}

const Running = ({ since }) => duration(Math.max(0, Math.round((useNow(1000) - new Date(since)) / 1000)));

const NOTHING = html`<${Empty} title="No execution fits these filters." action=${html`<button type="button" onClick=${() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])))}>Show all executions</button>`} />`;
const NONE = html`<${Empty} title="Nothing has run yet." command="horae jobs trigger JOB --follow" action=${html`<a class="button primary" href=${link("/jobs")}>To the jobs</a>`}>An execution is one run of a job, with its tries, its log and its result. This page will show the newest first, live.<//>`;
