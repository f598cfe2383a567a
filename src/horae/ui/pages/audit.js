// The audit log: who did what to what, when, from where, before and after; and whether the chain holds.

import { html, useState } from "../core/html.js";
import { useList } from "../core/data.js";
import { get } from "../core/api.js";
import { now } from "../core/clock.js";
import { route } from "../core/route.js";
import { number } from "../core/format.js";
import { State } from "../core/states.js";
import { Chips, Copy, Empty, Facts, Json, Page, SearchBox, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Diff } from "../parts/diff.js";
import { Table } from "../parts/table.js";
import { toast } from "../core/act.js";

const SPANS = { "1h": 3600, "1d": 86400, "7d": 7 * 86400, "30d": 30 * 86400 };

// The bound stays the same while one looks, so that a page is asked for once.
const since = (span, at) => (Object.hasOwn(SPANS, span ?? "") ? new Date(at - SPANS[span] * 1000).toISOString() : undefined);

export default function Audit() {
  const [at] = useState(now());
  const { actor, target, action, span } = route.value.query;
  const list = useList("/audit/log", { limit: 50, actor, target, action, from: since(span, at) }, { poll: 15000 });
  const [shown, setShown] = useState(null);
  const actions = [...new Set((list.items ?? []).map((one) => one.action))].sort();
  const actors = [...new Map((list.items ?? []).map((one) => [one.actor, one.actorName || one.actor])).entries()];
  const columns = [
    { title: "when", cell: (one) => html`<${Time} at=${one.at} />` },
    { title: "who", cell: (one) => html`<span title=${one.actor}>${one.actorName || one.actor}</span>` },
    { title: "did", cell: (one) => html`<code>${one.action}</code>` },
    { title: "to", className: "cut wide", cell: (one) => one.target },
    { title: "from", cell: (one) => html`<code>${one.address}</code>` },
    { title: "outcome", cell: (one) => one.outcome },
    { title: "", key: "more", cell: (one) => html`<button type="button" class="link" onClick=${() => setShown(one)}>details</button>` },
  ];
  return html`<${Page} title="Audit log" lead="Who did what, before and after. Each row seals the one before it." actions=${html`<${Verify} />`}>
    <div class="chips"><${SearchBox} name="target" label="Search targets" /><${Chips} filters=${[
      { name: "action", label: "did", options: actions.map((one) => [one]) }, { name: "actor", label: "who", options: actors },
      { name: "span", label: "within", options: [["1h", "the last hour"], ["1d", "a day"], ["7d", "a week"], ["30d", "30 days"]], all: "all time" },
    ]} /></div>
    <${Table} what="the audit log" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.seq} empty=${html`<${Empty} title="Nothing like that was done." command="horae audit log list">What people and programs change is told here.<//>`} />
    ${shown && html`<${Row} row=${shown} onClose=${() => setShown(null)} />`}
  <//>`;
}

function Row({ row, onClose }) {
  const { before, after, ...rest } = row.detail ?? {};
  return html`<${Dialog} wide title="Row ${number(row.seq)}: ${row.action}" onClose=${onClose}><${Facts} facts=${[
    ["when", html`<${Time} at=${row.at} />`], ["who", `${row.actorName} (${row.actor})`], ["from", row.address], ["to", row.target], ["outcome", row.outcome],
    ["seal", html`<code>${row.hash.slice(0, 16)}…</code> <${Copy} text=${row.hash} />`], Object.keys(rest).length > 0 && ["more", html`<${Json} value=${rest} />`],
  ]} />${(before !== undefined || after !== undefined) && html`<h3>What changed</h3><${Diff} before=${before ?? ""} after=${after ?? ""} />`}<//>`;
}

function Verify() {
  const [busy, setBusy] = useState(false);
  const [verdict, setVerdict] = useState(null);
  const run = async () => {
    setBusy(true);
    try { setVerdict(await get("/audit/log/verdict")); } catch (error) { toast({ text: error.detail, remedy: error.remedy, error: true }); } finally { setBusy(false); }
  };
  return html`${verdict && (verdict.broken ? html`<${State} of="failed">${`broken at row ${verdict.broken.seq ?? ""}`}<//>` : html`<${State} of="success">${`${number(verdict.rows)} rows hold${verdict.signed ? ", signed" : ""}`}<//>`)}<button type="button" disabled=${busy} onClick=${run}>${busy ? "Checking …" : "Check the chain"}</button>`;
}
