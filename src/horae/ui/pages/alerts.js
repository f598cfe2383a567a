// Alerts: what fires now, the rules that say what somebody wants to hear of, and the channels that say where.

import { html, useState } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { executionPath, jobPath, link, route } from "../core/route.js";
import { number } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { can, needs } from "../core/api.js";
import { State } from "../core/states.js";
import { Chips, Empty, Facts, Page, Ready, Tabs, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Table } from "../parts/table.js";
import { EditChannel, EditRule } from "./alerts-edit.js";

export default function Alerts() {
  const firing = useData("/alerts", { state: "firing", limit: 1000 }, { live: ["alert"], poll: 15000 });
  const tabs = [
    { id: "alerts", title: "Alerts", count: firing.data ? number(firing.data.items.length) : undefined, show: () => html`<${List} />` },
    { id: "rules", title: "Rules", show: () => html`<${Rules} />` },
    { id: "channels", title: "Channels", show: () => html`<${Channels} />` },
  ];
  return html`<${Page} title="Alerts" lead="A rule says what you want to hear of, a channel says where."><${Tabs} tabs=${tabs} /><//>`;
}

function List() {
  const { state = "firing", rule } = route.value.query;
  const list = useList("/alerts", { state: state === "any" ? undefined : state, rule, limit: 50 }, { live: ["alert"], wait: 2000, poll: 15000 });
  const [shown, setShown] = useState(null);
  const acknowledge = (one) => ({
    title: "Acknowledge", path: `/alerts/${one.alertId}/acknowledge`, cli: ["alerts", "acknowledge", one.alertId], done: `Nobody is reminded of ${one.subject} any more.`, after: list.top,
  });
  const columns = [
    { title: "state", cell: (one) => html`<${State} of=${one.state} />` },
    { title: "about", cell: (one) => html`<b>${one.subject}</b>` },
    { title: "what", className: "wide", cell: (one) => one.message },
    { title: "rule", cell: (one) => one.rule },
    { title: "severity", cell: (one) => one.severity },
    { title: "since", cell: (one) => html`<${Time} at=${one.since} ago />` },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" class="link" onClick=${() => setShown(one)}>details</button>${one.state === "firing" && (one.acknowledgedAt ? html`<span class="soft small">acknowledged by ${one.acknowledgedBy}</span>` : html`<${ActionButton} action=${acknowledge(one)} />`)}</span>` },
  ];
  const empty = html`<${Empty} title=${state === "firing" ? "Nothing fires." : "No alerts."} command="horae alerts rules put nightly --kind failures-in-a-row --job report --channel ops">Alerts open by rules, are told to channels, and end by themselves when what they tell of is over.<//>`;
  return html`<div class="chips"><${Chips} filters=${[{ name: "state", label: "state", options: [["recovered", "recovered"], ["any", "any"]], all: "firing" }]} /></div>
    <${Table} what="alerts" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.alertId} empty=${empty} />
    ${shown && html`<${One} alert=${shown} onClose=${() => setShown(null)} />`}`;
}

function One({ alert, onClose }) {
  const columns = [
    { title: "channel", cell: (one) => one.channel }, { title: "notice", cell: (one) => one.kind }, { title: "state", cell: (one) => one.state },
    { title: "tries", className: "number", cell: (one) => number(one.attempts) }, { title: "last error", className: "wide", cell: (one) => one.lastError ?? "" }, { title: "at", cell: (one) => html`<${Time} at=${one.at} ago />` },
  ];
  return html`<${Dialog} wide title=${`${alert.rule}: ${alert.subject}`} onClose=${onClose}><p>${alert.message}</p><${Facts} facts=${[
    ["state", html`<${State} of=${alert.state} />`], ["kind", alert.kind], ["severity", alert.severity], ["since", html`<${Time} at=${alert.since} />`], ["over", alert.recoveredAt && html`<${Time} at=${alert.recoveredAt} />`],
    ["job", alert.jobId && html`<a href=${link(jobPath(alert.subject.split(" ")[0]))}>${alert.subject}</a>`], ["for example", alert.executionId && html`<a href=${link(executionPath(alert.executionId))}>an execution</a>`],
    ["acknowledged", alert.acknowledgedAt && html`by ${alert.acknowledgedBy}, <${Time} at=${alert.acknowledgedAt} ago />`],
  ]} /><h3>Who was told</h3><${Table} what="deliveries" columns=${columns} rows=${alert.deliveries} keyOf=${(one) => `${one.channel} ${one.kind} ${one.at}`} empty=${html`<p class="soft">Nobody: its rule names no channel.</p>`} /><//>`;
}

const tried = (answer) => {
  const bad = answer.deliveries.filter((one) => one.state !== "delivered");
  if (!answer.deliveries.length) return "There is no channel to tell.";
  return bad.length ? bad.map((one) => `${one.channel}: ${one.lastError ?? one.state}`).join("; ") : `${answer.deliveries.map((one) => one.channel).join(", ")} was told that this is a test.`;
};

function Rules() {
  const list = useList("/alert-rules", { limit: 100 }, { poll: 15000 });
  const [editing, setEditing] = useState(null);
  const path = (one, more = "") => `/alert-rules/${encodeURIComponent(one.name)}${more}`;
  const test = (one) => ({ title: "Test", path: path(one, "/test"), cli: ["alerts", "test", one.name], done: tried });
  const pause = (one) => {
    const go = { title: "Resume", path: path(one, "/resume"), cli: ["alerts", "rules", "resume", one.name], done: `${one.name} is looked at again.`, after: list.top };
    return one.state === "paused" ? go : { title: "Pause", path: path(one, "/pause"), cli: ["alerts", "rules", "pause", one.name], done: `${one.name} is paused; its alerts are over.`, undo: go, after: list.top };
  };
  const remove = (one) => ({ title: "Remove", method: "DELETE", path: path(one), cli: ["alerts", "rules", "delete", one.name], done: `${one.name} is gone.`, after: list.top, confirm: { title: `Remove the rule ${one.name}?`, body: "Its alerts end, and nobody is told.", action: "Remove it", danger: true } });
  const columns = [
    { title: "rule", cell: (one) => html`<b>${one.name}</b>` },
    { title: "kind", cell: (one) => one.kind },
    { title: "about", className: "wide", cell: (one) => (one.definition.jobs ?? one.definition.queues ?? one.definition.workers ?? ["all"]).join(", ") },
    { title: "tells", cell: (one) => one.channels.join(", ") || html`<span class="soft">nobody</span>` },
    { title: "firing", className: "number", cell: (one) => number(one.firing) },
    { title: "state", cell: (one) => html`<${State} of=${one.state} />` },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setEditing(one)}>Edit …</button><${ActionButton} action=${test(one)} /><${ActionButton} action=${pause(one)} /><${ActionButton} action=${remove(one)} role="editor" /></span>` },
  ];
  return html`<div class="actions"><button type="button" class="primary" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setEditing({})}>New rule …</button></div>
    <${Table} what="rules" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${html`<${Empty} title="No rules yet.">A rule opens an alert per job, queue or worker while something is wrong with it.<//>`} />
    ${editing && html`<${EditRule} rule=${editing} onClose=${() => setEditing(null)} onDone=${() => { setEditing(null); list.top(); }} />`}`;
}

function Channels() {
  const list = useList("/alert-channels", { limit: 100 });
  const [editing, setEditing] = useState(null);
  const path = (one, more = "") => `/alert-channels/${encodeURIComponent(one.name)}${more}`;
  const test = (one) => ({ title: "Test", path: path(one, "/test"), cli: ["alerts", "channels", "test", one.name], done: tried });
  const remove = (one) => ({ title: "Remove", method: "DELETE", path: path(one), cli: ["alerts", "channels", "delete", one.name], done: `${one.name} is gone.`, after: list.top, confirm: { title: `Remove the channel ${one.name}?`, body: "It is refused while rules tell it.", action: "Remove it", danger: true } });
  const columns = [
    { title: "channel", cell: (one) => html`<b>${one.name}</b>` }, { title: "kind", cell: (one) => one.kind },
    { title: "leads to", className: "wide", cell: (one) => Object.entries(one.to).map(([name, value]) => `${name} ${[value].flat().join(", ")}`).join("; ") },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><button type="button" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setEditing(one)}>Edit …</button><${ActionButton} action=${test(one)} /><${ActionButton} action=${remove(one)} role="editor" /></span>` },
  ];
  return html`<div class="actions"><button type="button" class="primary" disabled=${!can("editor")} title=${needs("editor")} onClick=${() => setEditing({})}>New channel …</button></div>
    <${Ready} of=${list} what="channels">${() => html`<${Table} what="channels" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.name} empty=${html`<${Empty} title="No channels yet." command="horae alerts channels put ops --webhook https://example.com/alerts">A webhook, an e-mail, or anything that apprise reaches.<//>`} />`}<//>
    ${editing && html`<${EditChannel} channel=${editing} onClose=${() => setEditing(null)} onDone=${() => { setEditing(null); list.top(); }} />`}`;
}
