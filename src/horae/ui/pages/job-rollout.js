// A rollout: shares of a job's new executions for other versions of it, side by side, to be promoted or given up.

import { html } from "../core/html.js";
import { has } from "../core/api.js";
import { useData } from "../core/data.js";
import { ActionButton } from "../core/act.js";
import { number } from "../core/format.js";
import { State } from "../core/states.js";
import { Panel, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "version", cell: (arm) => html`${arm.version}${arm.current ? html` <span class="tag">present</span>` : ""}` },
  { title: "share", className: "number", cell: (arm) => `${arm.share}%` },
  { title: "succeeded", className: "number", cell: (arm) => number(arm.succeeded) },
  { title: "failed", className: "number", cell: (arm) => number(arm.failed) },
  { title: "failure rate", className: "number", cell: (arm) => (arm.failureRate === null ? "–" : `${arm.failureRate}%`) },
  { title: "p50", className: "number", cell: (arm) => arm.p50 ?? "–" },
  { title: "p95", className: "number", cell: (arm) => arm.p95 ?? "–" },
];

/** A rollout that is on. */
export function Rollout({ job, reload }) {
  const rollout = useData(has("rollouts") ? `/jobs/${job.jobId}/rollout` : null, undefined, { live: ["rollout", "execution"], wait: 3000 });
  if (rollout.data?.state !== "on") return null;
  const { data } = rollout;
  const after = () => { rollout.reload(); reload(); };
  const headers = { "if-match": `"${job.version}"` };
  const promote = (version) => ({ title: `Promote version ${version}`, path: `/jobs/${job.jobId}/rollout/promote`, body: { version }, headers, cli: ["jobs", "rollout", "promote", job.name, "--version", version], done: `Version ${version} is the present one.`, after, confirm: { title: `Promote version ${version} of ${job.name}?`, body: "It becomes the present version, and the rollout ends." } });
  const abort = { title: "Give up", path: `/jobs/${job.jobId}/rollout/abort`, body: {}, headers, cli: ["jobs", "rollout", "abort", job.name], done: "All new executions run the present version.", after, confirm: { title: `Give up the rollout of ${job.name}?`, danger: true, body: "All new executions run the present version again." } };
  return html`<${Panel} title="Rollout" actions=${html`${data.versions.filter((arm) => !arm.current).map((arm) => html`<${ActionButton} key=${arm.version} role="editor" action=${promote(arm.version)} />`)}<${ActionButton} role="editor" action=${abort} />`}>
    <p><${State} of="running">under way<//> since <${Time} at=${data.since} />${data.abortAbove !== null && html`, given up by itself above ${data.abortAbove}% failures`}</p>
    <${Table} what="versions" columns=${COLUMNS} rows=${data.versions} keyOf=${(arm) => arm.version} /><//>`;
}
