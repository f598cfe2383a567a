// A queue made or changed: who is next, and what bounds it. It acts at once, also on what is queued.

import { html, useState } from "../core/html.js";
import { POLICIES, QUEUE } from "../core/queue-fields.js";
import { Field, Tick } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";

const ORDERS = POLICIES.map(({ kind, about }) => [kind, `${kind}: ${about}`]);
const BOUNDS = QUEUE.filter(({ name }) => name !== "policy" && name !== "default");
const fieldsOf = (kind) => POLICIES.find((one) => one.kind === kind).fields;
const parts = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);
const number = (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : text);
const entries = (text) => Object.fromEntries(parts(text).map((one) => [one.slice(0, one.lastIndexOf("=")), number(one.slice(one.lastIndexOf("=") + 1).trim())]));
const isPairs = (text) => parts(text).every((one) => /^.+=\s*\d+(\.\d+)?%?$/.test(one));

/** A value as it is typed: a text, or whether it is ticked. */
function typed({ kind, given }, value) {
  if (kind === "flag") return Boolean(value);
  if (given === "pairs") return Object.entries(value ?? {}).map(([name, part]) => `${name}=${part}`).join(", ");
  return value === null || value === undefined ? "" : String(value.kind ?? value);
}

/** What was typed as the API takes it; null for nothing. */
function read({ kind, given }, text) {
  if (kind === "flag") return text;
  if (text.trim() === "") return null;
  return given === "pairs" ? entries(text) : kind === "integer" || kind === "number" ? Number(text) : text.trim();
}

const begun = (fields, values) => Object.fromEntries(fields.map((field) => [field.name, typed(field, values?.[field.name])]));

/** What the form begins with. */
function begin(queue) {
  const policy = queue?.policy ?? { kind: "priority" };
  const rules = Object.assign({}, ...POLICIES.map(({ kind, fields }) => begun(fields, kind === policy.kind ? policy : {})));
  return { name: queue?.name ?? "", kind: policy.kind, default: Boolean(queue?.default), rules, bounds: begun(BOUNDS, queue) };
}

/** The policy that is meant. What the form has no field for, e.g. how a share is ordered in detail, stays as it was. */
function policyOf({ kind, rules }, old) {
  const values = fieldsOf(kind).map((field) => [field.name, read(field, rules[field.name])]);
  const said = Object.fromEntries(values.filter(([, value]) => value !== null && value !== false));
  if (said.strict) delete said.ageing;
  if (said.within) said.within = old?.within?.kind === said.within ? old.within : { kind: said.within };
  return { kind, ...said };
}

function definition(form, old) {
  const bounds = Object.fromEntries(BOUNDS.map((field) => [field.name, read(field, form.bounds[field.name])]));
  return { policy: policyOf(form, old?.policy), ...bounds, ...(form.default && !old?.default ? { default: true } : {}) };
}

// Only what differs is said: the command changes what it names.
function options(body, old) {
  const differs = (name, was = null) => JSON.stringify(body[name] ?? was) !== JSON.stringify(old?.[name] ?? was);
  const { policy } = body;
  const said = BOUNDS.flatMap(({ name, kind, flag }) => {
    if (kind === "flag") return differs(name, false) ? [body[name] ? flag : flag.replace("--", "--no-")] : [];
    return differs(name) ? [flag, body[name] ?? "none"] : [];
  });
  return [...(differs("policy") ? ["--policy", Object.keys(policy).length === 1 ? policy.kind : JSON.stringify(policy)] : []), ...said, ...(body.default ? ["--default"] : [])];
}

/** What is wrong with a value that is typed; null for nothing. */
function complaint({ kind, given, least }, text) {
  if (kind === "integer") return text === "" || (/^\d+$/.test(text) && Number(text) >= least) ? null : `a whole number from ${least} on, or nothing`;
  return given !== "pairs" || isPairs(text) ? null : "as acme=4, others=1";
}

function problems({ name, kind, rules, bounds }, taken) {
  const each = (fields, values) => Object.fromEntries(fields.map((field) => [field.name, complaint(field, values[field.name])]));
  return {
    ...each(fieldsOf(kind), rules), ...each(BOUNDS, bounds), name: !name ? "needed" : taken.includes(name) ? "there is one of that name; change it on its page" : null,
    ...(kind === "fair" && rules.by !== "job" && rules.by !== "caller" && !rules.by.includes("${") ? { by: "job, caller, or a template as ${params.customer}" } : {}),
    ...(bounds.burst && !bounds.rate ? { burst: "of a rate, which is not given" } : {}), ...(bounds.rate === "" || /^\d+\/\d*\s*[a-z]+$/.test(bounds.rate.trim()) ? {} : { rate: "so many in a span, as 100/1m" }),
  };
}

const words = (value) => (value && typeof value === "object" ? value.kind : value);

function FieldOf({ field, value, onChange, problem }) {
  const { name, kind, help, example, default: usual } = field;
  const label = help.replace(/\.$/, "");
  if (kind === "flag") return html`<${Tick} label=${label} value=${value} onChange=${onChange} />`;
  const options = name === "within" ? ORDERS.filter(([one]) => one !== "fair") : field.words?.map((word) => [word, word]);
  const otherwise = words(usual);
  return html`<${Field} label=${label} value=${value || (options ? otherwise : "")} onChange=${onChange} options=${options} placeholder=${words(example) ?? otherwise ?? ""} hint=${otherwise === null || otherwise === undefined || options ? "" : `${otherwise} if empty.`} problem=${value === "" && name !== "by" ? null : problem} />`;
}

/** `queue`: what is changed, or nothing for a new one; `taken`: names that are. */
export function EditQueue({ queue, taken = [], onClose, onDone }) {
  const [form, setForm] = useState(begin(queue));
  const set = (name) => (value) => setForm((old) => ({ ...old, [name]: value }));
  const within = (group, name) => (value) => setForm((old) => ({ ...old, [group]: { ...old[group], [name]: value } }));
  const wrong = problems(form, taken);
  const body = definition(form, queue);
  const action = {
    title: queue ? `Change ${queue.name}` : "Make the queue", method: queue ? "PATCH" : "PUT", path: `/queues/${encodeURIComponent(form.name)}`, body, cli: ["queues", "set", form.name || "NAME", ...options(body, queue && definition(begin(queue), queue))],
    done: queue ? `${queue.name} goes by this from now on.` : `${form.name} is there.`, after: () => onDone(form.name),
  };
  const fields = (group, list) => list.map((field) => html`<${FieldOf} key=${field.name} field=${field} value=${form[group][field.name]} onChange=${within(group, field.name)} problem=${wrong[field.name]} />`);
  return html`<${FormDialog} title=${queue ? `Change ${queue.name}` : "New queue"} action=${action} submit=${queue ? "Save" : "Make it"} onClose=${onClose} disabled=${Object.values(wrong).some(Boolean)}>
    ${!queue && html`<${Field} label="Name" value=${form.name} onChange=${set("name")} problem=${form.name === "" ? null : wrong.name} required maxlength="128" placeholder="reports" />`}
    <${Field} label="Who is next" value=${form.kind} onChange=${set("kind")} options=${ORDERS} />
    ${fields("rules", fieldsOf(form.kind).filter(({ name }) => name !== "ageing" || !form.rules.strict))}
    ${fields("bounds", BOUNDS.filter(({ name }) => name !== "burst" || form.bounds.rate))}
    ${!queue?.default && html`<${Tick} label="Jobs that name no queue go here" value=${form.default} onChange=${set("default")} />`}
  <//>`;
}
