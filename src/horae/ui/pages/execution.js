// One execution: what it is doing and why, its tries, its log, and what it is about. Failed ones open on the error.

import { html, useEffect, useState } from "../core/html.js";
import { has } from "../core/api.js";
import { useData } from "../core/data.js";
import { useExecution } from "../core/live.js";
import { jobPath, link } from "../core/route.js";
import { plural } from "../core/format.js";
import { shown, State } from "../core/states.js";
import { Failure, Id, isGone, Missing, Page, Panel, Progress, Ready } from "../parts/basics.js";
import { Gantt } from "../parts/gantt.js";
import { isOf, Log } from "../parts/log.js";
import { Actions } from "./execution-actions.js";
import { Doing } from "./execution-doing.js";
import { Explain } from "./execution-explain.js";
import { About, Artifacts, Children, Values } from "./execution-side.js";
import { course, hasEnded } from "./execution-words.js";
import { Workflow } from "./workflow.js";

export default function Execution({ id }) {
  const own = { live: ["execution"], wait: 1000, only: (event) => isOf(event, id) };
  const [goesOn, setGoesOn] = useState(false);
  const execution = useData(`/executions/${id}`, undefined, { ...own, poll: goesOn ? 5000 : undefined }); // how far it is, and when its worker was heard of, is no event
  useExecution(isGone(execution.error) ? null : id, () => {}, { wait: 60000 });
  const job = useData(execution.data ? `/jobs/${execution.data.jobId}` : null);
  const workflow = Boolean(job.data?.workflow);
  const open = execution.data !== undefined && !hasEnded(execution.data);
  const begun = execution.data !== undefined && (execution.data.attempt > 0 || execution.data.startedAt !== null);
  // While it goes on, any execution may be an item of a step of it; its own end is heard in any case.
  const graph = useData(workflow && begun ? `/executions/${id}/graph` : null, undefined, { live: ["step", "execution"], wait: 1000, only: (event) => open || isOf(event, id) });
  const held = open && (execution.data.status !== "running" || execution.data.reason !== null);
  const explain = useData(held ? `/executions/${id}/explain` : null, undefined, { ...own, poll: 10000 });
  useEffect(() => setGoesOn(open), [open]);
  useEffect(() => { if (execution.data) document.title = `${execution.data.jobName} · Horae`; }, [execution.data?.jobName]);
  const parts = { job: job.data, graph: workflow ? graph.data : null, explanation: held ? explain.data : null, workflow, reload: () => { execution.reload(); graph.reload(); explain.reload(); } };
  if (execution.data === undefined && execution.error) return html`<${Unread} id=${id} of=${execution} />`;
  return html`<${Ready} of=${execution} what="the execution">${(one) => html`<${Shown} execution=${one} ready=${job.data !== undefined || job.error !== null} ...${parts} />`}<//>`;
}

/** An execution that is not there, or cannot be read now. */
function Unread({ id, of: { error, reload } }) {
  const gone = isGone(error);
  const list = html`<a href=${link("/executions")}>Executions</a>`;
  return html`<${Page} title=${gone ? "No such execution" : "This execution cannot be read"} crumbs=${list}>
    ${gone ? html`<${Missing} error=${error} others=${[link("/executions"), "All executions"]}><code>${id}</code><//>` : html`<${Failure} error=${error} retry=${reload} />`}<//>`;
}

function Shown({ execution, job, graph, explanation, workflow, ready, reload }) {
  const open = !hasEnded(execution);
  const crumbs = html`<a href=${link("/executions")}>Executions</a> / <a href=${link(jobPath(execution.jobName))}>${execution.jobName}</a>`;
  const title = html`${execution.jobName} <${State} of=${shown(execution)} />`;
  return html`<${Page} title=${title} crumbs=${crumbs} lead=${html`<${Doing} execution=${execution} job=${job} explanation=${explanation} />`} actions=${html`<${Id} id=${execution.executionId} /><${Actions} execution=${execution} job=${job} graph=${graph} explanation=${explanation} reload=${reload} />`}>
    ${execution.status === "running" && execution.progress !== null && html`<div class="execution-progress"><${Progress} value=${execution.progress} message=${execution.message} /></div>`}
    <${Trouble} execution=${execution} />
    ${explanation && isTelling(execution, explanation) && !graph && html`<${Explain} explanation=${explanation} />`}
    ${graph && html`<${Workflow} execution=${execution} job=${job} graph=${graph} reload=${reload} />`}
    ${ready && !workflow && html`<div class="execution"><div class="execution-main"><${Tries} execution=${execution} />${has("logs") && html`<${Log} execution=${execution.executionId} live=${open} end=${execution.status === "failed"} tries=${execution.attempt} />`}</div>
      <aside class="execution-side" aria-label="About it"><${About} execution=${execution} job=${job} /><${Values} execution=${execution} job=${job} /><${Artifacts} execution=${execution} /><${Children} execution=${execution} /></aside></div>`}
    ${workflow && !graph && html`<div class="columns"><${About} execution=${execution} job=${job} /><${Values} execution=${execution} job=${job} /></div>`}
  <//>`;
}

// A pause before the next try is told by the line above; whatever else holds it is told here.
const isTelling = (execution, { blockers }) => execution.reason !== "retry" || blockers.length > 1;

/** Why it failed, with where; or what its last try failed with while it is tried again. */
function Trouble({ execution }) {
  const { error } = execution;
  if (!error || execution.status === "success") return null;
  return html`<section class=${execution.status === "failed" ? "failure" : "notice"} aria-label="Error"><p><strong>${error.type}</strong> <span class="tag">${error.kind}</span></p><p class="pre">${error.message}</p>${error.traceback ? html`<pre tabindex="0" class="traceback">${error.traceback}</pre>` : null}</section>`;
}

function Tries({ execution }) {
  const open = !hasEnded(execution);
  const tries = useData(`/executions/${execution.executionId}/attempts`, undefined, { live: ["execution"], wait: 1000, only: (event) => isOf(event, execution.executionId) });
  if (!tries.data) return null;
  const rows = course(execution, tries.data.items);
  if (!rows.length) return null;
  return html`<${Panel} title=${tries.data.items.length ? plural(tries.data.items.length, "try", "tries") : execution.startedAt ? "Waiting" : "Not tried yet"} className="tries"><${Gantt} rows=${rows} label="Its tries" live=${open} />
    ${rows.length > 1 && html`<ul class="legend small soft" aria-hidden="true"><li><i class="key bg-quiet"></i>queued or waiting</li><li><i class="key bg-running"></i>ran, in the colour of its end</li><li><i class="key bg-retrying"></i>pause before a retry</li></ul>`}<//>`;
}
