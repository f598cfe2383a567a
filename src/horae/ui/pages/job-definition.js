// What a job says: readable, as YAML and as JSON, and all that it said before.

import { html, useState } from "../core/html.js";
import { can } from "../core/api.js";
import { useData } from "../core/data.js";
import { jobPath, link, route, setQuery } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { plural } from "../core/format.js";
import { Copy, Facts, Json, Panel, Ready, Tags, Time } from "../parts/basics.js";
import { Diff } from "../parts/diff.js";
import { toYaml } from "../parts/yaml.js";
import { kindOf, written } from "./job-document.js";
import { Rollout } from "./job-rollout.js";

const FORMS = [["form", "readable"], ["yaml", "YAML"], ["json", "JSON"]];

export function Definition({ job, reload }) {
  const form = route.value.query.as ?? "form";
  const document_ = written(job);
  const text = form === "json" ? JSON.stringify(document_, null, 2) : toYaml(document_);
  const actions = html`<span class="switch" role="group" aria-label="shown as">${FORMS.map(([id, word]) => html`<button key=${id} type="button" aria-pressed=${form === id ? "true" : "false"} onClick=${() => setQuery({ as: id === "form" ? null : id })}>${word}</button>`)}</span>
    ${can("editor") && !job.ownerWorkflow && job.state !== "deleted" && html`<a class="button" href=${link(jobPath(job.name, "/edit"))}>Edit</a>`}`;
  return html`<div class="stack"><${Panel} title="Definition" actions=${actions}>${form === "form" ? html`<${Readable} job=${job} />` : html`<div class="json"><${Copy} text=${text} /><pre tabindex="0">${text}</pre></div>`}<//>
    <${Versions} job=${job} reload=${reload} /></div>`;
}

function Readable({ job }) {
  const document_ = written(job);
  const rest = Object.entries(document_).filter(([name]) => !SAID.has(name));
  return html`<div class="columns definition">
    <div><h3>What runs</h3><${Task} job=${job} />
      ${Object.keys(job.params).length > 0 && html`<h3>Params</h3><${Json} value=${job.params} />`}${job.schema && html`<h3>Their schema</h3><${Json} value=${job.schema} />`}</div>
    <div><h3>When and how</h3><${Facts} facts=${[
      ["schedule", job.scheduleText ?? "when it is triggered"],
      ["queue", html`<a href=${link(`/queues/${encodeURIComponent(job.queue)}`)}>${job.queue}</a>`],
      ["priority", String(job.priority)],
      ["retries", job.retries ? `${plural(job.retries, "further try", "further tries")}, ${waits(job.retry)}` : "none"],
      ["timeout", job.timeout ?? "none"],
      job.within && ["deadline", `${job.within} after it is due`],
      ["concurrency", job.concurrency ?? "no limit"],
      ["tags", Object.keys(job.tags).length ? html`<${Tags} tags=${job.tags} />` : null],
      ["template", job.template],
      ...rest.map(([name, value]) => [name, typeof value === "object" ? html`<code>${JSON.stringify(value)}</code>` : String(value)]),
      ["made", html`<${Time} at=${job.createdAt} />`],
      ["changed", html`<${Time} at=${job.updatedAt} />`],
    ]} /></div></div>`;
}

const SAID = new Set(["name", "description", "command", "python", "http", "workflow", "schedule", "queue", "priority", "retries", "retry", "timeout", "within", "concurrency", "tags", "params", "schema", "template"]);

const waits = (retry) => (Array.isArray(retry) ? `after ${retry.join(", ")}` : retry?.delay ? `${retry.delay} apart${retry.factor && retry.factor !== 1 ? `, ${retry.factor} times as long each, at most ${retry.max}` : ""}` : "");

function Task({ job }) {
  const kind = kindOf(job);
  const task = job[kind];
  if (kind === "command") return html`<p class="soft small">${task?.shell ? "a line for the shell" : "a program"}</p><pre tabindex="0">${typeof task === "string" ? task : task?.shell ?? (Array.isArray(task) ? task.join(" ") : JSON.stringify(task, null, 2))}</pre>`;
  if (kind === "workflow") return html`<${Steps} job=${job} steps=${task.steps ?? []} />`;
  return html`<p class="soft small">${kind === "python" ? "a function of a worker's app" : "a request"}</p>${typeof task === "string" ? html`<pre tabindex="0">${task}</pre>` : html`<${Json} value=${task} />`}`;
}

const FEW = 20; // steps that are named at once

function Steps({ job, steps }) {
  const [all, setAll] = useState(false);
  return html`<p class="soft small">a workflow of ${plural(steps.length, "step")}</p><ul class="plain">${(all ? steps : steps.slice(0, FEW)).map((step) => html`<li key=${step.name}><code>${step.name}</code> <${Step} step=${step} owner=${job.name} />${step.after?.length > 0 && html` <span class="soft">after ${step.after.map((one) => one.step ?? one).join(", ")}</span>`}</li>`)}
    ${!all && steps.length > FEW && html`<li><button type="button" class="link" onClick=${() => setAll(true)}>and ${steps.length - FEW} more</button></li>`}</ul>`;
}

/** What a step runs: a job by name, one that the workflow keeps for it, or what needs no worker. */
function Step({ step, owner }) {
  if (step.job) return html`<a href=${link(jobPath(step.job))}>${step.job}</a>`;
  const own = ["command", "python", "http"].find((one) => step[one] !== undefined);
  if (own) return html`<a href=${link(jobPath(`${owner}/${step.name}`))}>${typeof step[own] === "string" ? step[own] : step[own].shell ?? step[own].function ?? step[own].url ?? own}</a>`;
  const other = Object.keys(step).find((one) => !["name", "after", "when", "params", "description"].includes(one));
  return html`<span class="soft">${other ?? ""}</span>`;
}

function Versions({ job, reload }) {
  const versions = useData(`/jobs/${job.jobId}/versions`, undefined, { live: ["job", "rollout"], wait: 2000 });
  const shared = versions.data?.items.some((one) => one.share !== null);
  return html`${shared && html`<${Rollout} job=${job} reload=${() => { versions.reload(); reload(); }} />`}<${Panel} title="Versions"><${Ready} of=${versions} what="versions">${(data) => html`<${Compare} job=${job} versions=${data.items} after=${() => { versions.reload(); reload(); }} />`}<//><//>`;
}

const MOST = 50;

function Compare({ job, versions, after }) {
  const [all, setAll] = useState(false);
  const chosen = Number(route.value.query.version) || null;
  const old = versions.find((one) => one.version === chosen && !one.current);
  const present = versions.find((one) => one.current) ?? versions[0];
  const back = (one) => ({
    title: `Roll back to ${one.version}`, path: `/jobs/${job.jobId}/rollback`, body: { version: one.version }, headers: { "if-match": `"${job.version}"` }, cli: ["jobs", "rollback", job.name, "--to", one.version],
    confirm: { title: `Roll ${job.name} back to version ${one.version}?`, body: "A new version is made that reads as that one; what runs goes on as it began." },
    done: (made) => `${job.name} reads as version ${one.version} did: it is version ${made.version}.`, after: () => { setQuery({ version: null }); after(); },
    undo: { title: "Undo", path: `/jobs/${job.jobId}/rollback`, body: { version: job.version }, cli: ["jobs", "rollback", job.name, "--to", job.version], done: `${job.name} reads as version ${job.version} did.`, after },
  });
  const shown = all ? versions : versions.slice(0, MOST);
  return html`<div class="versions"><ul class="plain">${shown.map((one) => html`<li key=${one.version} class=${one === old ? "at" : ""}><button type="button" class="link" aria-pressed=${one === old ? "true" : "false"} disabled=${one.current} title=${one.current ? "Others are compared with this one." : ""} onClick=${() => setQuery({ version: one === old ? null : one.version })}>version ${one.version}</button> ${one.current ? html`<span class="tag">present</span>` : ""} ${one.share !== null && html`<span class="tag">${one.share}%</span>`} <span class="soft"><${Time} at=${one.createdAt} /></span></li>`)}
    ${versions.length > shown.length && html`<li><button type="button" class="link" onClick=${() => setAll(true)}>and ${versions.length - shown.length} more</button></li>`}</ul>
    <div>${old
      ? html`<div class="entry-head"><span>From version ${old.version} to the present ${present.version}:</span>${!job.ownerWorkflow && html`<span class="push"><${ActionButton} role="editor" action=${back(old)} /></span>`}</div>
        <${Diff} before=${toYaml(written(old.definition))} after=${toYaml(written(present.definition))} />`
      : html`<p class="soft">${versions.length > 1 ? "Choose a version to see what changed since, and to go back to it." : "Every change of it makes a version; this is the first."}</p>`}</div></div>`;
}
