// Running a job by hand: its params in a form made from their schema, when, how urgent, and under which key.

import { html, useState } from "../core/html.js";
import { link, executionPath } from "../core/route.js";
import { paramsWord } from "../core/api.js";
import { ActionButton } from "../core/act.js";
import { Failure } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { SchemaForm } from "../parts/form.js";
import { complaints, initial, secretNames } from "../parts/schema.js";
import { Field } from "../parts/fields.js";

const SENT = ["delay", "at", "key", "priority"];

export function TriggerDialog({ job, close, reload }) {
  const [params, setParams] = useState(() => initial(job.schema, job.params)); // with the schema's defaults: what is shown is what is sent
  const [wrong, setWrong] = useState(0);
  const [how, setHow] = useState({});
  const [error, setError] = useState(null);
  const [strict, setStrict] = useState(false);
  const set = (name) => (value) => setHow({ ...how, [name]: value });
  const field = error?.body?.field ?? "";
  const told = field === "params" || field.startsWith("params.") ? { path: field.split(".").slice(1), detail: error.detail } : null;
  const body = {};
  const changed = Object.fromEntries(Object.entries(params).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(job.params?.[name])));
  if (Object.keys(changed).length) body.params = changed;
  for (const name of SENT) if (how[name]) body[name] = name === "priority" ? Number(how[name]) : name === "at" ? new Date(how[name]).toISOString() : how[name];
  const hide = job.sensitive ? Object.keys(body.params ?? {}) : secretNames(job.schema); // what no copied command tells
  const action = () => ({
    title: "Trigger", path: `/jobs/${job.jobId}/trigger`, body, hide, cli: ["jobs", "trigger", job.name, ...(body.params ? ["--params", paramsWord(body.params, hide)] : []), ...SENT.filter((name) => body[name] !== undefined).flatMap((name) => [`--${name}`, String(body[name])])],
    done: (answer) => (answer.deduplicated ? `That ran already: the same execution is answered.` : `${job.name} was triggered.`),
    see: (answer) => link(executionPath(answer.executionId)),
    after: () => { close(); reload?.(); },
    failed: setError,
  });
  const missing = complaints(job.schema, params);
  return html`<${Dialog} title="Trigger ${job.name}" onClose=${close}><form onSubmit=${(event) => event.preventDefault()} noValidate>
    <${SchemaForm} schema=${job.schema} value=${params} own=${job.params} strict=${strict} told=${told} onChange=${(next, problems) => { setParams(next); setWrong(problems); setError(null); }} />
    ${job.sensitive && html`<p class="soft small">They are sensitive: stored sealed, and shown to nobody later.</p>`}
    <details open=${Boolean(field && SENT.includes(field))}><summary>When and how</summary><div class="fields">
      <${Field} label="after a delay" hint="10m, 1h30m; now if empty" value=${how.delay} onChange=${set("delay")} problem=${field === "delay" && error.detail} />
      <${Field} label="at an instant" type="datetime-local" value=${how.at} onChange=${set("at")} problem=${field === "at" && error.detail} />
      <${Field} label="priority" type="number" min="0" max="9" hint="0 to 9, the job's own if empty" value=${how.priority} onChange=${set("priority")} problem=${field === "priority" && error.detail} />
      <${Field} label="key" hint="while it is taken, nothing new is made" value=${how.key} onChange=${set("key")} problem=${field === "key" && error.detail} />
    </div></details>
    ${error && html`<${Failure} error=${error} />`}
    ${strict && missing > 0 && html`<p class="complaint" role="alert">Something above is missing or does not fit.</p>`}
    <div class="actions end"><button type="button" onClick=${close}>Leave it</button>
      ${missing > 0 || wrong > 0 ? html`<button type="submit" class="primary" onClick=${() => setStrict(true)}>Trigger</button>` : html`<${ActionButton} kind="primary" label="Trigger" action=${action} />`}</div>
  </form><//>`;
}
