// What can be done with executions that were chosen from the list: those that go on are cancelled, failed ones tried again.

import { html, useState } from "../core/html.js";
import { chosenNamespace, curl, post, shell } from "../core/api.js";
import { toast } from "../core/act.js";
import { plural } from "../core/format.js";
import { confirm } from "../parts/dialog.js";
import { cut, inParts } from "../parts/many.js";
import { retryEach } from "./dead-letters-bulk.js";

const AT_ONCE = 4;
const MOST_NAMED = 8;
const goesOn = (one) => ["waiting", "queued", "running"].includes(one.status);
const isFailed = (one) => one.status === "failed" && !one.step; // a step runs again with its workflow

async function* cancelled(executions, failed, ns) {
  for (const part of cut(executions, AT_ONCE)) {
    const answers = await Promise.allSettled(part.map((one) => post(`/executions/${one.executionId}/cancel`, { reason: "" }, { ns })));
    const refused = answers.filter((one) => one.status === "rejected").map((one) => one.reason);
    failed.push(...refused);
    yield { done: part.length - refused.length, skipped: refused.length };
  }
}

async function cancelEach(executions, ns) {
  const failed = [];
  const { done, stopped } = await inParts({ title: `Cancelling ${plural(executions.length, "execution")}`, total: executions.length, parts: cancelled(executions, failed, ns) });
  const same = {
    command: executions.map((one) => shell(["horae", "executions", "cancel", one.executionId])).join(" && "),
    curl: executions.map((one) => curl("POST", `/executions/${one.executionId}/cancel`, { reason: "" })).join(" && "),
  };
  if (done) toast({ text: `${plural(done, "execution")} cancelled; what runs is asked to stop${stopped ? ". The others go on" : ""}.`, ...same });
  if (failed.length) toast({ error: true, text: `${plural(failed.length, "execution")} could not be cancelled: ${failed[0].detail ?? failed[0].message}`, remedy: failed[0].remedy });
}

const names = (executions) => {
  const counts = new Map();
  for (const { jobName } of executions) counts.set(jobName, (counts.get(jobName) ?? 0) + 1);
  const all = [...counts];
  return html`<ul>${all.slice(0, MOST_NAMED).map(([name, count]) => html`<li key=${name}>${name}${count > 1 ? ` × ${count}` : ""}</li>`)}${all.length > MOST_NAMED && html`<li class="soft">and ${plural(all.length - MOST_NAMED, "other job")}</li>`}</ul>`;
};

export function Chosen({ executions, clear, reload }) {
  const [busy, setBusy] = useState(false);
  const open = executions.filter(goesOn);
  const failed = executions.filter(isFailed);
  const during = (work) => async () => { setBusy(true); try { if (await work(chosenNamespace())) clear(); } finally { setBusy(false); reload(); } };
  const cancel = during(async (ns) => {
    const title = `Cancel ${plural(open.length, "execution")}`;
    if (!(await confirm({ title: `${title}?`, body: html`${names(open)}<p>What has not begun never runs; what runs is asked to stop, then made to.</p>`, action: title, danger: true }))) return false;
    await cancelEach(open, ns);
    return true;
  });
  const retry = during(async (ns) => {
    const title = `Retry ${plural(failed.length, "execution")}`;
    const body = html`${names(failed)}<p>Each runs again as a new execution with the same params; those that were retried or discarded are left out.</p>`;
    return (await confirm({ title: `${title}?`, body, action: title })) && retryEach(failed.map((one) => one.executionId), ns);
  });
  return html`<div class="chosen-bar" role="status"><strong>${plural(executions.length, "execution")} chosen</strong>
    <button type="button" disabled=${busy || !open.length} title=${open.length ? "" : "All of these have ended."} onClick=${cancel}>Cancel${open.length && open.length < executions.length ? ` ${open.length}` : ""}</button>
    <button type="button" disabled=${busy || !failed.length} title=${failed.length ? "" : "None of these failed."} onClick=${retry}>Retry${failed.length && failed.length < executions.length ? ` ${failed.length}` : ""}</button>
    <button type="button" class="link" onClick=${clear}>choose none</button></div>`;
}
