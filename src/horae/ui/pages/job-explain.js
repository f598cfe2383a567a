// Why a job does not run: what holds it, in the order in which it is met, and what would let it through.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { executionPath, link } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { shortId } from "../core/format.js";
import { State } from "../core/states.js";
import { Panel, Ready, Time } from "../parts/basics.js";
import { Told } from "./execution-explain.js";
import { Circuit } from "./job-circuit.js";
import { resuming } from "./job-actions.js";

export function Explanation({ job, reload }) {
  const why = useData(`/jobs/${job.jobId}/explain`, undefined, { live: ["job", "execution", "hold", "circuit", "worker"], wait: 3000 });
  return html`<div class="stack"><${Ready} of=${why} what="why">${(data) => html`
    <${Panel} title="Why it does not run"><p class="lead"><${Told} text=${data.summary} /></p><${Blockers} of=${data.blockers} />
      ${job.state === "paused" && html`<p class="actions"><${ActionButton} action=${resuming(job, () => { why.reload(); reload(); })} /></p>`}<//>
    ${data.executions.length > 0 && html`<${Panel} title="Its executions that are to start">${data.executions.map((one) => html`<div class="entry" key=${one.executionId}>
      <p class="entry-head"><${State} of=${one.status} /> <a href=${link(executionPath(one.executionId))}><code>${shortId(one.executionId)}</code></a> <${Told} text=${one.summary} /></p><${Blockers} of=${one.blockers} />
      ${one.estimate && html`<p class="soft">${one.estimate.startsAt ? html`Probably starts <${Time} at=${one.estimate.startsAt} ago=${true} />: ` : "Its start cannot be estimated: "}<${Told} text=${one.estimate.reason} /></p>`}</div>`)}<//>`}`}<//>
    ${job.circuit && html`<${Circuit} job=${job} />`}</div>`;
}

export function Blockers({ of: blockers }) {
  if (!blockers.length) return html`<p class="soft">Nothing holds it.</p>`;
  return html`<ol class="blockers">${blockers.map((one, at) => html`<li key=${at}><p><${Told} text=${one.message} /></p><p class="soft"><${Told} text=${one.opensWhen} />${one.until && html` <${Time} at=${one.until} ago=${true} />`}</p></li>`)}</ol>`;
}
