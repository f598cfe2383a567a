// What can be done with a job: run it, pause it, run what was missed, change it, delete it.

import { html, useState } from "../core/html.js";
import { can, has, needs } from "../core/api.js";
import { go, jobPath, link, route, setQuery, executionPath } from "../core/route.js";
import { act, ActionButton } from "../core/act.js";
import { Menu } from "../parts/dialog.js";
import { TriggerDialog } from "./job-trigger.js";
import { BackfillDialog } from "./job-backfill.js";

const api = (job) => `/jobs/${job.jobId}`;

export const pausing = (job, after) => ({
  title: "Pause", path: `${api(job)}/pause`, cli: ["jobs", "pause", job.name], done: `${job.name} is paused: nothing of it starts.`, after,
  undo: { title: "Undo", path: `${api(job)}/resume`, cli: ["jobs", "resume", job.name], done: `${job.name} goes on.` },
});

export const resuming = (job, after) => ({
  title: "Resume", path: `${api(job)}/resume`, cli: ["jobs", "resume", job.name], done: `${job.name} goes on.`, after,
  undo: job.state === "paused" ? { title: "Undo", path: `${api(job)}/pause`, cli: ["jobs", "pause", job.name], done: `${job.name} is paused again.` } : undefined,
});

const deleting = (job) => ({
  title: "Delete", method: "DELETE", path: api(job), cli: ["jobs", "delete", job.name], done: `${job.name} is deleted.`,
  confirm: { title: `Delete ${job.name}?`, danger: true, body: html`<p>Its triggers stop at once and its name is free again. What is queued is cancelled, what runs may finish.</p><p class="soft">Its history stays readable, and it can be restored.</p>` },
  after: () => go(jobPath(job.jobId), {}, { replace: true }),
  undo: { title: "Restore", path: `${api(job)}/restore`, cli: ["jobs", "restore", job.jobId], done: `${job.name} is back.`, after: () => go(jobPath(job.name), {}, { replace: true }) },
});

/** Running it now takes no question, unless its params have a form of their own. */
export const running = (job, after) => ({
  title: "Trigger", path: `${api(job)}/trigger`, body: {}, cli: ["jobs", "trigger", job.name], after,
  done: (answer) => answer.note ?? (answer.deduplicated ? `${job.name} runs already.` : `${job.name} was triggered.`), see: (answer) => link(executionPath(answer.executionId)),
});

const hasForm = (job) => Object.keys(job.schema?.properties ?? {}).length > 0;

export function JobActions({ job, reload }) {
  const open = route.value.query.do;
  const [fresh, setFresh] = useState(0); // each opening is a new form
  const show = (what) => { setFresh((n) => n + 1); setQuery({ do: what }); };
  const close = () => setQuery({ do: null }, { replace: true });
  if (job.state === "deleted") return null;
  const timed = Boolean(job.scheduleText);
  return html`${hasForm(job)
    ? html`<button type="button" class="primary" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => show("trigger")}>Trigger …</button>`
    : html`<${ActionButton} kind="primary" action=${running(job, reload)} />`}
    ${job.state === "paused" ? html`<${ActionButton} action=${resuming(job, reload)} />` : html`<${ActionButton} action=${pausing(job, reload)} />`}
    ${can("editor") && !job.ownerWorkflow && html`<a class="button" href=${link(jobPath(job.name, "/edit"))}>Edit</a>`}
    <${Menu} label="More" items=${[
      !hasForm(job) && { title: "Trigger with params …", run: () => show("trigger"), disabled: needs("operator") },
      timed && has("backfills") && { title: "Backfill …", run: () => show("backfill"), disabled: needs("operator") },
      { title: "Make another like it", run: () => go("/jobs/new", { like: job.name }), disabled: needs("editor") },
      { title: "Why it waits", run: () => setQuery({ tab: "explain" }) },
      !job.ownerWorkflow && { title: "Delete …", danger: true, run: () => act(deleting(job)), disabled: needs("editor") },
    ]} />
    ${open === "trigger" && html`<${TriggerDialog} key=${fresh} job=${job} close=${close} reload=${reload} />`}
    ${open === "backfill" && html`<${BackfillDialog} key=${fresh} job=${job} close=${close} />`}`;
}
