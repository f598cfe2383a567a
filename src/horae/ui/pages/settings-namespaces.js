// Namespaces: made, changed and deleted; what each may have and use, and what it used.

import { html, useState } from "../core/html.js";
import { useData } from "../core/data.js";
import { can, may, namespace } from "../core/api.js";
import { QUOTA } from "../core/queue-fields.js";
import { go } from "../core/route.js";
import { bytes, duration, number } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { Facts, Panel, Ready, Tags } from "../parts/basics.js";
import { Field, TableField } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { Table } from "../parts/table.js";

const isMine = (one) => may("installation") || (can("admin") && one.name === namespace.value);
const at = (name, more = "") => `/namespaces/${encodeURIComponent(name)}${more}`;

export function Namespaces() {
  const list = useData("/namespaces");
  const [editing, setEditing] = useState(null);
  const done = () => { setEditing(null); list.reload(); };
  const remove = (one) => ({
    title: "Delete", method: "DELETE", path: at(one.name), cli: ["namespaces", "delete", one.name], after: list.reload, done: `${one.name} is gone.`,
    confirm: { title: `Delete the namespace ${one.name}?`, body: "Its keys end within five seconds. It is refused while anything lives in it.", action: "Delete it", danger: true, type: one.name },
  });
  const columns = [
    { title: "name", cell: (one) => html`<b>${one.name}</b>${one.name === namespace.value ? html` <span class="tag">this one</span>` : ""}` },
    { title: "for", className: "wide", cell: (one) => one.description },
    { title: "weight", className: "number", cell: (one) => one.weight },
    { title: "keeps", cell: (one) => html`<${Tags} tags=${one.retention} />` },
    { title: "state", cell: (one) => one.state },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap">${one.name !== namespace.value && html`<button type="button" onClick=${() => go("/", { ns: one.name })}>Go there</button>`}
      <button type="button" disabled=${!isMine(one)} title=${isMine(one) ? "" : "This needs the role admin in that namespace."} onClick=${() => setEditing(one)}>Edit …</button>${may("installation") && one.name !== namespace.value && html`<${ActionButton} action=${remove(one)} role="admin" />`}</span>` },
  ];
  const make = html`<button type="button" class="primary" disabled=${!may("installation")} title=${may("installation") ? "" : "This needs the permission installation."} onClick=${() => setEditing({})}>New namespace …</button>`;
  return html`<${Panel} title="Namespaces" actions=${make}><${Ready} of=${list} what="namespaces">${(data) => html`<${Table} what="namespaces" columns=${columns} rows=${data.items} keyOf=${(one) => one.name} />`}<//><//><${Usage} />
    ${editing && html`<${EditNamespace} one=${editing} onClose=${() => setEditing(null)} onDone=${done} />`}`;
}

const OUTCOMES = ["success", "failed", "cancelled", "skipped"];

function EditNamespace({ one, onClose, onDone }) {
  const isNew = !one.name;
  const [name, setName] = useState(one.name ?? "");
  const [description, setDescription] = useState(one.description ?? "");
  const [weight, setWeight] = useState(String(one.weight ?? 1));
  const [keeps, setKeeps] = useState({ ...one.retention });
  const kept = Object.entries(keeps).filter(([, span]) => span);
  const retention = kept.length ? Object.fromEntries(kept) : null;
  const is = { description: description !== (one.description ?? ""), weight: Number(weight) !== (one.weight ?? 1), retention: JSON.stringify(retention ?? {}) !== JSON.stringify(one.retention ?? {}) }; // changed
  const body = { ...(isNew ? { name } : {}), ...(is.description ? { description } : {}), ...(is.weight ? { weight: Number(weight) } : {}), ...(is.retention ? { retention } : {}) };
  const options = [...(is.description ? ["--description", description] : []), ...(is.weight ? ["--weight", weight] : []), ...(is.retention ? (kept.length ? kept.flatMap(([outcome, span]) => ["--retention", `${outcome}=${span}`]) : ["--retention", "none"]) : [])];
  const action = isNew
    ? { title: "New namespace", path: "/namespaces", body, cli: ["namespaces", "create", name || "NAME", ...options], done: `${name} is there, with its first queue.`, after: onDone }
    : { title: "Save", method: "PATCH", path: at(name), body, cli: ["namespaces", "set", name, ...options], done: `${name} is changed.`, after: onDone };
  return html`<${FormDialog} title=${isNew ? "New namespace" : `Namespace ${name}`} action=${action} submit=${isNew ? "Make it" : "Save"} onClose=${onClose}>
    ${isNew && html`<${Field} label="Name" value=${name} onChange=${setName} required maxlength="128" placeholder="billing" />`}
    <${Field} label="What it is for" value=${description} onChange=${setDescription} maxlength="4096" />
    <${Field} label="Weight" type="number" step="any" min="0.01" max="1000" required value=${weight} onChange=${setWeight} hint="Of what servers do for all namespaces, against that of others." />
    <div class="field-row">${OUTCOMES.map((outcome) => html`<${Field} key=${outcome} label="Keep ${outcome} for" value=${keeps[outcome] ?? ""} placeholder="as servers say" onChange=${(span) => setKeeps({ ...keeps, [outcome]: span })} />`)}</div>
  <//>`;
}

function EditQuota({ quota, onClose, onDone }) {
  const [bounds, setBounds] = useState(Object.fromEntries(QUOTA.map(({ name }) => [name, quota[name] ?? ""])));
  const value = ({ name, default: usual }) => (bounds[name] === "" || bounds[name] === undefined ? usual : bounds[name]);
  const action = {
    title: "Save the quota", method: "PUT", path: at(namespace.value, "/quota"), body: Object.fromEntries(QUOTA.map((field) => [field.name, value(field)])), after: onDone, done: `What ${namespace.value} may have is changed.`,
    cli: ["namespaces", "quota", namespace.value, ...QUOTA.flatMap((field) => [field.flag, String(value(field) ?? "none")])],
  };
  return html`<${FormDialog} title="What ${namespace.value} may have" action=${action} onClose=${onClose}><p class="soft small">What is empty is without a bound.</p>
    <div class="field-row">${QUOTA.map((field) => html`<${TableField} key=${field.name} field=${field} value=${bounds[field.name]} onChange=${(next) => setBounds({ ...bounds, [field.name]: next })} />`)}</div><//>`;
}

function Usage() {
  const usage = useData(at(namespace.value, "/usage"));
  const [editing, setEditing] = useState(false);
  const bound = (value, say = number) => (value === null || value === undefined ? "no bound" : say(value));
  const columns = [
    { title: "day", cell: (one) => one.day },
    { title: "executions", className: "number", cell: (one) => number(one.executions) },
    { title: "workers' time", className: "number", cell: (one) => duration(one.workerSeconds) },
    { title: "stored", className: "number", cell: (one) => bytes(one.storedBytes) },
    { title: "refused", className: "number", cell: (one) => number(one.refused) },
  ];
  const change = may("installation") && usage.data && html`<button type="button" onClick=${() => setEditing(true)}>Change …</button>`;
  return html`<div class="columns"><${Panel} title="What ${namespace.value} may have" actions=${change}><${Ready} of=${usage}>${({ quota, ...now }) => html`<${Facts} facts=${[
    ["queued", `${number(now.queued)} of ${bound(quota.queued)}`], ["running", `${number(now.running)} of ${bound(quota.running)}`],
    ["executions a day", bound(quota.executionsPerDay)], ["workers' time a day", bound(quota.workerSecondsPerDay, duration)], ["stored a day", bound(quota.storedBytesPerDay, bytes)],
    ["submissions a second", bound(quota.submissionsPerSecond)], ["starts a second", bound(quota.startsPerSecond)], ["beyond it", quota.over],
  ]} />`}<//><//><${Panel} title="What it used"><${Ready} of=${usage}>${(data) => html`<${Table} what="days" columns=${columns} rows=${data.days.toReversed()} keyOf=${(one) => one.day} />`}<//><//></div>
    ${editing && html`<${EditQuota} quota=${usage.data.quota} onClose=${() => setEditing(false)} onDone=${() => { setEditing(false); usage.reload(); }} />`}`;
}
