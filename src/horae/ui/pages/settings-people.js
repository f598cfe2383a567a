// People: who may sign in, and as what in this namespace.

import { html, useState } from "../core/html.js";
import { useList } from "../core/data.js";
import { me } from "../core/api.js";
import { act, ActionButton } from "../core/act.js";
import { Empty, Panel, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Table } from "../parts/table.js";

const ROLES = ["viewer", "operator", "editor", "admin"];

export function People() {
  const list = useList("/users", { limit: 50 });
  const [adding, setAdding] = useState(false);
  const out = (one) => ({
    title: "Take out", method: "DELETE", path: `/users/${encodeURIComponent(one.name)}/member`, cli: ["users", "revoke", one.name], after: list.top, done: `${one.name} is not in this namespace any more.`,
    confirm: { title: `Take ${one.name} out of ${me.value.namespace}?`, body: "Their browsers lose this namespace at once.", action: "Take out", danger: true },
  });
  const roleOf = (one) => one.members.find((member) => member.namespace === me.value.namespace)?.role ?? "";
  const columns = [
    { title: "name", cell: (one) => html`<b>${one.name}</b>` },
    { title: "role here", cell: roleOf },
    { title: "namespaces", className: "wide", cell: (one) => one.members.map((member) => `${member.namespace} (${member.role})`).join(", ") },
    { title: "last signed in", cell: (one) => html`<${Time} at=${one.signedInAt} ago />` },
    { title: "state", cell: (one) => (one.active ? (one.password ? "let in" : "let in by the provider") : "not let in") },
    { title: "", key: "actions", cell: (one) => html`<${ActionButton} action=${out(one)} role="admin" />` },
  ];
  const empty = html`<${Empty} title="Nobody yet." command="horae users create ada --role operator">People sign in with a password or at your identity provider. Until then this browser's link is the way in.<//>`;
  return html`<${Panel} title="People" actions=${html`<button type="button" class="primary" onClick=${() => setAdding(true)}>Let somebody in …</button>`}>
    <${Table} what="people" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${empty} /><//>
    ${adding && html`<${NewPerson} onClose=${() => setAdding(false)} onMade=${() => { setAdding(false); list.top(); }} />`}`;
}

function NewPerson({ onClose, onMade }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState("viewer");
  const submit = async (event) => {
    event.preventDefault();
    await act({ title: "Let somebody in", path: "/users", body: { name, password, role }, done: `${name} can sign in.`, after: onMade });
  };
  return html`<${Dialog} title="Let somebody in" onClose=${onClose}><form onSubmit=${submit}>
    <div class="field"><label for="person">Name</label><input id="person" required maxlength="128" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} /></div>
    <div class="field"><label for="first">First password</label><input id="first" type="password" required autocomplete="new-password" value=${password} onInput=${(event) => setPassword(event.target.value)} /></div>
    <div class="field"><label for="person-role">Role in ${me.value.namespace}</label><select id="person-role" value=${role} onChange=${(event) => setRole(event.target.value)}>${ROLES.map((one) => html`<option key=${one} selected=${one === role}>${one}</option>`)}</select></div>
    <div class="actions end"><button type="button" onClick=${onClose}>Leave it</button><button type="submit" class="primary">Let in</button></div>
  </form><//>`;
}
