// People: who may sign in, and as what in this namespace.

import { html, useState } from "../core/html.js";
import { useList } from "../core/data.js";
import { me } from "../core/api.js";
import { ActionButton } from "../core/act.js";
import { Empty, Panel, Time } from "../parts/basics.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { Table } from "../parts/table.js";

const ROLES = ["viewer", "operator", "editor", "admin"];

export function People() {
  const list = useList("/users", { limit: 50 });
  const [adding, setAdding] = useState(false);
  const [changing, setChanging] = useState(null);
  const out = (one) => ({
    title: "Take out", method: "DELETE", path: `/users/${encodeURIComponent(one.name)}/member`, cli: ["users", "revoke", one.name], after: list.top, done: `${one.name} is not in this namespace any more.`,
    confirm: { title: `Take ${one.name} out of ${me.value.namespace}?`, body: "Their browsers lose this namespace at once.", action: "Take out", danger: true },
  });
  const here = (one) => one.memberships.find((member) => member.namespace === me.value.namespace);
  const columns = [
    { title: "name", cell: (one) => html`<b>${one.name}</b>` },
    { title: "role here", cell: (one) => here(one)?.role ?? "" },
    { title: "namespaces", className: "wide", cell: (one) => one.memberships.map((member) => `${member.namespace} (${member.role})`).join(", ") },
    { title: "last signed in", cell: (one) => html`<${Time} at=${one.signedInAt} ago />` },
    { title: "state", cell: (one) => (one.active ? (one.hasPassword ? "let in" : "let in by the provider") : "not let in") },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" onClick=${() => setChanging(one)}>Role …</button><${ActionButton} action=${out(one)} role="admin" /></span>` },
  ];
  const empty = html`<${Empty} title="Nobody yet." command="horae users create ada --role operator">People sign in with a password or at your identity provider. Until then this browser's link is the way in.<//>`;
  return html`<${Panel} title="People" actions=${html`<button type="button" class="primary" onClick=${() => setAdding(true)}>Let somebody in …</button>`}>
    <${Table} what="people" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${empty} /><//>
    ${adding && html`<${NewPerson} onClose=${() => setAdding(false)} onMade=${() => { setAdding(false); list.top(); }} />`}
    ${changing && html`<${NewRole} person=${changing} old=${here(changing)} onClose=${() => setChanging(null)} onDone=${() => { setChanging(null); list.top(); }} />`}`;
}

function NewPerson({ onClose, onMade }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState("viewer");
  const action = { title: "Let somebody in", path: "/users", body: { name, password, role }, cli: ["users", "create", name || "NAME", "--role", role], done: `${name} can sign in.`, after: onMade };
  return html`<${FormDialog} title="Let somebody in" action=${action} submit="Let in" onClose=${onClose}>
    <${Field} label="Name" required maxlength="128" value=${name} onChange=${setName} />
    <${Field} label="First password" type="password" required value=${password} onChange=${setPassword} />
    <${Field} label="Role in ${me.value.namespace}" value=${role} onChange=${setRole} options=${ROLES.map((one) => [one])} /><//>`;
}

function NewRole({ person, old, onClose, onDone }) {
  const [role, setRole] = useState(old?.role ?? "viewer");
  const permissions = old?.permissions ?? []; // those beyond the role stay
  const action = { title: "Save", method: "PUT", path: `/users/${encodeURIComponent(person.name)}/member`, body: { role, permissions }, cli: ["users", "grant", person.name, "--role", role, ...permissions.flatMap((one) => ["--permission", one])], done: `${person.name} is ${role} in ${me.value.namespace}.`, after: onDone };
  return html`<${FormDialog} title="What ${person.name} may in ${me.value.namespace}" action=${action} onClose=${onClose}><${Field} label="Role" value=${role} onChange=${setRole} options=${ROLES.map((one) => [one])} /><//>`;
}
