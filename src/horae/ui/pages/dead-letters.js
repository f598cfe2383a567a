// Dead letters: what failed after its last try, grouped by error; retried or discarded by filter, with the number before.

import { html, useState } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { executionPath, jobPath, link, route } from "../core/route.js";
import { number, plural } from "../core/format.js";
import { act, ActionButton } from "../core/act.js";
import { can } from "../core/api.js";
import { Chips, Empty, Page, Panel, Progress, Ready, SearchBox, Tabs, Time } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Table } from "../parts/table.js";

const asked = () => {
  const { job, queue, errorType, reason, text, olderThan } = route.value.query;
  return Object.fromEntries(Object.entries({ job, queue, errorType, reason, text, olderThan }).filter(([, value]) => value));
};
const FLAGS = { job: "--job", queue: "--queue", errorType: "--error-type", reason: "--reason", text: "--text", olderThan: "--older-than" };
const flags = (filter) => (Object.keys(filter).length ? Object.entries(filter).flatMap(([name, value]) => [FLAGS[name], value]) : ["--all"]);

export default function DeadLetters() {
  const filter = asked();
  const groups = useData("/dlq/groups", filter, { live: ["execution"], wait: 3000 });
  const total = groups.data?.items.reduce((sum, one) => sum + one.count, 0) ?? 0;
  const jobs = [...new Set((groups.data?.items ?? []).map((one) => one.jobName))].sort();
  const errors = [...new Set((groups.data?.items ?? []).map((one) => one.errorType))].filter(Boolean).sort();
  const actions = total > 0 && html`<${Bulk} filter=${filter} count=${total} more=${!groups.data.complete} after=${groups.reload} />`;
  const tabs = [
    { id: "groups", title: "By error", count: groups.data ? number(groups.data.items.length) : undefined, show: () => html`<${Groups} groups=${groups} filter=${filter} />` },
    { id: "letters", title: "One by one", count: groups.data ? `${number(total)}${groups.data.complete ? "" : "+"}` : undefined, show: () => html`<${Letters} filter=${filter} after=${groups.reload} />` },
    { id: "replays", title: "Replays", show: () => html`<${Replays} />` },
  ];
  return html`<${Page} title="Dead letters" lead="Executions that failed after their last try. They stay here until somebody retries or discards them." actions=${actions}>
    <div class="chips"><${SearchBox} name="text" label="Search messages" /><${Chips} filters=${[
      { name: "job", label: "job", options: jobs.map((one) => [one]) }, { name: "errorType", label: "error", options: errors.map((one) => [one]) },
      { name: "olderThan", label: "older than", options: [["1h"], ["1d"], ["7d"], ["30d"]], all: "any" },
    ]} /></div><${Tabs} tabs=${tabs} />
  <//>`;
}

/** Retry or discard all that match: the number is said before. */
function Bulk({ filter, count, more, after, small = false }) {
  const [asking, setAsking] = useState(false);
  const said = `${number(count)}${more ? " and more" : ""}`;
  const these = count === 1 && !more ? "this one" : `these ${said}`;
  const discard = {
    title: small ? "Discard" : `Discard ${these}`, path: "/dlq/discard", body: { filter }, cli: ["dlq", "discard", ...flags(filter), "--yes"], after,
    confirm: { title: `Discard ${said}?`, body: "They leave this list and are not run again. Their history stays.", action: `Discard ${said}`, danger: true },
    done: (answer) => `${plural(answer.done ?? answer.matched, "dead letter")} discarded.`,
  };
  return html`<button type="button" class=${small ? "" : "primary"} disabled=${!can("operator")} onClick=${() => setAsking(true)}>${small ? "Retry …" : `Retry ${these} …`}</button><${ActionButton} action=${discard} />
    ${asking && html`<${Retry} filter=${filter} said=${said} onClose=${() => { setAsking(false); after(); }} />`}`;
}

function Retry({ filter, said, onClose }) {
  const [rate, setRate] = useState("10/1s");
  const [paced, setPaced] = useState(true);
  const action = {
    title: `Retry ${said}`, path: "/dlq/replays", body: { filter, ...(paced ? { rate } : {}) }, cli: ["dlq", "replay", ...flags(filter), ...(paced ? ["--rate", rate] : [])],
    done: (answer) => `${answer.total === null ? "Very many dead letters" : plural(answer.total, "dead letter")} run again${paced ? `, ${rate}` : ""}; it goes on by itself.`, after: onClose,
  };
  return html`<${Dialog} title=${said === "1" ? "Retry a dead letter" : `Retry ${said} dead letters`} onClose=${onClose}><p>Each runs again as a new execution with the same params. The servers go on with it by themselves.</p>
    <label class="line"><input type="checkbox" checked=${paced} onChange=${(event) => setPaced(event.target.checked)} /> at a pace</label>
    ${paced && html`<div class="field"><label for="rate">So many in a span</label><input id="rate" value=${rate} onInput=${(event) => setRate(event.target.value)} placeholder="10/1s" /></div>`}
    <div class="actions end"><${ActionButton} action=${action} kind="primary" disabled=${paced && !/^\d+\/\w+$/.test(rate)} /></div><//>`;
}

function Groups({ groups, filter }) {
  const columns = [
    { title: "error", cell: (one) => html`<b>${one.errorType || "failed"}</b>` },
    { title: "message", className: "cut wide", cell: (one) => html`<span title=${one.errorMessage}>${one.errorMessage}</span>` },
    { title: "job", cell: (one) => html`<a href=${link(jobPath(one.jobName))}>${one.jobName}</a>` },
    { title: "count", className: "number", cell: (one) => number(one.count) },
    { title: "last", cell: (one) => html`<${Time} at=${one.newestAt} ago />` },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><${Bulk} small filter=${{ ...filter, job: one.jobName, ...(one.errorType ? { errorType: one.errorType } : {}) }} count=${one.count} after=${groups.reload} /></span>` },
  ];
  const href = (one) => link("/dead-letters", { ...filter, tab: "letters", job: one.jobName, errorType: one.errorType });
  const empty = html`<${Empty} title=${Object.keys(filter).length ? "Nothing like that." : "No dead letters."}>What fails after its last try comes here and stays until it is retried or discarded.<//>`;
  return html`<${Ready} of=${groups} what="dead letters">${(data) => html`<${Table} what="errors" columns=${columns} rows=${data.items} keyOf=${(one) => `${one.jobId} ${one.errorType}`} href=${href} empty=${empty} />`}<//>`;
}

function Letters({ filter, after }) {
  const list = useList("/dlq", { ...filter, limit: 50 }, { live: ["execution"], wait: 3000 });
  const [chosen, setChosen] = useState(new Set());
  const done = () => { setChosen(new Set()); list.top(); after(); };
  const ids = [...chosen];
  const columns = [
    { title: "job", cell: (one) => one.execution.jobName },
    { title: "error", cell: (one) => one.execution.error?.type ?? one.execution.reason },
    { title: "message", className: "cut wide", cell: (one) => html`<span title=${one.execution.errorMessage}>${one.execution.errorMessage}</span>` },
    { title: "tries", className: "number", cell: (one) => number(one.execution.attempt) },
    { title: "ended", cell: (one) => html`<${Time} at=${one.execution.completedAt} ago />` },
  ];
  const retry = { title: `Retry ${ids.length}`, path: "/dlq/retry", body: { ids }, cli: ["dlq", "retry", ...ids], done: (answer) => `${plural(answer.items?.length ?? ids.length, "dead letter")} run again.`, after: done };
  const discard = { title: `Discard ${ids.length}`, path: "/dlq/discard", body: { ids }, cli: ["dlq", "discard", ...ids, "--yes"], done: `${plural(ids.length, "dead letter")} discarded.`, after: done, confirm: { title: `Discard ${plural(ids.length, "dead letter")}?`, body: "They leave this list and are not run again. Their history stays.", danger: true } };
  return html`${ids.length > 0 && html`<div class="actions"><${ActionButton} action=${retry} kind="primary" /><${ActionButton} action=${discard} /></div>`}
    <${Table} what="dead letters" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.execution.executionId} href=${(one) => link(executionPath(one.execution.executionId))} choose=${{ chosen, onChange: setChosen, of: (one) => one.execution.executionId }} empty=${html`<${Empty} title="No dead letters." />`} />`;
}

function Replays() {
  const list = useList("/dlq/replays", { limit: 20 }, { poll: 3000 });
  const change = (one, verb) => act({ title: verb, path: `/dlq/replays/${one.replayId}/${verb}`, cli: ["dlq", "replays", verb, one.replayId], done: `The replay was told to ${verb}.`, after: list.reload });
  const columns = [
    { title: "since", cell: (one) => html`<${Time} at=${one.createdAt} ago />` },
    { title: "state", cell: (one) => one.state },
    { title: "pace", cell: (one) => one.rate ?? "as fast as it goes" },
    { title: "done", className: "wide", cell: (one) => html`<${Progress} value=${one.total ? (100 * one.matched) / one.total : null} message="${number(one.retried)} run again${one.skipped ? `, ${number(one.skipped)} left out` : ""}" />` },
    { title: "", key: "actions", cell: (one) => (["running", "paused"].includes(one.state) ? html`<span class="actions nowrap"><button type="button" disabled=${!can("operator")} onClick=${() => change(one, one.state === "paused" ? "resume" : "pause")}>${one.state === "paused" ? "Resume" : "Pause"}</button><button type="button" disabled=${!can("operator")} onClick=${() => change(one, "cancel")}>Cancel</button></span>` : null) },
  ];
  return html`<${Panel}><${Table} what="replays" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.replayId} empty=${html`<p class="soft">Nothing is being run again.</p>`} /><//>`;
}
