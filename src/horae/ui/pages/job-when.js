// A schedule in a form: cron, an interval or one instant, said in words and with its next fires while it is typed.

import { html, useEffect, useState } from "../core/html.js";
import { now } from "../core/clock.js";
import { post } from "../core/api.js";
import { TIMES } from "../core/trigger-fields.js";
import { inZone } from "../core/format.js";
import { Said, Time } from "../parts/basics.js";
import { Field, TableField } from "../parts/fields.js";
import { JsonField } from "../parts/form.js";

const WAIT = 300;
const WORDS = { cron: "by a cron expression", every: "again and again after a time", at: "once" };
const KINDS = [["", "when it is triggered"], ...Object.entries(TIMES).map(([kind, [first]]) => [kind, WORDS[kind] ?? first.help])];
const OWN = { cron: ["cron", "timezone"], every: ["every"], at: ["at"] }; // fields with an editor of their own, by kind
const USUAL = [["every minute", "* * * * *"], ["every hour", "0 * * * *"], ["every day at 9", "0 9 * * *"], ["working days at 9", "0 9 * * MON-FRI"], ["the first of the month", "0 0 1 * *"]];
const here = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = () => { try { return Intl.supportedValuesOf("timeZone"); } catch { return []; } };
const local = (at) => { const date = new Date(at); return Number.isNaN(date.getTime()) ? "" : new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16); };

const kindOf = (schedule) => (schedule === undefined || schedule === null ? "" : typeof schedule === "string" ? "cron" : Object.keys(TIMES).find((one) => one in schedule) ?? "other");

/** The fields of a kind that have no editor of their own. */
const further = (kind) => TIMES[kind].filter((one) => !OWN[kind]?.includes(one.name));

/** The schedule without a part, or as a plain text when nothing else is left of it. */
function tidy(schedule) {
  const kept = Object.fromEntries(Object.entries(schedule).filter(([, value]) => value !== "" && value !== undefined));
  return Object.keys(kept).join() === "cron" ? kept.cron : kept;
}

export function ScheduleField({ value, onChange, cannot, problem }) {
  const kind = kindOf(value);
  const whole = typeof value === "string" ? { cron: value } : value ?? {};
  const set = (name) => (next) => onChange(tidy({ ...whole, [name]: next }));
  const choose = (next) => onChange(next === "" ? undefined : { cron: "0 9 * * *", at: { at: new Date(Math.ceil(now() / 3_600_000 + 1) * 3_600_000).toISOString() } }[next] ?? { [next]: TIMES[next][0].example });
  if (kind === "other") return html`<${JsonField} label="schedule" value=${value} told=${problem} onChange=${(next, bad) => { cannot(bad); if (!bad) onChange(next); }} />`;
  return html`<div class="fields"><${Field} label="it runs" options=${KINDS} value=${kind} onChange=${choose} />
      ${kind === "cron" && html`<${Field} label="cron" className="mono" value=${whole.cron} onChange=${(next) => onChange(next === "" && !whole.timezone ? "" : tidyCron(whole, next))} problem=${problem} hint="minute hour day month weekday; seconds may go before" spellcheck=${false} />
        <${Field} label="time zone" value=${whole.timezone} onChange=${set("timezone")} hint=${`UTC if empty; yours is ${here()}`} list="zones" /><datalist id="zones">${zones().map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>`}
      ${kind === "every" && html`<${Field} label="every" value=${whole.every} onChange=${(next) => onChange({ ...whole, every: next })} problem=${problem} hint="30s, 5m, 1h30m" />`}
      ${kind && further(kind).map((one) => html`<${TableField} key=${one.name} field=${one} value=${whole[one.name]} onChange=${one.name === kind ? (next) => onChange({ ...whole, [kind]: next }) : set(one.name)} problem=${one.name === kind ? problem : null} />`)}
      ${kind === "at" && html`<${Field} label="at, in your time" type="datetime-local" value=${local(whole.at)} onChange=${(next) => next && onChange({ ...whole, at: new Date(next).toISOString() })} problem=${problem} />`}</div>
    ${kind === "cron" && html`<div class="chips">${USUAL.map(([word, cron]) => html`<button key=${cron} type="button" class="small-button" onClick=${() => set("cron")(cron)}>${word}</button>`)}</div>`}
    ${kind && whole[kind] && html`<${Preview} schedule=${whole} />`}`;
}

const tidyCron = (whole, cron) => (Object.keys(whole).filter((name) => name !== "cron").length ? { ...whole, cron } : cron);

/** What the server reads in it: in words, and the next fires here and in the schedule's zone. */
export function Preview({ schedule }) {
  const [state, setState] = useState({});
  const key = JSON.stringify(schedule);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try { setState({ found: await post("/triggers/preview", { ...schedule, count: 5 }, { signal: abort.signal }) }); } catch (problem) { if (problem.name !== "AbortError") setState({ problem }); }
    }, WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [key]);
  const { found, problem } = state;
  const zone = found && found.timezone !== here() ? found.timezone : null;
  return html`<div class="plan schedule-preview" role="status" aria-live="polite">${problem && html`<p class="complaint"><${Said} text=${problem.detail} bare /></p><p class="soft small"><${Said} text=${problem.remedy} /></p>`}
    ${found && html`<p><strong>${found.text}</strong></p><ol class="coming">${found.details.map((one) => html`<li key=${one.at}><${Time} at=${one.at} zone=${zone} /> <span class="soft"><${Time} at=${one.at} ago=${true} />${zone && `, ${inZone(one.at, zone)} ${zone}`}</span>${one.note && html` <span class="small tone-retrying">${one.note}</span>`}</li>`)}</ol>
      ${!found.details.length && html`<p class="soft">It never fires.</p>`}${found.notes.map((note) => html`<p key=${note} class="soft small"><${Said} text=${note} /></p>`)}`}</div>`;
}
