// Secrets without their values, namespaces with their quotas and usage, and the servers.

import { html, useState } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { namespace } from "../core/api.js";
import { go } from "../core/route.js";
import { bytes, duration, number } from "../core/format.js";
import { act, ActionButton } from "../core/act.js";
import { Empty, Facts, Panel, Ready, Tags, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
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
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" onClick=${() => setSetting(one.name)}>Set anew …</button><${ActionButton} action=${remove(one)} role="admin" /></span>` },
  ];
  const empty = html`<${Empty} title="No secrets." command="horae secrets set db-password">Jobs refer to them as secret://NAME; values are sealed, given only to what uses them, and never shown.<//>`;
  return html`<${Panel} title="Secrets" actions=${html`<button type="button" class="primary" onClick=${() => setSetting("")}>Set a secret …</button>`}><${Table} what="secrets" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${empty} /><//>
    ${setting !== null && html`<${SetSecret} name=${setting} onClose=${() => setSetting(null)} onDone=${() => { setSetting(null); list.top(); }} />`}`;
}

function SetSecret({ name: given, onClose, onDone }) {
  const [name, setName] = useState(given);
  const [value, setValue] = useState("");
  const submit = (event) => { event.preventDefault(); act({ title: "Set a secret", method: "PUT", path: `/secrets/${encodeURIComponent(name)}`, body: { value }, done: `${name} is set; what starts from now on gets it.`, after: onDone }); };
  return html`<${Dialog} title=${given ? `Set ${given} anew` : "Set a secret"} onClose=${onClose}><form onSubmit=${submit}>
    <div class="field"><label for="secret">Name</label><input id="secret" required value=${name} disabled=${Boolean(given)} onInput=${(event) => setName(event.target.value)} /></div>
    <div class="field"><label for="value">Value</label><input id="value" type="password" required autocomplete="off" value=${value} onInput=${(event) => setValue(event.target.value)} /></div>
    <div class="actions end"><button type="button" onClick=${onClose}>Leave it</button><button type="submit" class="primary">Set it</button></div></form><//>`;
}

export function Namespaces() {
  const list = useData("/namespaces");
  const columns = [
    { title: "name", cell: (one) => html`<b>${one.name}</b>${one.name === namespace.value ? html` <span class="tag">this one</span>` : ""}` },
    { title: "for", className: "wide", cell: (one) => one.description },
    { title: "weight", className: "number", cell: (one) => one.weight },
    { title: "keeps", cell: (one) => html`<${Tags} tags=${one.retention} />` },
    { title: "state", cell: (one) => one.state },
    { title: "", key: "go", cell: (one) => one.name !== namespace.value && html`<button type="button" onClick=${() => go("/", { ns: one.name })}>Go there</button>` },
  ];
  return html`<${Panel} title="Namespaces"><${Ready} of=${list} what="namespaces">${(data) => html`<${Table} what="namespaces" columns=${columns} rows=${data.items} keyOf=${(one) => one.name} />`}<//><//><${Usage} />`;
}

function Usage() {
  const usage = useData(`/namespaces/${encodeURIComponent(namespace.value)}/usage`);
  const bound = (value, say = number) => (value === null || value === undefined ? "no bound" : say(value));
  const columns = [
    { title: "day", cell: (one) => one.day },
    { title: "executions", className: "number", cell: (one) => number(one.executions) },
    { title: "workers' time", className: "number", cell: (one) => duration(one.workerSeconds) },
    { title: "stored", className: "number", cell: (one) => bytes(one.storedBytes) },
    { title: "refused", className: "number", cell: (one) => number(one.refused) },
  ];
  return html`<div class="columns"><${Panel} title="What ${namespace.value} may have"><${Ready} of=${usage}>${({ quota, ...now }) => html`<${Facts} facts=${[
    ["queued", `${number(now.queued)} of ${bound(quota.queued)}`], ["running", `${number(now.running)} of ${bound(quota.running)}`],
    ["executions a day", bound(quota.executionsPerDay)], ["workers' time a day", bound(quota.workerSecondsPerDay, duration)], ["stored a day", bound(quota.storedBytesPerDay, bytes)],
    ["submissions a second", bound(quota.submissionsPerSecond)], ["beyond it", quota.over],
  ]} />`}<//><//><${Panel} title="What it used"><${Ready} of=${usage}>${(data) => html`<${Table} what="days" columns=${columns} rows=${data.days.toReversed()} keyOf=${(one) => one.day} />`}<//><//></div>`;
}

export function Servers() {
  const servers = useData("/servers", undefined, { poll: 10000 });
  const store = useData("/store");
  const columns = [
    { title: "server", cell: (one) => one.url }, { title: "host", cell: (one) => `${one.host}, process ${one.pid}` }, { title: "does", cell: (one) => one.parts.join(", ") },
    { title: "version", cell: (one) => one.version }, { title: "since", cell: (one) => html`<${Time} at=${one.startedAt} />` }, { title: "heard of", className: "wide", cell: (one) => html`<${Time} at=${one.lastHeartbeat} ago />` },
  ];
  return html`<${Panel} title="Servers"><${Ready} of=${servers}>${(data) => html`<${Table} what="servers" columns=${columns} rows=${data.items} keyOf=${(one) => one.serverId} />`}<//><//>
    <${Panel} title="Store"><${Ready} of=${store}>${(data) => html`<${Facts} facts=${Object.entries(data).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)])} />`}<//><//>`;
}
