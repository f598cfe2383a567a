// Jobs: all of them, found by name, tag, queue and state, with how their last executions went.

import { html, useEffect, useState } from "../core/html.js";
import { can, has } from "../core/api.js";
import { useData, useList } from "../core/data.js";
import { jobPath, link, route, setQuery } from "../core/route.js";
import { duration, percent } from "../core/format.js";
import { State } from "../core/states.js";
import { Chips, Empty, Page, SearchBox, Time } from "../parts/basics.js";
import { TextChip } from "../parts/filters.js";
import { Strip } from "../parts/strip.js";
import { Table } from "../parts/table.js";
import { Chosen } from "./jobs-chosen.js";

const STATES = [["active", "active"], ["paused", "paused"], ["deleted", "deleted"]];
const CREATE = "horae jobs create hello --command 'echo hello' --schedule '* * * * *'";

export default function Jobs() {
  const { search, state, tag, queue } = route.value.query;
  const jobs = useList("/jobs", { search, state, tag, queue, statistics: has("statistics") || undefined }, { live: ["job", "execution"], wait: 3000 });
  const queues = useData("/queues");
  const [chosen, setChosen] = useState(new Map()); // by id, so that rows of other pages and filters stay chosen
  useEffect(() => { setChosen(new Map()); }, [state]);
  const rows = jobs.items;
  const filtered = Boolean(search || state || tag || queue);
  const choose = can("operator") && state !== "deleted" && {
    chosen: new Set(chosen.keys()),
    of: (job) => job.jobId,
    onChange: (ids) => setChosen(new Map([...ids].map((id) => [id, rows.find((job) => job.jobId === id) ?? chosen.get(id)]))),
  };
  return html`<${Page} title="Jobs" actions=${can("editor") && html`<a class="button primary" href=${link("/jobs/new")}>New job</a>`}>
    <div class="chips"><${SearchBox} placeholder="Search jobs" label="Search jobs" />
      <${Chips} filters=${[
        { name: "state", label: "state", options: STATES, all: "any" },
        { name: "queue", label: "queue", options: (queues.data?.items ?? []).map((one) => [one.name]), all: "any" },
      ]} /><${TextChip} name="tag" label="tag" suggest=${async (text) => tagsOf(rows).filter((one) => one.includes(text))} /></div>
    ${chosen.size > 0 && html`<${Chosen} jobs=${[...chosen.values()]} clear=${() => setChosen(new Map())} reload=${jobs.reload} />`}
    <${Table} what="jobs" columns=${COLUMNS.filter((one) => has(one.feature))} rows=${rows} list=${jobs} keyOf=${(job) => job.jobId} choose=${choose || undefined}
      href=${(job) => link(jobPath(job.state === "deleted" ? job.jobId : job.name))} empty=${filtered ? NOTHING : NONE} />
  <//>`;
}

const COLUMNS = [
  { title: "job", className: "job-name", cell: (job) => html`<span class="job-title" title=${job.description ? `${job.name}\n${job.description}` : job.name}>${job.name}</span>${job.workflow ? html` <span class="tag">workflow</span>` : ""}` },
  { title: "state", cell: (job) => html`<${State} of=${job.status} />` },
  { title: "schedule", className: "cut job-when middle", cell: (job) => (job.scheduleText ? html`<span title=${job.scheduleText}>${job.scheduleText}</span>` : html`<span class="soft">when asked</span>`) },
  { title: "next fire", className: "nowrap", cell: (job) => html`<${Time} at=${job.nextFireAt} ago=${true} />` },
  { title: "last outcomes", feature: "statistics", className: "job-strip", cell: (job) => (job.statistics.recent.length ? html`<${Strip} items=${job.statistics.recent} height=${20} width=${4} most=${20} />` : html`<span class="soft">–</span>`) },
  { title: "success", feature: "statistics", className: "number", cell: (job) => percent(job.statistics.successRate) },
  { title: "p50", feature: "statistics", className: "number", cell: (job) => duration(job.statistics.p50) },
  { title: "p95", feature: "statistics", className: "number", cell: (job) => duration(job.statistics.p95) },
  { title: "queue", className: "nowrap large", cell: (job) => job.queue },
  { title: "tags", className: "job-tags large", cell: (job) => html`<${Labels} tags=${job.tags} />` },
];

const tagText = ([name, value]) => (value ? `${name}=${value}` : name);

function tagsOf(rows) {
  const found = new Set();
  for (const job of rows ?? []) for (const tag of Object.entries(job.tags)) found.add(tagText(tag));
  return [...found].sort().slice(0, 100);
}

function Labels({ tags }) {
  return html`<span class="tags nowrap">${Object.entries(tags).slice(0, 3).map((tag) => html`<button key=${tag[0]} type="button" class="tag" title="only jobs with this tag" onClick=${() => setQuery({ tag: tagText(tag) })}>${tagText(tag)}</button>`)}</span>`;
}

const NOTHING = html`<${Empty} title="No job fits these filters." action=${html`<button type="button" onClick=${() => setQuery({ search: null, state: null, tag: null, queue: null })}>Show all jobs</button>`} />`;
const NONE = html`<${Empty} title="There are no jobs yet." command=${CREATE} action=${html`<${First} />`}>A job says what runs, when and how: a program, a function, a request or a workflow. This page will show how each of them does.<//>`;

function First() {
  return can("editor") ? html`<a class="button primary" href=${link("/jobs/new")}>Create the first job</a>` : null;
}
