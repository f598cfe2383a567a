// A queue made or changed: who is next, and what bounds it. It acts at once, also on what is queued.

import { html, useState } from "../core/html.js";
import { Field, Tick } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";

const KINDS = [
  ["priority", "priority: urgent ones first, and nobody waits for ever"], ["fifo", "fifo: who came first"], ["fair", "fair: everybody's share in turn"],
  ["deadline", "deadline: what is due soonest"], ["shortest", "shortest: what takes least time"],
];
const pairs = (given) => Object.entries(given ?? {}).map(([name, value]) => `${name}=${value}`).join(", ");
const entries = (text, read) => Object.fromEntries(text.split(",").map((one) => one.trim()).filter(Boolean).map((one) => [one.slice(0, one.lastIndexOf("=")), read(one.slice(one.lastIndexOf("=") + 1).trim())]));
const isPairs = (text) => text.split(",").map((one) => one.trim()).filter(Boolean).every((one) => /^.+=\s*\d+(\.\d+)?%?$/.test(one));
const text = (value) => (value === null || value === undefined ? "" : String(value));
const slots = (value) => (/^\d+$/.test(value) ? Number(value) : value);

/** What the form begins with: all as text, as it is typed. */
function begin(queue) {
  const policy = queue?.policy ?? { kind: "priority" };
  return {
    name: queue?.name ?? "", kind: policy.kind, ageing: text(policy.ageing), strict: Boolean(policy.strict), factor: text(policy.factor), by: text(policy.by), within: policy.within?.kind ?? "fifo",
    weights: pairs(policy.weights), defaultWeight: text(policy.defaultWeight), reserve: pairs(policy.reserve), charge: policy.charge ?? "time", concurrency: text(queue?.concurrency),
    rate: text(queue?.rate), burst: text(queue?.burst), maxQueued: text(queue?.maxQueued), sequence: Boolean(queue?.sequence), preempts: Boolean(queue?.preempts), default: Boolean(queue?.default),
  };
}

/** The policy that is meant. What the form has no field for, e.g. how a share is ordered in detail, stays as it was. */
function policyOf(form, old) {
  const { kind } = form;
  if (kind === "priority") return { kind, ...(form.strict ? { strict: true } : form.ageing ? { ageing: form.ageing } : {}) };
  if (kind === "shortest") return { kind, ...(form.factor ? { factor: Number(form.factor) } : {}) };
  if (kind !== "fair") return { kind };
  const within = old?.within?.kind === form.within ? old.within : { kind: form.within };
  return {
    kind, by: form.by, within, charge: form.charge, ...(form.weights ? { weights: entries(form.weights, Number) } : {}),
    ...(form.defaultWeight ? { defaultWeight: Number(form.defaultWeight) } : {}), ...(form.reserve ? { reserve: entries(form.reserve, slots) } : {}),
  };
}

const whole = (value) => (value === "" ? null : Number(value));

function definition(form, old) {
  return {
    policy: policyOf(form, old?.policy), concurrency: whole(form.concurrency), rate: form.rate.trim() || null, burst: whole(form.burst), maxQueued: whole(form.maxQueued),
    sequence: form.sequence, preempts: form.preempts, ...(form.default && !old?.default ? { default: true } : {}),
  };
}

// Only what differs is said: the command changes what it names.
function options(body, old) {
  const differs = (name, was = null) => JSON.stringify(body[name] ?? was) !== JSON.stringify(old?.[name] ?? was);
  const { policy } = body;
  const yes = (name) => (differs(name, false) ? [body[name] ? `--${name}` : `--no-${name}`] : []);
  return [
    ...(differs("policy") ? ["--policy", Object.keys(policy).length === 1 ? policy.kind : JSON.stringify(policy)] : []), ...(differs("concurrency") ? ["--concurrency", body.concurrency ?? "none"] : []),
    ...(differs("rate") ? ["--rate", body.rate ?? "none"] : []), ...(differs("burst") && body.burst ? ["--burst", body.burst] : []), ...(differs("maxQueued") ? ["--max-queued", body.maxQueued ?? "none"] : []),
    ...yes("sequence"), ...yes("preempts"), ...(body.default ? ["--default"] : []),
  ];
}

const count = (value, least) => (value === "" || (/^\d+$/.test(value) && Number(value) >= least) ? null : `a whole number from ${least} on, or nothing`);

function problems(form, taken) {
  return {
    name: !form.name ? "needed" : taken.includes(form.name) ? "there is one of that name; change it on its page" : null,
    by: form.kind === "fair" && form.by !== "job" && form.by !== "caller" && !form.by.includes("${") ? "job, caller, or a template as ${params.customer}" : null,
    weights: isPairs(form.weights) ? null : "as acme=5, others=1", reserve: isPairs(form.reserve) ? null : "as acme=4, or acme=25%",
    concurrency: count(form.concurrency, 1), burst: count(form.burst, 1) ?? (form.burst && !form.rate ? "of a rate, which is not given" : null), maxQueued: count(form.maxQueued, 0),
    rate: form.rate === "" || /^\d+\/\d*\s*[a-z]+$/.test(form.rate.trim()) ? null : "so many in a span, as 100/1m",
  };
}

/** `queue`: what is changed, or nothing for a new one; `taken`: names that are. */
export function EditQueue({ queue, taken = [], onClose, onDone }) {
  const [form, setForm] = useState(begin(queue));
  const set = (name) => (value) => setForm((old) => ({ ...old, [name]: value }));
  const wrong = problems(form, taken);
  const body = definition(form, queue);
  const action = {
    title: queue ? `Change ${queue.name}` : "Make the queue", method: queue ? "PATCH" : "PUT", path: `/queues/${encodeURIComponent(form.name)}`, body, cli: ["queues", "set", form.name || "NAME", ...options(body, queue && definition(begin(queue), queue))],
    done: queue ? `${queue.name} goes by this from now on.` : `${form.name} is there.`, after: () => onDone(form.name),
  };
  const field = (name, label, more = {}) => html`<${Field} key=${name} label=${label} value=${form[name]} onChange=${set(name)} problem=${form[name] === "" && name !== "by" ? null : wrong[name]} ...${more} />`;
  return html`<${FormDialog} title=${queue ? `Change ${queue.name}` : "New queue"} action=${action} submit=${queue ? "Save" : "Make it"} onClose=${onClose} disabled=${Object.values(wrong).some(Boolean)}>
    ${!queue && field("name", "Name", { required: true, maxlength: 128, placeholder: "reports" })}
    ${field("kind", "Who is next", { options: KINDS })}
    ${form.kind === "priority" && html`${!form.strict && field("ageing", "Head start of a level (empty: 60s)", { placeholder: "60s" })}<${Tick} label="strict: a higher level always goes first" value=${form.strict} onChange=${set("strict")} />`}
    ${form.kind === "shortest" && field("factor", "How much a long one gives way (empty: 10)", { placeholder: "10" })}
    ${form.kind === "fair" && html`${field("by", "Shares by", { placeholder: "${params.customer}", required: true, hint: "job, caller, or a template of params and tags" })}
      ${field("within", "Inside a share", { options: KINDS.filter(([kind]) => kind !== "fair") })}
      ${field("weights", "Weights", { placeholder: "acme=5, others=1" })}${field("defaultWeight", "Weight of those that are not named", { placeholder: "1" })}
      ${field("reserve", "Slots kept for a share", { placeholder: "acme=4, or acme=25%" })}${field("charge", "Shares are charged", { options: [["time", "for the time that they run"], ["executions", "by the execution"]] })}`}
    ${field("concurrency", "How many run at once (empty: no limit)", { inputmode: "numeric" })}
    ${field("rate", "How often they start (empty: no limit)", { placeholder: "100/1m" })}${form.rate && field("burst", "How many at once after a pause", { inputmode: "numeric" })}
    ${field("maxQueued", "How many it takes (empty: no bound)", { inputmode: "numeric", hint: "what is submitted beyond is refused" })}
    <${Tick} label="one after another, also through retries" value=${form.sequence} onChange=${set("sequence")} />
    <${Tick} label="takes the place of preemptible work" value=${form.preempts} onChange=${set("preempts")} />
    ${!queue?.default && html`<${Tick} label="jobs that name no queue go here" value=${form.default} onChange=${set("default")} />`}
  <//>`;
}
