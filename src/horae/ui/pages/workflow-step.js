// One step of a workflow, beside its graph: how it stands, its error, its log or its items, and what can be done by hand.

import { html, useState } from "../core/html.js";
import { can, has } from "../core/api.js";
import { useData, useList } from "../core/data.js";
import { useExecution } from "../core/live.js";
import { executionPath, jobPath, link, route, setQuery } from "../core/route.js";
import { duration, number, plural, seconds, shortId } from "../core/format.js";
import { Glyph, shown, State } from "../core/states.js";
import { Chips, Facts, Panel, Progress, Time } from "../parts/basics.js";
import { Menu } from "../parts/dialog.js";
import { FormDialog } from "../parts/form-dialog.js";
import { JsonField } from "../parts/form.js";
import { grouped } from "../parts/graph-groups.js";
import { stepState } from "../parts/graph.js";
import { isOf, Log } from "../parts/log.js";
import { RerunButton } from "./execution-actions.js";
import { Doing } from "./execution-doing.js";
import { Values } from "./execution-side.js";
import { SignalButton } from "./execution-signal.js";
import { hasEnded } from "./execution-words.js";
import { Answer } from "./workflow-answer.js";
import { why } from "./workflow-words.js";

const FINAL = new Set(["success", "failed", "skipped", "cancelled"]);
const WHAT = { job: "runs a job", foreach: "runs a job for each item", loop: "runs a job again and again", switch: "chooses a branch", sleep: "waits for a time", event: "waits for an event", signal: "waits for a signal", approval: "asks somebody", callback: "waits for its URL to be called" };

export function StepPanel({ execution, graph, node, group, opened, close, reload }) {
  if (group) return html`<${Group} graph=${graph} group=${group} opened=${opened} close=${close} />`;
  const open = !FINAL.has(node.status) && !hasEnded(execution);
  const Close = html`<button type="button" class="link" aria-label="close the step" onClick=${close}>×</button>`;
  const asks = node.kind === "approval" && node.status === "waiting";
  const answered = node.kind === "approval" && Boolean(node.endedAt);
  const reason = asks ? "" : answered ? node.error?.message || why(node) : node.error ? "" : why(node);
  const again = hasEnded(execution) && node.phase === "main" && node.startedAt;
  return html`<${Panel} title=${html`<${State} of=${stepState(node)} quiet=${true} /> ${node.step}`} actions=${html`${open && html`<${ByHand} id=${execution.executionId} step=${node.step} reload=${reload} />`}${again && html`<${RerunButton} execution=${execution} graph=${graph} from=${node.step} />`}${Close}`} className="step">
    <${Facts} facts=${[
      ["state", html`<${State} of=${stepState(node)} />`],
      ["it", WHAT[node.kind]],
      node.run && ["run", String(node.run)],
      node.job && ["job", html`<a href=${link(jobPath(node.job))}>${node.job}</a> v${node.version}`],
      node.executionId && node.kind !== "foreach" && ["execution", html`<a href=${link(executionPath(node.executionId))}><code>${shortId(node.executionId)}</code></a>`],
      node.startedAt && ["began", html`<${Time} at=${node.startedAt} />`],
      node.seconds !== null && [node.endedAt ? "took" : "for", duration(node.endedAt ? node.seconds : Math.round(node.seconds))],
      node.wakeAt && !node.endedAt && ["until", html`<${Time} at=${node.wakeAt} />`],
      node.critical && ["critical", "the workflow waited for it"],
      reason && [answered ? "answer" : "why", answered ? html`${reason} <span class="soft"><${Time} at=${node.endedAt} ago=${true} /></span>` : reason],
    ]} />
    ${node.error && !answered && node.error.message !== execution.error?.message && html`<section class="failure" aria-label="Error of ${node.step}"><p><strong>${node.error.type}</strong></p><p class="pre">${node.error.message}</p>${node.error.traceback ? html`<pre tabindex="0" class="traceback">${node.error.traceback}</pre>` : null}</section>`}
    ${asks && html`<${Answer} id=${execution.executionId} node=${node} reload=${reload} />`}
    ${node.kind === "signal" && node.status === "waiting" && html`<p><${SignalButton} id=${execution.executionId} names=${[node.waitsFor?.name].filter(Boolean)} kind="primary" label="Send it …" reload=${reload} /></p>`}
    ${node.kind === "foreach" ? node.items && html`<${Items} execution=${execution} node=${node} />` : node.executionId && html`<${StepRun} key=${node.executionId} id=${node.executionId} />`}
  <//>`;
}

/** The execution that ran for a step last: what it is doing, its log, and what it was given; or the way to its own steps. */
function StepRun({ id }) {
  const run = useData(`/executions/${id}`, undefined, { live: ["execution"], wait: 1000, only: (event) => !event.id || isOf(event, id) });
  const job = useData(run.data ? `/jobs/${run.data.jobId}` : null);
  if (!run.data || (!job.data && !job.error)) return null;
  if (job.data?.workflow) return html`<p>It is a workflow of its own: <a class="button" href=${link(executionPath(id))}>Open its steps</a></p>`;
  return html`<p class="step-doing"><${Doing} execution=${run.data} job=${job.data} /></p>
    ${run.data.status === "running" && run.data.progress !== null && html`<p><${Progress} value=${run.data.progress} message=${run.data.message} /></p>`}
    <${StepLog} id=${id} live=${!hasEnded(run.data)} end=${run.data.status === "failed"} tries=${run.data.attempt} />
    <details class="steps"><summary>Params and result</summary><${Values} execution=${run.data} job=${job.data} /></details>`;
}

function StepLog({ id, live, end, tries }) {
  useExecution(live ? id : null, () => {}, { wait: 60000 });
  return has("logs") && html`<${Log} key=${id} execution=${id} live=${live} end=${end} tries=${tries} />`;
}

/** The items of a foreach: how many are done, and each with its log. */
function Items({ execution, node }) {
  const { total, success, failed, left } = node.items;
  const { itemStatus, item } = route.value.query;
  const first = failed > 0 ? "failed" : "all"; // what is looked for
  const status = itemStatus ?? first;
  const list = useList("/executions", { parent: execution.executionId, job: node.job, status: status === "all" ? undefined : status, limit: 50 }, { live: ["execution"], wait: 2000, only: () => left > 0 });
  const rows = list.items ?? [];
  return html`<div class="items"><p>${number(success)} of ${plural(total, "item")} succeeded${failed ? `, ${number(failed)} did not` : ""}${left ? `, ${number(left)} left` : ""}.</p>
    <${Chips} filters=${[{ name: "itemStatus", label: "items", all: first, options: ["all", "failed", "running", "queued", "waiting", "success", "cancelled"].filter((one) => one !== first).map((one) => [one]) }]} />
    <ul class="plain item-list">${rows.map((one) => html`<li key=${one.executionId}><button type="button" class="item ${one.executionId === item ? "chosen" : ""}" aria-pressed=${one.executionId === item ? "true" : "false"} onClick=${() => setQuery({ item: one.executionId === item ? null : one.executionId })}><${Glyph} of=${shown(one)} /><code>${shortId(one.executionId)}</code><span class="unseen">${shown(one)}</span><span class="soft small cut">${one.errorMessage ?? one.message ?? ""}</span><span class="soft small">${one.completedAt && one.startedAt ? duration(seconds(one.startedAt, one.completedAt)) : ""}</span></button></li>`)}</ul>
    ${list.items && !rows.length && html`<p class="soft">None of them.</p>`}
    ${list.more && html`<button type="button" onClick=${list.more}>Show more</button>`}
    ${item && html`<p><a href=${link(executionPath(item))}>Open ${shortId(item)}</a></p><${StepLog} id=${item} live=${!rows.find((one) => one.executionId === item)?.completedAt} end=${false} />`}</div>`;
}

function Group({ graph, group, opened, close }) {
  const found = grouped(graph, opened).nodes.find((one) => one.step === group);
  if (!found) return null;
  const expand = () => setQuery({ open: [...opened, group.slice("group:".length)].join(","), step: "-" });
  return html`<${Panel} title=${`${found.label} × ${found.items.total}`} className="step" actions=${html`<button type="button" onClick=${expand}>Show one by one</button><button type="button" class="link" aria-label="close the group" onClick=${close}>×</button>`}>
    <p class="soft">Steps that stand alike: they come after the same, and the same comes after them.</p>
    <ul class="plain item-list">${found.members.map((one) => html`<li key=${one.step}><a class="item" href=${link(route.value.path, { ...route.value.query, step: one.step })}><${Glyph} of=${stepState(one)} /><span class="cut">${one.step}</span><span class="unseen">${one.status}</span><span></span><span class="soft small">${one.seconds === null ? "" : duration(one.seconds)}</span></a></li>`)}</ul><//>`;
}

/** A step is left out, or taken as done. */
function ByHand({ id, step, reload }) {
  const [asking, setAsking] = useState(null);
  if (!can("operator")) return null;
  return html`<${Menu} label="By hand ▾" title="leave it out, or take it as done" items=${[{ title: "Leave it out …", run: () => setAsking("skip") }, { title: "Take it as done …", run: () => setAsking("complete") }]} />
    ${asking && html`<${Decide} id=${id} step=${step} verb=${asking} onClose=${() => setAsking(null)} reload=${reload} />`}`;
}

function Decide({ id, step, verb, onClose, reload }) {
  const [reason, setReason] = useState("");
  const [result, setResult] = useState(undefined);
  const [wrong, setWrong] = useState(null);
  const isSkip = verb === "skip";
  const action = {
    title: isSkip ? "Leave it out" : "Take it as done", path: `/executions/${id}/steps/${encodeURIComponent(step)}/${verb}`, body: { reason, ...(isSkip || result === undefined ? {} : { result }) },
    cli: ["executions", verb, id, step, ...(isSkip || result === undefined ? [] : ["--result", JSON.stringify(result)]), ...(reason ? ["--reason", reason] : [])],
    done: isSkip ? `${step} is left out.` : `${step} is taken as done.`, after: () => { onClose(); reload(); },
  };
  return html`<${FormDialog} title=${isSkip ? `Leave ${step} out` : `Take ${step} as done`} action=${action} submit=${action.title} onClose=${onClose} disabled=${wrong !== null}><p>What it runs is cancelled; the workflow goes on ${isSkip ? "without it" : "with this result"}.</p>
    ${!isSkip && html`<${JsonField} label="Result" rows=${3} hint="what later steps get; null unless given" onChange=${(next, problem) => { setResult(next); setWrong(problem); }} />`}
    <label>Why (kept with the step)<input maxlength="2000" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label><//>`;
}
