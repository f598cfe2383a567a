// What can be done with jobs that were chosen from the list: all of them paused, let go on, or run.

import { html, useState } from "../core/html.js";
import { chosenNamespace, curl, post, shell } from "../core/api.js";
import { toast } from "../core/act.js";
import { link } from "../core/route.js";
import { plural } from "../core/format.js";
import { confirm } from "../parts/dialog.js";

const AT_ONCE = 4;
const MOST_NAMED = 10;
const WORDS = { pause: { title: "Pause", did: "Paused", state: "paused", undo: "resume" }, resume: { title: "Resume", did: "Resumed", state: "active", undo: "pause" }, trigger: { title: "Trigger", did: "Triggered", body: {} } };
const SAYS = {
  pause: "Nothing of them is started until they are resumed; what runs goes on.",
  resume: "What waited for this is queued; fires that were left out stay left out.",
  trigger: "Each of them runs once, now, with its own params; what needs others is refused and told.",
};

const NONE = { pause: "All of these are paused.", resume: "None of these is paused." };

/** Do the same to many jobs, a few at a time; answers those that could not. */
async function toEach(jobs, run) {
  const left = [...jobs];
  const failed = [];
  const work = async () => {
    for (let job = left.shift(); job; job = left.shift()) {
      try { await run(job); } catch (error) { failed.push({ job, error }); }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failed;
}

async function change(verb, jobs, reload, ns) {
  const words = WORDS[verb];
  const failed = await toEach(jobs, (job) => post(`/jobs/${job.jobId}/${verb}`, words.body, { ns }));
  const done = jobs.filter((job) => !failed.some((one) => one.job === job));
  const same = {
    command: jobs.map((job) => shell(["horae", "jobs", verb, job.name])).join(" && "),
    curl: jobs.map((job) => curl("POST", `/jobs/${job.jobId}/${verb}`, words.body)).join(" && "),
  };
  if (done.length) toast({ text: `${words.did} ${plural(done.length, "job")}.`, undo: words.undo && { title: "Undo", run: () => change(words.undo, done, reload, ns) }, see: verb === "trigger" ? link("/executions", { since: "15m" }) : undefined, ...same });
  if (failed.length) toast({ error: true, text: `${plural(failed.length, "job")} could not be changed: ${failed[0].job.name}: ${failed[0].error.detail}`, remedy: failed[0].error.remedy });
  reload();
}

const names = (jobs) => html`<ul>${jobs.slice(0, MOST_NAMED).map((job) => html`<li key=${job.jobId}>${job.name}</li>`)}${jobs.length > MOST_NAMED && html`<li class="soft">and ${jobs.length - MOST_NAMED} more</li>`}</ul>`;

export function Chosen({ jobs, clear, reload }) {
  const [busy, setBusy] = useState(false);
  const todo = (verb) => jobs.filter((job) => job.state !== WORDS[verb].state);
  const verbs = ["trigger", "pause", "resume"];
  const ask = async (verb) => {
    const those = todo(verb);
    const ns = chosenNamespace();
    const title = `${WORDS[verb].title} ${plural(those.length, "job")}`;
    const body = html`${names(those)}<p>${SAYS[verb]}</p>`;
    if (!(await confirm({ title: `${title}?`, body, action: title }))) return;
    setBusy(true);
    try { await change(verb, those, reload, ns); clear(); } finally { setBusy(false); }
  };
  return html`<div class="chosen-bar" role="status"><strong>${plural(jobs.length, "job")} chosen</strong>
    ${verbs.map((verb) => html`<button key=${verb} type="button" disabled=${busy || !todo(verb).length} title=${todo(verb).length ? "" : NONE[verb]} onClick=${() => ask(verb)}>${WORDS[verb].title}${todo(verb).length && todo(verb).length < jobs.length ? ` ${todo(verb).length}` : ""}</button>`)}
    <button type="button" class="link" onClick=${clear}>choose none</button></div>`;
}
