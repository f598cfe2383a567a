// Secrets without their values, and the servers.

import { html, useState } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { can, needs } from "../core/api.js";
import { number } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { Empty, Facts, Panel, Ready, Time } from "../parts/basics.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { Table } from "../parts/table.js";

export function Secrets() {
  const list = useList("/secrets", { limit: 50 });
  const [setting, setSetting] = useState(null);
  const remove = (one) => ({
    title: "Remove", method: "DELETE", path: `/secrets/${encodeURIComponent(one.name)}`, cli: ["secrets", "delete", one.name], after: list.top, done: `${one.name} is gone.`,
    confirm: { title: `Remove ${one.name}?`, body: "It is refused while jobs refer to it.", action: "Remove it", danger: true },
  });
  const columns = [
    { title: "name", cell: (one) => html`<code>secret://${one.name}</code>` },
    { title: "version", className: "number", cell: (one) => number(one.version) },
    { title: "set", className: "wide", cell: (one) => html`<${Time} at=${one.updatedAt} ago />` },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" disabled=${!can("admin")} title=${needs("admin")} onClick=${() => setSetting(one.name)}>Set anew …</button><${ActionButton} action=${remove(one)} role="admin" /></span>` },
  ];
  const empty = html`<${Empty} title="No secrets." command="horae secrets set db-password">Jobs refer to them as secret://NAME; values are sealed, given only to what uses them, and never shown.<//>`;
  return html`<${Panel} title="Secrets" actions=${html`<button type="button" class="primary" disabled=${!can("admin")} title=${needs("admin")} onClick=${() => setSetting("")}>Set a secret …</button>`}><${Table} what="secrets" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${empty} /><//>
    ${setting !== null && html`<${SetSecret} name=${setting} onClose=${() => setSetting(null)} onDone=${() => { setSetting(null); list.top(); }} />`}`;
}

function SetSecret({ name: given, onClose, onDone }) {
  const [name, setName] = useState(given);
  const [value, setValue] = useState("");
  const action = {
    title: "Set a secret", method: "PUT", path: `/secrets/${encodeURIComponent(name)}`, body: { value }, hide: ["value"], cli: ["secrets", "set", name || "NAME"], // which asks for it
    done: `${name} is set; what starts from now on gets it.`, after: onDone,
  };
  return html`<${FormDialog} title=${given ? `Set ${given} anew` : "Set a secret"} action=${action} submit="Set it" onClose=${onClose}>
    <${Field} label="Name" required value=${name} disabled=${Boolean(given)} onChange=${setName} /><${Field} label="Value" type="password" required value=${value} onChange=${setValue} /><//>`;
}

export function Servers() {
  const servers = useData("/servers", undefined, { poll: 10000 });
  const store = useData("/store");
  const columns = [
    { title: "server", cell: (one) => one.url }, { title: "host", cell: (one) => `${one.host}, process ${one.pid}` }, { title: "roles", cell: (one) => one.roles.join(", ") },
    { title: "version", cell: (one) => one.version }, { title: "since", cell: (one) => html`<${Time} at=${one.startedAt} />` }, { title: "heard of", className: "wide", cell: (one) => html`<${Time} at=${one.lastHeartbeat} ago />` },
  ];
  return html`<${Panel} title="Servers"><${Ready} of=${servers}>${(data) => html`<${Table} what="servers" columns=${columns} rows=${data.items} keyOf=${(one) => one.serverId} />`}<//><//>
    <${Panel} title="Store"><${Ready} of=${store}>${(data) => html`<${Facts} facts=${Object.entries(data).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)])} />`}<//><//>`;
}
