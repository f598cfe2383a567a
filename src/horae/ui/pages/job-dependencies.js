// What a job waits for and what waits for it.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { shortId } from "../core/format.js";
import { State } from "../core/states.js";
import { Empty, Panel, Ready, Said, Time } from "../parts/basics.js";

const PART = { met: "success", unmet: "failed", pending: "waiting" };
const JOIN = { open: "waiting", started: "running", skipped: "skipped", ended: "success" };

export function Dependencies({ job }) {
  const found = useData(`/jobs/${job.jobId}/dependencies`, undefined, { live: ["execution", "job"], wait: 5000 });
  return html`<${Ready} of=${found} what="dependencies">${(data) => html`<${Shown} job=${job} data=${data} />`}<//>`;
}

const to = (name) => html`<a href=${link(jobPath(name))}>${name}</a>`;

function Shown({ job, data }) {
  const alone = !data.dependencies.length && !data.dependents.length;
  if (alone) return html`<${Empty} title="It stands alone." command=${`horae jobs edit ${job.name} --depends-on extract`}>A job may depend on others: then it starts when they have ended.<//>`;
  return html`<div class="stack">${data.notes.map((note) => html`<p key=${note} class="notice"><${Said} text=${note} /></p>`)}<div class="columns">
    <${Panel} title="Depends on">${data.dependencies.length ? html`<ul class="plain">${data.dependencies.map((one) => html`<li key=${one.jobId}>${to(one.job)} <span class="soft">${one.condition}${one.unusedExecutions ? `, met ${one.unusedExecutions} times since` : ""}</span> ${one.state !== "active" && html`<${State} of=${one.state} />`}</li>`)}</ul>` : html`<p class="soft">Nothing.</p>`}<//>
    <${Panel} title="Depend on it">${data.dependents.length ? html`<ul class="plain">${data.dependents.map((name) => html`<li key=${name}>${to(name)}</li>`)}</ul>` : html`<p class="soft">Nothing.</p>`}<//></div>
    ${data.joins.length > 0 && html`<${Panel} title="What it waited for, newest first">${data.joins.map((join, at) => html`<div class="entry" key=${at}><p class="entry-head"><${State} of=${JOIN[join.state] ?? "idle"}>${join.state}<//>
      ${join.interval && html`<span><${Time} at=${join.interval.start} /> – <${Time} at=${join.interval.end} /></span>`}${join.executionId && html`<a href=${link(executionPath(join.executionId))}><code>${shortId(join.executionId)}</code></a>`}${join.deadline && html`<span class="soft">until <${Time} at=${join.deadline} /></span>`}</p>
      <ul class="plain">${join.upstream.map((part) => html`<li key=${part.job}><${State} of=${PART[part.state]}>${part.state}<//> ${to(part.job)} <span class="soft">${part.condition}${part.outcome ? `, it ended as ${part.outcome}` : ""}</span>${part.executionId && html` <a href=${link(executionPath(part.executionId))}><code>${shortId(part.executionId)}</code></a>`}</li>`)}</ul></div>`)}<//>`}</div>`;
}
