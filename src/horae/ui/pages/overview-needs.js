// What needs a person: approvals, failures by job and error, circuits that are open, workers that are late or lost, alerts that fire.

import { html } from "../core/html.js";
import { has } from "../core/api.js";
import { useData } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { number, plural } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { State } from "../core/states.js";
import { Failure, Loading, Panel, Time } from "../parts/basics.js";

const MOST = 6;

export function Needs({ since, until, words }) {
  const failures = useData(has("dead_letters") ? "/dlq/groups" : null, { since, until }, { live: ["execution"], wait: 3000 });
  const circuits = useData("/circuits", undefined, { live: ["circuit"], wait: 2000, poll: 60000 });
  const workers = useData("/workers", undefined, { live: ["worker"], wait: 3000, poll: 30000 });
  const approvals = useData("/approvals", { limit: 20 }, { live: ["step"], wait: 2000, poll: 60000 });
  const alerts = useData(has("alerts") ? "/alerts" : null, { state: "firing", limit: 10 }, { live: ["alert"], wait: 3000, poll: 60000 });
  const late = (workers.data?.items ?? []).filter((one) => one.status === "late" || one.status === "lost");
  const groups = failures.data?.items ?? [];
  const firing = alerts.data?.items ?? [];
  const open = circuits.data?.items ?? [];
  const asked = approvals.data?.items ?? [];
  const count = groups.length + open.length + late.length + firing.length + asked.length;
  const all = [has("dead_letters") && failures, circuits, workers, approvals, has("alerts") && alerts].filter(Boolean);
  const ready = all.every((one) => one.data || one.error?.status === 404);
  const trouble = all.find((one) => one.error && one.error.status !== 0 && one.error.status !== 404);
  return html`<${Panel} title="Needs you" className="needs" actions=${count > 0 && has("dead_letters") && html`<a class="small" href=${link("/dead-letters")}>all dead letters</a>`}>
    ${trouble && html`<${Failure} error=${trouble.error} retry=${trouble.reload} />`}
    ${!ready && !trouble && html`<${Loading} />`}
    ${ready && !count && html`<div class="calm"><${State} of="success">Nothing needs you.<//><p class="soft">Nothing failed for good in ${words}, nothing waits for a word, no circuit is open, and every worker answers.</p></div>`}
    <ul class="rows needs-list">
      ${firing.map((one) => html`<${Alert} key=${one.alertId} alert=${one} />`)}
      ${asked.slice(0, MOST).map((one) => html`<${Asked} key=${one.executionId + one.step} approval=${one} after=${approvals.reload} />`)}
      ${groups.slice(0, MOST).map((one) => html`<${Group} key=${one.jobId + one.errorType} group=${one} since=${since} until=${until} after=${failures.reload} />`)}
      ${open.slice(0, MOST).map((one) => html`<${Circuit} key=${one.jobId + one.key} circuit=${one} after=${circuits.reload} />`)}
      ${late.slice(0, MOST).map((one) => html`<${Late} key=${one.sessionId} worker=${one} />`)}
    </ul>
    ${groups.length > MOST && html`<p class="soft small">and <a href=${link("/dead-letters")}>${plural(groups.length - MOST, "more kind of failure", "more kinds of failures")}</a></p>`}
  <//>`;
}

function Group({ group, since, until, after }) {
  const filter = { job: group.jobName, errorType: group.errorType, since, ...(until ? { until } : {}) };
  const action = {
    title: "Retry", path: "/dlq/retry", body: { filter }, after,
    cli: ["dlq", "retry", "--job", group.jobName, "--error-type", group.errorType, "--since", since, ...(until ? ["--until", until] : []), "--yes"],
    confirm: group.count > 1 && { title: `Retry ${plural(group.count, "dead letter")} of ${group.jobName}?`, body: `Each that failed with ${group.errorType} runs again as a new execution with the same params; a workflow goes on from what failed.`, action: `Retry ${number(group.count)}` },
    done: (answer) => `${plural(answer.done, "dead letter")} of ${group.jobName} ${answer.done === 1 ? "runs" : "run"} again${answer.more ? "; there are more" : ""}.`,
  };
  return html`<li><${State} of="failed" quiet /><div class="grow"><p><a href=${link(jobPath(group.jobName))}>${group.jobName}</a> <b class="tone-failed">${number(group.count)}×</b> <span class="soft">${group.errorType}</span></p>
    <p class="soft small cut"><a href=${link(executionPath(group.newestId))} title=${group.errorMessage}>${group.errorMessage || "without a message"}</a> · <${Time} at=${group.newestAt} ago /></p></div><${ActionButton} action=${action} label="Retry" /></li>`;
}

/** A step that waits for a word: it is answered here, or looked at first. */
function Asked({ approval, after }) {
  const path = `/executions/${approval.executionId}`;
  const answer = (verb, done) => ({ title: verb, path: `${path}/${verb.toLowerCase()}`, body: { step: approval.step }, cli: ["executions", verb.toLowerCase(), approval.executionId, approval.step], done, after });
  const refuse = { ...answer("Reject", `${approval.step} of ${approval.jobName} was refused.`), confirm: { title: `Refuse ${approval.step} of ${approval.jobName}?`, body: "The step fails, and what follows it is left out.", danger: true } };
  return html`<li><${State} of="approval" quiet /><div class="grow"><p><a href=${link(path)}>${approval.jobName}</a> <span>${approval.message || `${approval.step} waits for a word`}</span></p>
    <p class="soft small">${approval.step}, since <${Time} at=${approval.since} ago />${approval.roles.length > 0 && `, asked of ${approval.roles.join(", ")}`}</p></div><span class="actions nowrap"><${ActionButton} action=${answer("Approve", `${approval.step} of ${approval.jobName} goes on.`)} label="Approve" /><${ActionButton} action=${refuse} label="Reject" /></span></li>`;
}

function Circuit({ circuit, after }) {
  const path = `/jobs/${encodeURIComponent(circuit.job)}/circuit/reset`;
  const action = {
    title: "Reset", path, body: circuit.key === null ? {} : { key: circuit.key }, cli: ["circuits", "reset", circuit.job, ...(circuit.key === null ? [] : ["--key", circuit.key])], after, done: `The circuit of ${circuit.job} is closed and counts anew.`,
    confirm: { title: `Close the circuit of ${circuit.job}?`, body: `${plural(circuit.waiting, "execution")} that wait for it may start at once.` },
  };
  return html`<li><${State} of=${circuit.state} quiet /><div class="grow"><p><a href=${link(jobPath(circuit.job))}>${circuit.job}</a> <span>its circuit is ${circuit.state}</span></p>
    <p class="soft small cut">${circuit.cause}; ${plural(circuit.waiting, "execution waits", "executions wait")}${circuit.until && html`, probes <${Time} at=${circuit.until} ago />`}</p></div><${ActionButton} action=${action} label="Reset" /></li>`;
}

const Late = ({ worker }) => html`<li><${State} of=${worker.status} quiet /><div class="grow"><p><a href=${link(`/workers/${encodeURIComponent(worker.workerId)}`)}>${worker.workerId}</a> <span>is ${worker.status}</span></p><p class="soft small">last heard of <${Time} at=${worker.lastHeartbeat} ago /></p></div></li>`;

const Alert = ({ alert }) => html`<li><${State} of="firing" quiet /><div class="grow"><p><a href=${link("/alerts")}>${alert.rule}</a> <span>${alert.subject}</span></p><p class="soft small cut" title=${alert.message}>${alert.message} · since <${Time} at=${alert.since} ago /></p></div></li>`;
