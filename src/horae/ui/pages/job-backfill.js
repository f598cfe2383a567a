// Backfills: fires of the past that are to run. First it is said what that would be, then it goes on by itself.

import { html, useEffect, useState } from "../core/html.js";
import { now } from "../core/clock.js";
import { can, has, post } from "../core/api.js";
import { useData } from "../core/data.js";
import { setQuery, link } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { number, plural, shortId } from "../core/format.js";
import { Failure, Panel, Progress, Said, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Field, Tick } from "../parts/fields.js";
import { State } from "../core/states.js";

const DAY = 86_400_000;
const local = (at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
const RANGES = [["the last day", 1], ["the last week", 7], ["the last 30 days", 30]];
const FIELDS = ["from", "to", "maxConcurrent"]; // beside which a refusal is told
const WAIT = 400;

export function BackfillDialog({ job, close }) {
  const [asked, setAsked] = useState({ from: local(now() - 7 * DAY), to: local(now()), order: "oldest", maxConcurrent: "16", force: false, trigger: "" });
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const set = (name) => (value) => setAsked((old) => ({ ...old, [name]: value }));
  const body = {
    job: job.jobId, from: instant(asked.from), to: instant(asked.to), order: asked.order, force: asked.force, trigger: asked.trigger || undefined,
    maxConcurrent: Number(asked.maxConcurrent) || 1,
  };
  const key = JSON.stringify(body);
  useEffect(() => {
    if (!body.from || !body.to) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try { setPlan(await post("/backfills", { ...body, dryRun: true }, { signal: abort.signal })); setError(null); } catch (problem) { if (problem.name !== "AbortError") { setError(problem); setPlan(null); } }
    }, WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [key]);
  const field = error?.body?.field;
  const wrong = (name) => field === name && error.detail;
  const cli = ["backfills", "create", job.name, "--from", body.from, "--to", body.to, "--max-concurrent", body.maxConcurrent, ...(asked.force ? ["--force"] : []), ...(asked.order === "newest" ? ["--newest-first"] : []), ...(asked.trigger ? ["--trigger", asked.trigger] : [])];
  const triggers = [job.schedule && "schedule", ...(job.triggers ?? []).map((one) => one.name)].filter(Boolean);
  const action = () => ({ title: "Start the backfill", path: "/backfills", body, cli, done: (made) => `The backfill of ${plural(made.fires, "fire")} has begun.`, failed: setError, after: () => setQuery({ do: null, tab: "schedule" }) });
  return html`<${Dialog} title="Backfill ${job.name}" onClose=${close}>
    <p class="soft">Runs what did not run of its fires in the past. What ran is left alone unless you insist.</p>
    <div class="chips">${RANGES.map(([word, days]) => html`<button key=${word} type="button" class="small-button" onClick=${() => setAsked({ ...asked, from: local(now() - days * DAY), to: local(now()) })}>${word}</button>`)}</div>
    <div class="fields">
      <${Field} label="from" type="datetime-local" value=${asked.from} onChange=${set("from")} problem=${wrong("from")} />
      <${Field} label="to (not included)" type="datetime-local" value=${asked.to} onChange=${set("to")} problem=${wrong("to")} />
      <${Field} label="at a time" type="number" min="1" max="1000" value=${asked.maxConcurrent} onChange=${set("maxConcurrent")} problem=${wrong("maxConcurrent")} />
      <${Field} label="order" options=${[["oldest", "oldest first"], ["newest", "newest first"]]} value=${asked.order} onChange=${set("order")} />
      ${triggers.length > 1 && html`<${Field} label="trigger" options=${[["", "all of them"], ...triggers.map((one) => [one])]} value=${asked.trigger} onChange=${set("trigger")} />`}
      <${Tick} label="run again what ran before" value=${asked.force} onChange=${set("force")} />
    </div>
    <div class="plan" role="status" aria-live="polite">${plan && html`<${Plan} plan=${plan} />`}${error && (FIELDS.includes(field) ? html`<p class="soft"><${Said} text=${error.remedy} /></p>` : html`<${Failure} error=${error} />`)}${!plan && !error && html`<p class="soft">Looking what that would be …</p>`}</div>
    <div class="actions end"><button type="button" onClick=${close}>Leave it</button><${ActionButton} kind="primary" label=${plan ? `Run ${plural(plan.toRun, "fire")}` : "Start"} action=${action} disabled=${!plan?.toRun} why=${plan ? "There is nothing to run." : "What it would be is not known yet."} /></div>
  <//>`;
}

const instant = (text) => { const at = new Date(text); return Number.isNaN(at.getTime()) ? null : at.toISOString(); };

function Plan({ plan }) {
  return html`<p><strong>${plural(plan.toRun, "fire")} would run</strong>${plan.firstFireAt && html`, of ${number(plan.fires)} from <${Time} at=${plan.firstFireAt} /> to <${Time} at=${plan.lastFireAt} />`}.</p>
    ${plan.notes.map((note) => html`<p key=${note} class="soft"><${Said} text=${note} /></p>`)}`;
}

/** A job's backfills and how far they are; nothing where there was none. */
export function Backfills({ job }) {
  const [alive, setAlive] = useState(false);
  const list = useData(has("backfills") ? "/backfills" : null, { job: job.jobId, limit: 5 }, { poll: alive ? 1500 : undefined, live: ["execution"], wait: 5000 });
  const items = list.data?.items ?? [];
  const running = items.some((one) => one.state === "running");
  useEffect(() => { setAlive(running); }, [running]);
  if (!items.length) return null;
  return html`<${Panel} title="Backfills">${items.map((one) => html`<${Backfill} key=${one.backfillId} backfill=${one} reload=${list.reload} />`)}<//>`;
}

const LOOK = { running: "running", paused: "paused", cancelled: "cancelled", done: "success" };

function Backfill({ backfill: one, reload }) {
  const action = (verb, title, done, body) => ({ title, path: `/backfills/${one.backfillId}/${verb}`, body, cli: ["backfills", verb, one.backfillId], done, after: reload });
  const live = one.state === "running" || one.state === "paused";
  return html`<div class="entry backfill"><p class="entry-head"><${State} of=${LOOK[one.state]}>${one.state}<//> <${Time} at=${one.from} /> – <${Time} at=${one.to} />
    <${Progress} value=${one.progress} message=${`${number(one.succeeded)} succeeded, ${number(one.failed)} failed, ${number(one.live)} live of ${number(one.fires)}`} />
    <span class="soft small" title=${one.backfillId}>${shortId(one.backfillId)}${one.createdBy && ` by ${one.createdBy}`}</span></p>
    ${one.notes.map((note) => html`<p key=${note} class="soft small"><${Said} text=${note} /></p>`)}
    ${live && can("operator") && html`<div class="actions">${one.state === "running" ? html`<${ActionButton} action=${action("pause", "Pause", "The backfill is paused.")} />` : html`<${ActionButton} action=${action("resume", "Go on", "The backfill goes on.")} />`}
      <${ActionButton} action=${{ ...action("cancel", "Cancel", "The backfill is cancelled.", {}), confirm: { title: "Cancel this backfill?", danger: true, body: "Nothing more of it starts, for good. What was started finishes." } }} /></div>`}
    ${one.failed > 0 && html`<p><a href=${link("/executions", { job: one.jobName, status: "failed" })}>what failed</a></p>`}</div>`;
}
