// Making a job or changing one: a form for what most jobs say, the whole definition as YAML or JSON for the rest. The server
// checks while one types, and says at which field something is wrong.

import { html, useEffect, useRef, useState } from "../core/html.js";
import { send } from "../core/api.js";
import { useData } from "../core/data.js";
import { go, jobPath, link, route, setQuery } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { plural } from "../core/format.js";
import { confirm } from "../parts/dialog.js";
import { Failure, Page, Panel, Ready, Said } from "../parts/basics.js";
import { isBlank, kindOf, written } from "./job-document.js";
import { JobForm } from "./job-form.js";
import { Preview } from "./job-when.js";
import { Whole } from "./job-whole.js";

const WAIT = 400;
const MOST_TIMED = 3; // triggers whose fires are shown
const FORMS = [["form", "form"], ["yaml", "YAML"], ["json", "JSON"]];
const EXAMPLE = { name: "", command: "" };

export default function JobEdit({ name }) {
  const like = route.value.query.like;
  const from = name ?? like;
  const job = useData(from ? jobPath(from) : null, undefined);
  if (!from) return html`<${Editor} began=${EXAMPLE} />`;
  if (job.error && job.data === undefined) return html`<${Page} title=${from} crumbs=${html`<a href=${link("/jobs")}>Jobs</a>`}><${Ready} of=${job} others=${[link("/jobs"), "All jobs"]} /><//>`;
  return html`<${Ready} of=${job} what="the job">${(data) => (name ? html`<${Editor} job=${data} began=${written(data)} />` : html`<${Editor} began=${{ ...written(data), name: "" }} />`)}<//>`;
}

/** `job` is what is changed; without one, a new job is made from `began`. */
function Editor({ job, began }) {
  const start = useRef({ job, began }); // what was read when one began to type
  const [document_, setDocument] = useState(began);
  const [unreads, setUnreads] = useState({}); // why a text cannot be read, by its field
  const [refused, setRefused] = useState(null);
  const { job: first } = start.current;
  const check = useCheck(document_, first);
  const dirty = JSON.stringify(document_) !== JSON.stringify(start.current.began);
  const saved = useRef(false);
  useEffect(() => { // what is typed goes into the form, also where the form comes later than its page
    const content = document.getElementById("content");
    if ([document.body, content].includes(document.activeElement)) content.querySelector("form :is(input, textarea)")?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    const ask = (event) => { if (dirty && !saved.current) event.preventDefault(); };
    const leave = async (event) => {
      const anchor = event.target.closest?.("a[href]");
      if (!anchor || anchor.target || !dirty || saved.current || event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      if (await confirm({ title: "Lose what you typed?", body: "It is not saved.", action: "Lose it", danger: true })) { saved.current = true; go(anchor.href.slice(location.origin.length)); }
    };
    addEventListener("beforeunload", ask);
    document.addEventListener("click", leave, true);
    return () => { removeEventListener("beforeunload", ask); document.removeEventListener("click", leave, true); };
  }, [dirty]);
  const change = (next) => { setDocument(next); setRefused(null); };
  const problem = refused ?? check.problem;
  const title = first ? `Edit ${first.name}` : "New job";
  const as = FORMS.some(([id]) => id === route.value.query.as) ? route.value.query.as : "form";
  useEffect(() => setUnreads({}), [as]); // what could not be read stood in another form
  const unread = Object.values(unreads).find(Boolean) ?? null;
  const cannot = (field) => (wrong) => setUnreads((old) => ({ ...old, [field]: wrong }));
  const target = first ? { method: "PUT", path: `/jobs/${first.jobId}`, headers: { "if-match": `"${first.version}"` } } : { method: "POST", path: "/jobs" };
  const save = () => ({
    ...target, title: first ? "Save" : "Create", body: document_, cli: first ? ["jobs", "edit", first.name, "-f", "definition.json"] : ["jobs", "create", "-f", "definition.json"],
    done: (made) => (first ? (made.version === first.version ? `${made.name} is as it was.` : `${made.name} is now version ${made.version}.`) : `${made.name} was created.`),
    undo: first && dirty ? { title: "Undo", path: `/jobs/${first.jobId}/rollback`, body: { version: first.version }, cli: ["jobs", "rollback", first.name, "--to", first.version], done: `${first.name} reads as version ${first.version} did.`, after: () => {} } : undefined,
    failed: setRefused,
    after: (made) => { saved.current = true; go(jobPath(made.name), {}); },
  });
  const crumbs = html`<a href=${link("/jobs")}>Jobs</a>${first && html` / <a href=${link(jobPath(first.name))}>${first.name}</a>`}`;
  return html`<${Page} title=${title} crumbs=${crumbs} actions=${html`<span class="switch" role="group" aria-label="edited as">${FORMS.map(([id, word]) => html`<button key=${id} type="button" aria-pressed=${id === as ? "true" : "false"} disabled=${id !== as && unread !== null} title=${id !== as && unread !== null ? "first what cannot be read" : ""} onClick=${() => setQuery({ as: id === "form" ? null : id }, { replace: true })}>${word}</button>`)}</span>`}>
    ${first?.template && html`<p class="notice">This job is made from the template ${first.template}: what stands here goes over it.</p>`}
    <div class="edit"><form class="stack" onSubmit=${(event) => event.preventDefault()} noValidate>
      ${as === "form" ? html`<${JobForm} value=${document_} onChange=${change} cannot=${cannot} problem=${problem} />` : html`<${Whole} key=${as} as=${as} value=${document_} problem=${problem} onChange=${(next, wrong) => { cannot("text")(wrong); if (next) change(next); }} />`}
    </form>
    <aside class="edit-side stack"><${Panel} title=${first ? "What would change" : "What it would be"}>
      <div role="status" aria-live="polite"><${Verdict} problem=${unread ? { detail: unread } : problem} plan=${check.plan} missing=${check.missing} isNew=${!first} empty=${!dirty} conflict=${refused?.status === 412 ? { first, reload: () => location.reload() } : null} /></div>
      <div class="actions edit-actions"><${ActionButton} kind="primary" role="editor" label=${first ? "Save" : "Create"} action=${save} disabled=${!dirty || unread !== null || Boolean(check.missing)} why=${unread ?? check.missing ?? "Nothing has changed."} /><a class="button" href=${first ? link(jobPath(first.name)) : link("/jobs")}>Leave it</a></div>
    <//>${as !== "form" && html`<${Timed} document=${document_} />`}</aside></div>
  <//>`;
}

/** When it would fire, beside a text that says it. */
function Timed({ document: { schedule, triggers } }) {
  const timed = [schedule, ...(Array.isArray(triggers) ? triggers : [])].map((one) => (typeof one === "string" ? { cron: one } : one)).filter((one) => one && (one.cron || one.every || one.at));
  if (!timed.length) return null;
  return html`<${Panel} title="When">${timed.slice(0, MOST_TIMED).map(({ name, ...one }, at) => html`<div key=${at}>${name && html`<p class="soft small">${name}</p>`}<${Preview} schedule=${one} /></div>`)}
    ${timed.length > MOST_TIMED && html`<p class="soft small">and ${timed.length - MOST_TIMED} more</p>`}<//>`;
}

/** What nobody has to ask the server for. */
function missingOf(document_) {
  if (!document_.name) return "It has no name yet.";
  const kind = kindOf(document_);
  return document_.template || !isBlank(document_[kind]) ? null : "It does not say yet what runs.";
}

/** Ask the server, when typing rests, what it would make of it. */
function useCheck(document_, job) {
  const [state, setState] = useState({ plan: null, problem: null });
  const key = JSON.stringify(document_);
  useEffect(() => {
    const missing = missingOf(document_);
    if (missing) { setState({ plan: null, problem: null, missing }); return undefined; }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const options = { params: { dryRun: true }, body: document_, signal: abort.signal };
        setState({ plan: await send(job ? "PUT" : "POST", job ? `/jobs/${job.jobId}` : "/jobs", options), problem: null });
      } catch (problem) { if (problem.name !== "AbortError") setState({ plan: null, problem }); }
    }, WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [key]);
  return state;
}

function Verdict({ problem, plan, missing, isNew, empty, conflict }) {
  if (conflict) return html`<div class="failure" role="alert"><p><strong>Somebody changed this job meanwhile.</strong></p><p>What you typed is still here. <a href=${link(jobPath(conflict.first.name), { tab: "definition", version: conflict.first.version })} target="_blank" rel="noopener">See what they changed</a>, then begin anew from that.</p><button type="button" onClick=${conflict.reload}>Read it anew, and lose what was typed</button></div>`;
  if (isNew && empty) return html`<p class="soft">Give it a name and say what runs. It is checked while you type; nothing is made before you create it.</p>`;
  if (problem) return html`<${Failure} error=${problem} />`;
  if (missing) return html`<p class="soft">${missing}</p>`;
  if (!plan) return html`<p class="soft">Looking …</p>`;
  if (!isNew && !plan.changes.length) return html`<p class="soft">Nothing: it would stay at version ${plan.version}.</p>`;
  return html`<p><strong>${isNew ? "It can be made." : `${plural(plan.changes.length, "field")} would change; it would be version ${plan.version}.`}</strong></p>
    <p>${plan.scheduleText ? `It fires ${plan.scheduleText}.` : "It runs when it is triggered."}</p>
    ${plan.changes.length > 0 && html`<ul class="plain changes">${plan.changes.map((one) => html`<li key=${one.path}><code>${one.path}</code> ${"before" in one && html`<del>${short(one.before)}</del> `}${"after" in one && html`<ins>${short(one.after)}</ins>`}</li>`)}</ul>`}
    ${plan.notes.map((note) => html`<p key=${note} class="notice"><${Said} text=${note} /></p>`)}`;
}

const short = (value) => { const text = typeof value === "string" ? value : JSON.stringify(value); return text.length > 120 ? `${text.slice(0, 117)} …` : text; };
