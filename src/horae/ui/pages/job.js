// One job: what it does and when, how it went lately, and behind tabs everything else about it.

import { html, useEffect, useRef } from "../core/html.js";
import { can, get, has } from "../core/api.js";
import { useData } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { inZone } from "../core/format.js";
import { State } from "../core/states.js";
import { Empty, Page, Ready, Said, Tabs, Tags, Time } from "../parts/basics.js";
import { Strip } from "../parts/strip.js";
import { CircuitState } from "./job-circuit.js";
import { JobActions, resuming } from "./job-actions.js";
import { Executions } from "./job-executions.js";
import { Schedule } from "./job-schedule.js";
import { Definition } from "./job-definition.js";
import { Statistics } from "./job-statistics.js";
import { Dependencies } from "./job-dependencies.js";
import { Explanation } from "./job-explain.js";

const LAST = 100;

export default function JobPage({ id }) {
  const known = useRef(null); // by its id it is found also when it was deleted or renamed meanwhile
  const job = useData(jobPath(id), undefined, { live: ["job", "execution", "circuit", "hold"], wait: 2000, read: async (path, params, options) => {
    const found = await get(known.current ? jobPath(known.current) : path, params, options);
    known.current = found.jobId;
    return found;
  } });
  const last = useData(job.data && has("statistics") ? `${jobPath(job.data.jobId)}/grid` : null, { limit: LAST }, { live: ["execution"], wait: 3000 });
  if (job.data) return html`<${Ready} of=${job}>${(data) => html`<${Shown} job=${data} last=${last} reload=${() => { job.reload(); last.reload(); }} />`}<//>`;
  return html`<${Page} title=${id} crumbs=${html`<a href=${link("/jobs")}>Jobs</a>`}>${job.error?.status === 404 ? html`<${Missing} name=${id} error=${job.error} />` : html`<${Ready} of=${job} what="the job" />`}<//>`;
}

function Missing({ name, error }) {
  return html`<${Empty} title=${error.detail} action=${html`<a class="button" href=${link("/jobs", { search: name.slice(0, 12) })}>Look for one like it</a><a class="button" href=${link("/jobs", { state: "deleted" })}>Among deleted ones</a>`} />`;
}

function Shown({ job, last, reload }) {
  const deleted = job.state === "deleted";
  const tabs = [
    { id: "executions", title: "Executions", show: () => html`<${Executions} job=${job} steps=${last.data?.steps} />` },
    { id: "schedule", title: "Schedule", show: () => html`<${Schedule} job=${job} reload=${reload} />` },
    { id: "definition", title: "Definition", show: () => html`<${Definition} job=${job} reload=${reload} />` },
    has("statistics") && { id: "statistics", title: "Statistics", show: () => html`<${Statistics} job=${job} />` },
    { id: "dependencies", title: "Dependencies", show: () => html`<${Dependencies} job=${job} />` },
    !deleted && { id: "explain", title: "Why it waits", show: () => html`<${Explanation} job=${job} reload=${reload} />` },
  ].filter(Boolean);
  const crumbs = html`<a href=${link("/jobs")}>Jobs</a>${job.ownerWorkflow && html` / <a href=${link(jobPath(job.ownerWorkflow))}>${job.ownerWorkflow}</a>`}`;
  return html`<${Page} title=${job.name} lead=${job.description} crumbs=${crumbs} actions=${html`<${JobActions} job=${job} reload=${reload} />`}>
    <${Headline} job=${job} />
    <${Notices} job=${job} reload=${reload} />
    ${last.data && html`<${Last} items=${last.data.items} />`}
    <div><${Tabs} tabs=${tabs} /></div>
  <//>`;
}

/** The last executions, the newest at the right, which is what one sees first. */
function Last({ items }) {
  const place = useRef(null);
  useEffect(() => { place.current.scrollLeft = place.current.scrollWidth; }, [items.length]);
  return html`<div class="last-strip" ref=${place}><${Strip} items=${[...items].reverse()} links=${true} height=${48} width=${8} most=${LAST} /></div>`;
}

/** What it is doing, when it fires, where and for whom: one line that is read first. */
function Headline({ job }) {
  const zone = zoneOf(job);
  const asked = !job.scheduleText;
  return html`<ul class="headline">
    <li><${State} of=${job.status} />${job.status === "running" && html` <a href=${link(executionPath(job.executionId))}>${job.startedAt ? html`since <${Time} at=${job.startedAt} />` : "look at it"}</a>`}</li>
    <li>${asked ? html`<span class="soft">runs when it is asked to</span>` : job.scheduleText}</li>
    ${job.nextFireAt && html`<li>next <${Time} at=${job.nextFireAt} zone=${zone} ago=${true} /> <span class="soft"><${Time} at=${job.nextFireAt} zone=${zone} />${zone && ` here, ${inZone(job.nextFireAt, zone)} ${zone}`}</span></li>`}
    <li><span class="soft">queue</span> <a href=${link(`/queues/${encodeURIComponent(job.queue)}`)}>${job.queue}</a></li>
    <li><span class="soft">version</span> <a href=${link(jobPath(job.name), { tab: "definition" })}>${job.version}</a></li>
    ${job.circuit && html`<li><${CircuitState} job=${job} /></li>`}
    ${Object.keys(job.tags).length > 0 && html`<li><${Tags} tags=${job.tags} /></li>`}
  </ul>`;
}

/** The zone that a job's schedule goes by, when it is not the viewer's own. */
export function zoneOf(job) {
  const zone = [job.schedule, ...(job.triggers ?? [])].map((one) => one?.timezone).find(Boolean) ?? (typeof job.schedule === "string" ? "UTC" : null);
  return zone === Intl.DateTimeFormat().resolvedOptions().timeZone ? null : zone;
}

function Notices({ job, reload }) {
  const notes = job.notes ?? [];
  if (job.state === "deleted") return html`<div class="notice"><p>This job is deleted; its history can still be read.</p>
    <p class="actions"><${ActionButton} role="editor" action=${{ title: "Restore", path: `/jobs/${job.jobId}/restore`, cli: ["jobs", "restore", job.jobId], done: `${job.name} is back.`, after: reload }} /></p></div>`;
  return html`${notes.map((note) => html`<div key=${note} class="notice"><p><${Said} text=${note} /></p>${job.autoPaused && note === notes[0] && can("operator") && html`<p class="actions">
    ${job.autoPaused.executionId && html`<a href=${link(executionPath(job.autoPaused.executionId))}>the last that failed</a> `}<${ActionButton} action=${resuming(job, reload)} /></p>`}</div>`)}`;
}
