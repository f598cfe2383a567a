// Dead letters: what failed after its last try, grouped by error; retried or discarded by filter, with the number before.

import { html, useState } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { executionPath, jobPath, link, route } from "../core/route.js";
import { exact, number, plural } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { can } from "../core/api.js";
import { Chips, Empty, Page, Ready, SearchBox, Tabs, Time } from "../parts/basics.js";
import { confirm } from "../parts/dialog.js";
import { useSteady } from "../parts/steady.js";
import { Table } from "../parts/table.js";
import { Bulk, discardEach, GONE, named, retryEach } from "./dead-letters-bulk.js";
import { Replays } from "./dead-letters-replays.js";

const asked = () => {
  const { job, queue, errorType, reason, text, olderThan } = route.value.query;
  return Object.fromEntries(Object.entries({ job, queue, errorType, reason, text, olderThan }).filter(([, value]) => value));
};
// Those that were counted, and none that was made since: an id begins with when its execution was made.
const madeAt = (id) => parseInt(id.replaceAll("-", "").slice(0, 12), 16);
const counted = (filter, groups) => ({ ...filter, until: new Date(Math.max(...groups.map((one) => madeAt(one.newestId))) + 1).toISOString() });

export default function DeadLetters() {
  const filter = asked();
  const groups = useData("/dlq/groups", filter, { live: ["execution"], wait: 3000 });
  const total = groups.data?.items.reduce((sum, one) => sum + one.count, 0) ?? 0;
  const jobs = [...new Set((groups.data?.items ?? []).map((one) => one.jobName))].sort();
  const errors = [...new Set((groups.data?.items ?? []).map((one) => one.errorType))].filter(Boolean).sort();
  const actions = total > 0 && html`<${Bulk} filter=${counted(filter, groups.data.items)} count=${total} more=${!groups.data.complete} after=${groups.reload} />`;
  const tabs = [
    { id: "groups", title: "By error", count: groups.data ? number(groups.data.items.length) : undefined, show: () => html`<${Groups} groups=${groups} filter=${filter} />` },
    { id: "letters", title: "One by one", count: groups.data ? `${number(total)}${groups.data.complete ? "" : "+"}` : undefined, show: () => html`<${Letters} filter=${filter} after=${groups.reload} />` },
    { id: "replays", title: "Replays", show: () => html`<${Replays} />` },
  ];
  return html`<${Page} title="Dead letters" lead="Executions that failed after their last try. They stay here until somebody retries or discards them. A failed workflow is one letter, whatever failed of it." actions=${actions}>
    <div class="chips"><${SearchBox} name="text" label="Search messages" /><${Chips} filters=${[
      { name: "job", label: "job", options: jobs.map((one) => [one]) }, { name: "errorType", label: "error", options: errors.map((one) => [one]) },
      { name: "olderThan", label: "older than", options: [["1h"], ["1d"], ["7d"], ["30d"]], all: "any" },
    ]} /></div><${Tabs} tabs=${tabs} />
  <//>`;
}

function Groups({ groups, filter }) {
  const columns = [
    { title: "error", cell: (one) => html`<b>${one.errorType || "failed"}</b>` },
    { title: "message", className: "execution-what", cell: (one) => html`<span title=${one.errorMessage}>${one.errorMessage}</span>` },
    { title: "job", className: "execution-job", cell: (one) => html`<a title=${one.jobName} href=${link(jobPath(one.jobName))}>${one.jobName}</a>` },
    { title: "count", className: "number", cell: (one) => number(one.count) },
    { title: "first", className: "large-only", cell: (one) => html`<${Time} at=${one.oldestAt} ago />` },
    { title: "last", cell: (one) => html`<${Time} at=${one.newestAt} ago />` },
    { title: "trend", className: "large-only", cell: (one) => html`<${Spark} counts=${one.trend} from=${groups.data.from} to=${groups.data.to} />` },
    { title: "", key: "actions", cell: (one) => html`<span class="actions nowrap"><${Bulk} small filter=${counted({ ...filter, job: one.jobId, errorType: one.errorType }, [one])} count=${one.count} more=${!groups.data.complete} after=${groups.reload} /></span>` },
  ];
  const href = (one) => link("/dead-letters", { ...filter, tab: "letters", job: one.jobName, errorType: one.errorType });
  const empty = html`<${Empty} title=${Object.keys(filter).length ? "Nothing like that." : "No dead letters."}>What fails after its last try comes here and stays until it is retried or discarded.<//>`;
  return html`<${Ready} of=${groups} what="dead letters">${(data) => html`<${Table} what="errors" columns=${columns} rows=${data.items} keyOf=${(one) => `${one.jobId} ${one.errorType}`} href=${href} empty=${empty} />`}<//>`;
}

/** How many there were in each part of a time, all groups over the same. */
function Spark({ counts, from, to }) {
  const most = Math.max(1, ...counts);
  const said = `${counts.map((one) => number(one)).join(", ")} from ${exact(from)} to ${exact(to)}`;
  return html`<svg class="spark" width=${counts.length * 4} height="20" role="img" aria-label=${said}><title>${said}</title>${counts.map((one, at) => one > 0 && html`<rect key=${at} class="fill-failed" x=${at * 4} y=${18 - Math.max(2, (18 * one) / most)} width="3" height=${Math.max(2, (18 * one) / most)} />`)}<line x1="0" x2=${counts.length * 4} y1="19.5" y2="19.5" /></svg>`;
}

const idOf = (one) => one.execution.executionId;

function Letters({ filter, after }) {
  const [chosen, setChosen] = useState(new Set());
  const read = useList("/dlq", { ...filter, limit: 50 }, { live: ["execution"], wait: 3000 });
  const list = useSteady(read, JSON.stringify(filter), { keyOf: idOf, held: chosen.size > 0, what: "new dead letter" });
  const done = () => { setChosen(new Set()); list.top(); after(); };
  const ids = [...chosen];
  const columns = [
    { title: "job", className: "execution-job", cell: (one) => one.execution.jobName },
    { title: "error", cell: (one) => one.execution.error?.type ?? one.execution.reason },
    { title: "message", className: "execution-what", cell: (one) => html`<span title=${one.execution.errorMessage}>${one.steps.length > 0 && html`<b>${one.steps.map((step) => step.step).join(", ")}</b>: `}${one.execution.errorMessage}</span>` },
    { title: "tries", className: "number", cell: (one) => number(one.execution.attempt) },
    { title: "ended", cell: (one) => html`<${Time} at=${one.execution.completedAt} ago />` },
  ];
  const words = plural(ids.length, "dead letter");
  const retry = { ...named("retry", ids), title: `Retry ${ids.length}`, run: async (ns) => { if (await retryEach(ids, ns)) done(); } };
  const discard = { ...named("discard", ids), title: `Discard ${ids.length}`, run: async (ns) => { if ((await confirm({ title: `Discard ${words}?`, body: GONE, action: `Discard ${words}`, danger: true })) && (await discardEach(ids, ns))) done(); } };
  return html`${ids.length > 0 && html`<div class="actions"><${ActionButton} action=${retry} kind="primary" /><${ActionButton} action=${discard} /></div>`}
    <${Table} what="dead letters" columns=${columns} rows=${list.items} list=${list} keyOf=${idOf} href=${(one) => link(executionPath(idOf(one)))} choose=${can("operator") ? { chosen, onChange: setChosen, of: idOf } : undefined} empty=${html`<${Empty} title=${Object.keys(filter).length ? "Nothing like that." : "No dead letters."} />`} />`;
}
