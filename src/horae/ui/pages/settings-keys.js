// Keys: made, rotated and revoked; a key's text is told once.

import { html, useState } from "../core/html.js";
import { useList } from "../core/data.js";
import { can, needs } from "../core/api.js";
import { now } from "../core/clock.js";
import { ActionButton } from "../core/act.js";
import { Copy, Empty, Panel, Tags, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { Table } from "../parts/table.js";

const ROLES = [["viewer", "reads"], ["operator", "triggers, pauses, retries, approves"], ["editor", "defines jobs"], ["admin", "all of a namespace"], ["worker", "runs what is queued"]];
const state = (key) => (key.revokedAt ? "revoked" : key.expiresAt && new Date(key.expiresAt) < now() ? "expired" : "valid");

export function Keys() {
  const list = useList("/keys", { limit: 50 });
  const [making, setMaking] = useState(false);
  const [told, setTold] = useState(null);
  const revoke = (key) => ({
    title: "Revoke", method: "DELETE", path: `/keys/${key.keyId}`, cli: ["keys", "revoke", key.keyId], after: list.top, done: `${key.name} stops working within five seconds on every server.`,
    confirm: { title: `Revoke ${key.name}?`, body: "It stops working within five seconds on every server, as do browsers that it signed in. This cannot be undone.", action: "Revoke it", danger: true },
  });
  const rotate = (key) => ({
    title: "Rotate", path: `/keys/${key.keyId}/rotate`, body: {}, cli: ["keys", "rotate", key.keyId], done: "A key that replaces it was made; both are valid until the overlap ends.",
    after: (answer) => { setTold(answer); list.top(); },
  });
  const columns = [
    { title: "name", cell: (one) => html`<b>${one.name}</b>` },
    { title: "id", cell: (one) => html`<code>${one.keyId}</code>` },
    { title: "role", cell: (one) => one.role },
    { title: "beyond it", className: "wide", cell: (one) => html`<${Tags} tags=${[...one.permissions, ...one.queues.map((name) => `queue ${name}`), ...one.jobs.map((name) => `jobs ${name}`)]} />` },
    { title: "last used", cell: (one) => html`<${Time} at=${one.lastUsedAt} ago />` },
    { title: "ends", cell: (one) => (one.expiresAt ? html`<${Time} at=${one.expiresAt} ago />` : "never") },
    { title: "state", cell: state },
    { title: "", key: "actions", cell: (one) => state(one) === "valid" && html`<span class="actions nowrap"><${ActionButton} action=${rotate(one)} role="admin" /><${ActionButton} action=${revoke(one)} role="admin" /></span>` },
  ];
  return html`<${Panel} title="Keys" actions=${html`<button type="button" class="primary" disabled=${!can("admin")} title=${needs("admin")} onClick=${() => setMaking(true)}>New key …</button>`}>
    <${Table} what="keys" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.keyId} rowClass=${(one) => (state(one) === "valid" ? "" : "soft")} empty=${html`<${Empty} title="No keys." />`} /><//>
    ${making && html`<${NewKey} onClose=${() => setMaking(false)} onMade=${(answer) => { setMaking(false); setTold(answer); list.top(); }} />`}
    ${told && html`<${Told} made=${told} onClose=${() => setTold(null)} />`}`;
}

function NewKey({ onClose, onMade }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("operator");
  const [commands, setCommands] = useState(false);
  const [jobs, setJobs] = useState("");
  const [days, setDays] = useState("90");
  const split = (text) => text.split(/[\s,]+/).filter(Boolean);
  const body = () => ({
    name, role, ...(commands ? { permissions: ["commands"] } : {}), ...(jobs ? { jobs: split(jobs) } : {}),
    ...(days ? { expiresAt: new Date(now() + Number(days) * 86400000).toISOString() } : {}),
  });
  const action = {
    title: "New key", path: "/keys", body: body(), done: `The key ${name} was made.`, after: onMade,
    cli: ["keys", "create", name || "NAME", "--role", role, ...(commands ? ["--permission", "commands"] : []), ...split(jobs).flatMap((one) => ["--jobs", one]), ...(days ? ["--expires", `${days}d`] : [])],
  };
  return html`<${FormDialog} title="New key" action=${action} submit="Make the key" onClose=${onClose}>
    <${Field} label="Name" required maxlength="128" value=${name} onChange=${setName} placeholder="what it is for" />
    <${Field} label="Role" value=${role} onChange=${setRole} options=${ROLES.map(([one, words]) => [one, `${one}: ${words}`])} />
    <${Field} label="Only these jobs (patterns; empty: all)" value=${jobs} onChange=${setJobs} placeholder="etl-*" />
    <${Field} label="Ends after so many days (empty: never)" type="number" min="1" value=${days} onChange=${setDays} />
    <label class="line"><input type="checkbox" checked=${commands} onChange=${(event) => setCommands(event.target.checked)} /> may define commands (whoever may, owns the workers' account)</label><//>`;
}

function Told({ made, onClose }) {
  const text = made.key ?? made.text;
  return html`<${Dialog} title="The key" onClose=${onClose}><p>It is told this once. Keep it where your other secrets are.</p><p class="command"><code>${text}</code> <${Copy} text=${text} /></p><div class="actions end"><button type="button" class="primary" onClick=${onClose}>I have it</button></div><//>`;
}
