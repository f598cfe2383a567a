// The form of a definition. It changes only the fields that it shows: whatever else the definition says stays.

import { html } from "../core/html.js";
import { shell as asLine } from "../core/api.js";
import { useData } from "../core/data.js";
import { setQuery } from "../core/route.js";
import { Panel } from "../parts/basics.js";
import { Field, TableField } from "../parts/fields.js";
import { JsonField } from "../parts/form.js";
import { kindOf, TASKS } from "./job-document.js";
import { ScheduleField } from "./job-when.js";
import { FIELDS } from "../core/job-fields.js";

const KINDS = { command: "a program", python: "a function of a worker", http: "a request", workflow: "a workflow" };

const MOST_NAMED = 8; // triggers
const ABOVE = new Set(["name", "description", "queue", "priority", "retries", "timeout", "within", "concurrency"]);
const SIMPLE = new Set(["text", "name", "key", "integer", "number", "duration", "choice", "flag"]);
const MORE = FIELDS.filter((one) => SIMPLE.has(one.kind) && !ABOVE.has(one.name) && one.name !== "template");
const known = Object.fromEntries(FIELDS.map((one) => [one.name, one]));
const bounds = (name) => ({ min: known[name].least, max: known[name].most });
/** What a field is about: "schedule.cron" belongs to "schedule", "command.argv[0]" to "command". */
const top = (field) => (field ?? "").split(/[.[]/)[0];

/** cannot(field)(why): that a field's text cannot be read, so that nothing older is saved in its place. */
export function JobForm({ value, onChange, cannot, problem }) {
  const kind = kindOf(value);
  const queues = useData("/queues");
  const set = (name, next) => {
    const changed = { ...value };
    if (next === undefined || next === "" || next === null) delete changed[name]; else changed[name] = next;
    onChange(changed);
  };
  const field = problem?.body?.field;
  const wrong = (name) => (top(field) === name ? problem.detail : null);
  const text = (name, label, more = {}) => html`<${Field} label=${label} value=${value[name]} onChange=${(next) => set(name, next)} problem=${wrong(name)} ...${more} />`;
  const count = (name, label, more = {}) => html`<${Field} label=${label} type="number" value=${value[name]} onChange=${(next) => set(name, next === "" ? undefined : Number(next))} problem=${wrong(name)} ...${more} />`;
  const choose = (next) => {
    const changed = { ...value };
    for (const one of TASKS) delete changed[one];
    cannot(kind)(null);
    onChange({ ...changed, [next]: next === "workflow" ? { steps: [] } : "" });
  };
  return html`<${Panel} title="What"><div class="fields">
      <${Field} label="name" value=${value.name} onChange=${(next) => onChange({ ...value, name: next })} problem=${wrong("name")} hint="letters, digits, dots, dashes and underscores" required=${true} autofocus=${!value.name} />
      ${text("description", "description", { hint: "what it is for" })}</div>
      <${Field} label="what runs" options=${TASKS.map((one) => [one, KINDS[one]])} value=${kind} onChange=${choose} />
      <${Task} key=${kind} kind=${kind} cannot=${cannot(kind)} value=${value[kind]} onChange=${(next) => onChange({ ...value, [kind]: next })} problem=${wrong(kind)} /><//>
    <${Panel} title="When"><${ScheduleField} value=${value.schedule} onChange=${(next) => set("schedule", next)} cannot=${cannot("schedule")} problem=${wrong("schedule")} />
      ${value.triggers?.length > 0 && html`<p class="soft">It has further triggers: ${value.triggers.slice(0, MOST_NAMED).map((one) => one.name ?? "one").join(", ")}${value.triggers.length > MOST_NAMED ? ` and ${value.triggers.length - MOST_NAMED} more` : ""}. <button type="button" class="link" onClick=${() => setQuery({ as: "yaml" }, { replace: true })}>Edit them as YAML</button></p>`}<//>
    <${Panel} title="How"><div class="fields">
      <${Field} label="queue" value=${value.queue} onChange=${(next) => set("queue", next)} problem=${wrong("queue")} hint="default if empty" list="known-queues" />
      <datalist id="known-queues">${(queues.data?.items ?? []).map((one) => html`<option key=${one.name} value=${one.name}></option>`)}</datalist>
      ${count("priority", "priority", { ...bounds("priority"), hint: "0 to 9, 4 if empty" })}
      ${count("retries", "retries", { ...bounds("retries"), hint: "further tries after a failure" })}
      <${Field} label="delay between tries" value=${delayOf(value.retry)} onChange=${(next) => set("retry", next ? { delay: next } : undefined)} problem=${wrong("retry")} hint="10s; it grows from 1s to 5m if empty" disabled=${delayOf(value.retry) === null} />
      ${text("timeout", "timeout", { hint: "how long one try may take: 30s, 1h" })}
      ${text("within", "deadline", { hint: "how long after it is due it should have ended: 2h; an alert tells of those that miss it" })}
      ${count("concurrency", "at a time", { ...bounds("concurrency"), hint: "how many of it run at once; no limit if empty" })}
      <${Field} label="tags" value=${tagsText(value.tags)} onChange=${(next) => set("tags", readTags(next))} problem=${wrong("tags")} hint="team=data, nightly" />
      </div>
      <details><summary>More fields</summary><div class="fields">${MORE.map((one) => html`<${TableField} key=${one.name} field=${one} value=${value[one.name]} onChange=${(next) => set(one.name, next)} problem=${wrong(one.name)} />`)}</div></details><//>
    <${Panel} title="Params"><${JsonField} label="params" rows=${3} value=${value.params} hint="what it is given; a submission may override each" told=${wrong("params")} onChange=${(next, bad) => { cannot("params")(bad); if (!bad) set("params", next); }} />
      <${JsonField} label="schema" value=${value.schema ?? undefined} hint="the JSON schema of params: the form for triggering is made from it" told=${wrong("schema")} rows=${5} onChange=${(next, bad) => { cannot("schema")(bad); if (!bad) set("schema", next); }} /><//>`;
}

/** The one delay of a retry rule that a field can show; null for rules that say more. */
function delayOf(retry) {
  if (retry === undefined || retry === null) return "";
  return typeof retry === "object" && !Array.isArray(retry) && Object.keys(retry).every((name) => name === "delay") ? retry.delay : null;
}

const tagsText = (tags) => (Array.isArray(tags) ? tags.join(", ") : Object.entries(tags ?? {}).map(([name, value]) => (value ? `${name}=${value}` : name)).join(", "));

function readTags(text) {
  if (!text.trim()) return undefined;
  // A comma or a blank that was just typed stays, so that one can go on typing.
  return Object.fromEntries(text.split(",").map((one) => { const [name, ...rest] = one.split("="); return [name.trimStart(), rest.join("=").trimStart()]; }));
}

function Task({ kind, value, onChange, cannot, problem }) {
  if (kind === "workflow") return html`<${JsonField} label="workflow" value=${value} rows=${14} told=${problem} hint=${'{"steps": [{"name": "load", "job": "load-orders", "after": ["extract"]}]}'} onChange=${(next, bad) => { cannot(bad); if (!bad) onChange(next ?? { steps: [] }); }} />
    <p class="small"><button type="button" class="link" onClick=${() => setQuery({ as: "yaml" }, { replace: true })}>Edit it as YAML</button></p>`;
  if (kind === "command") return html`<${Command} value=${value} onChange=${onChange} cannot=${cannot} problem=${problem} />`;
  if (value !== "" && typeof value === "object") return html`<${JsonField} label=${KINDS[kind]} value=${value} told=${problem} onChange=${(next, bad) => { cannot(bad); if (!bad) onChange(next ?? ""); }} />`;
  return kind === "python"
    ? html`<${Field} label="function" value=${value} onChange=${onChange} problem=${problem} hint="as a worker announces it: digest" />`
    : html`<${Field} label="URL" type="url" value=${value} onChange=${onChange} problem=${problem} hint="https://example.com/hook; the params are sent as its body" />`;
}

/** A program with its arguments, or a line for a shell; what says more than that is JSON. */
function Command({ value: given, onChange, cannot, problem }) {
  const value = Array.isArray(given) ? asLine(given) : given;
  const shell = typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).join() === "shell";
  if (typeof value === "object" && value !== null && !shell) return html`<${JsonField} label="command" value=${value} told=${problem} onChange=${(next, bad) => { cannot(bad); if (!bad) onChange(next ?? ""); }} />`;
  const text = shell ? value.shell : value ?? "";
  return html`<${Field} label="command" rows=${2} value=${text} onChange=${(next) => onChange(shell ? { shell: next } : next)} problem=${problem} hint=${shell ? "a line for the shell, with pipes and variables" : "a program and its arguments; no shell reads it"} />
    <p class="small"><label><input type="checkbox" checked=${shell} onChange=${(event) => onChange(event.target.checked ? { shell: text } : text)} /> with a shell</label></p>`;
}
