// When a job fires: a calendar of what was and what comes, its triggers one by one, and the ledger of its fires.

import { html, useState } from "../core/html.js";
import { now } from "../core/clock.js";
import { can, has, post } from "../core/api.js";
import { useData } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { inZone, plural, shortId } from "../core/format.js";
import { State } from "../core/states.js";
import { Empty, Failure, Panel, Ready, Said, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { Backfills } from "./job-backfill.js";
import { Heat } from "./job-heat.js";

const HOUR = 3_600_000;
const FEW = 6; // triggers whose next fires are shown at once

export function Schedule({ job, reload }) {
  return html`<div class="stack">
    <${Backfills} job=${job} />
    ${has("statistics") && html`<${Panel} title="Days"><${Heat} job=${job} /><//>`}
    <${Triggers} job=${job} reload=${reload} />
    <${Ledger} job=${job} />
  </div>`;
}

function Triggers({ job, reload }) {
  const triggers = useData(`/jobs/${job.jobId}/triggers`, undefined, { live: ["job", "execution"], wait: 5000 });
  const after = () => { triggers.reload(); reload(); };
  const empty = html`<${Empty} title="Nothing fires it." command=${`horae triggers add ${job.name} --cron '0 9 * * MON-FRI'`} action=${can("editor") && !job.ownerWorkflow && html`<a class="button" href=${link(jobPath(job.name, "/edit"))}>Give it a schedule</a>`}>It runs when it is triggered, here or by a program.<//>`;
  const few = (data) => data.items.length <= FEW;
  return html`<${Panel} title="Triggers"><${Ready} of=${triggers} what="triggers">${(data) => html`${!data.items.length && empty}${!few(data) && html`<${Together} job=${job} next=${job.nextFireAt} />`}${data.items.map((one) => html`<${Trigger} key=${one.name} job=${job} trigger=${one} after=${after} brief=${!few(data)} />`)}`}<//><//>`;
}

/** The next fires of many triggers, in their order. */
function Together({ job, next }) {
  const fires = useData("/fires", { job: job.jobId, disposition: "planned", limit: 10 }, { live: ["job"], wait: 5000, poll: next ? 60000 : undefined });
  if (!fires.data?.items.length) return null;
  return html`<div class="entry"><h3>The next of all of them</h3><ol class="coming">${fires.data.items.map((one) => html`<li key=${one.at + one.trigger}><${Time} at=${one.dueAt ?? one.at} /> <span class="soft"><${Time} at=${one.dueAt ?? one.at} ago=${true} />, ${one.trigger}</span></li>`)}</ol></div>`;
}

const LOOK = { active: "active", paused: "paused", ended: "gone" };

function Trigger({ job, trigger: one, after, brief }) {
  const [open, setOpen] = useState(!brief);
  const zone = one.definition.timezone;
  const path = `/jobs/${job.jobId}/triggers/${encodeURIComponent(one.name)}`;
  const pause = { title: "Pause", path: `${path}/pause`, cli: ["triggers", "pause", job.name, one.name], done: `The trigger ${one.name} is paused.`, after };
  const resume = { title: "Resume", path: `${path}/resume`, cli: ["triggers", "resume", job.name, one.name], done: `The trigger ${one.name} goes on.`, after };
  const timed = ["cron", "interval", "once"].includes(one.kind);
  return html`<div class="entry"><div class="entry-head"><${State} of=${LOOK[one.state] ?? "idle"}>${one.state}<//> <strong>${one.name}</strong> <span>${one.text}</span>
      <span class="soft">fired ${plural(one.fired, "time")}</span>${one.lastExecutionId && html`<a href=${link(executionPath(one.lastExecutionId))}>the last one</a>`}
      <span class="push">${one.state === "active" ? html`<${ActionButton} action=${{ ...pause, undo: resume }} />` : one.state === "paused" ? html`<${ActionButton} action=${{ ...resume, undo: pause }} />` : null}</span></div>
    ${one.problem && html`<p class="notice">${one.problem}</p>`}
    ${timed && one.state === "active" && !open && html`<p class="soft small">${one.nextFireAt && html`next <${Time} at=${one.nextFireAt} zone=${zone} ago=${true} /> `}<button type="button" class="link" onClick=${() => setOpen(true)}>its next fires</button></p>`}
    ${timed && one.state === "active" && open && html`<${Coming} job=${job} trigger=${one.name} zone=${zone} next=${one.nextFireAt} />`}</div>`;
}

/** The next fires, here and in the job's own zone. */
function Coming({ job, trigger, zone, next }) {
  const preview = useData("/triggers/preview", { job: job.jobId, trigger, count: 5, next }, { read: (path, { next: _, ...body }, options) => post(path, body, options) });
  if (preview.error) return html`<${Failure} error=${preview.error} />`;
  if (!preview.data) return null;
  const { details, notes, timezone } = preview.data;
  const other = timezone && timezone !== Intl.DateTimeFormat().resolvedOptions().timeZone ? timezone : zone;
  return html`<ol class="coming">${details.map((one) => html`<li key=${one.at}><${Time} at=${one.at} zone=${other} /> <span class="soft"><${Time} at=${one.at} ago=${true} />${other && `, ${inZone(one.at, other)} ${other}`}</span>${one.note && html` <span class="small tone-retrying">${one.note}</span>`}</li>`)}</ol>
    ${notes.map((note) => html`<p key=${note} class="soft small"><${Said} text=${note} /></p>`)}`;
}

const LEDGER = [
  { title: "nominal", className: "nowrap", cell: (one) => html`<${Time} at=${one.at} />${one.count > 1 && html` <span class="soft">and ${one.count - 1} more to <${Time} at=${one.until} /></span>`}` },
  { title: "trigger", cell: (one) => one.trigger },
  { title: "what became of it", cell: (one) => html`<${State} of=${one.disposition === "fired" ? "success" : one.disposition === "planned" ? "scheduled" : "skipped"}>${one.disposition}<//>` },
  { title: "because", className: "cut", cell: (one) => one.cause },
  { title: "execution", cell: (one) => one.executionId && html`<a href=${link(executionPath(one.executionId))}><code>${shortId(one.executionId)}</code></a>` },
];

function Ledger({ job }) {
  const from = new Date(Math.floor(now() / HOUR) * HOUR - 24 * HOUR).toISOString();
  const to = new Date(Math.floor(now() / HOUR) * HOUR + HOUR).toISOString();
  const fires = useData("/fires", { job: job.jobId, from, to, limit: 1000 }, { live: ["execution"], wait: 5000 });
  return html`<${Panel} title="The ledger of the last day"><${Ready} of=${fires} what="the ledger">${(data) => {
    const rows = data.items.filter((one) => one.disposition !== "planned").reverse().slice(0, 100);
    return html`<${Table} what="fires" columns=${LEDGER} rows=${rows} keyOf=${(one) => one.at + one.trigger} empty=${html`<p class="soft">Nothing was due in the last day.</p>`} />
      ${data.notes.map((note) => html`<p key=${note} class="soft small"><${Said} text=${note} /></p>`)}`;
  }}<//><//>`;
}
