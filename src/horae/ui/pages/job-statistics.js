// How a job does over time: outcomes, how long it takes, and how that changed.

import { html } from "../core/html.js";
import { now } from "../core/clock.js";
import { useData } from "../core/data.js";
import { route, setQuery } from "../core/route.js";
import { duration, number, percent } from "../core/format.js";
import { Empty, Ready } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";

const HOUR = 3600;
const RANGES = { "24h": 24 * HOUR, "7d": 7 * 24 * HOUR, "30d": 30 * 24 * HOUR, "90d": 90 * 24 * HOUR };
const MINUTE = 60_000;

export function Statistics({ job }) {
  const range = RANGES[route.value.query.range] ? route.value.query.range : "7d";
  const to = Math.ceil(now() / MINUTE) * MINUTE;
  const params = { from: new Date(to - RANGES[range] * 1000).toISOString(), to: new Date(to).toISOString() };
  const statistics = useData(`/jobs/${job.jobId}/statistics`, params, { live: ["execution"], wait: 10000 });
  return html`<div class="stack"><span class="switch" role="group" aria-label="range">${Object.keys(RANGES).map((one) => html`<button key=${one} type="button" aria-pressed=${one === range ? "true" : "false"} onClick=${() => setQuery({ range: one })}>${one}</button>`)}</span>
    <${Ready} of=${statistics} what="statistics">${(data) => html`<${Numbers} data=${data} />`}<//></div>`;
}

function Numbers({ data }) {
  if (!data.executions) return html`<${Empty} title="Nothing of it ended in this time.">Choose a longer one, or trigger it.<//>`;
  const at = data.series.map((one) => one.at);
  const of = (name) => data.series.map((one) => one[name] ?? null);
  const figure = (word, value, hint) => html`<div><dt>${word}</dt><dd>${value}</dd>${hint && html`<dd class="soft small">${hint}</dd>`}</div>`;
  return html`<dl class="figures">
      ${figure("executions", number(data.executions), `${number(data.failed)} failed, ${number(data.cancelled)} cancelled, ${number(data.skipped)} skipped`)}
      ${figure("success", percent(data.successRate))}
      ${figure("retries", percent(data.retryRate), `${number(data.retried)} tries again${data.lost ? `, ${number(data.lost)} lost` : ""}`)}
      ${figure("p50", duration(data.p50))}${figure("p95", duration(data.p95))}${figure("p99", duration(data.p99))}${figure("mean", duration(data.mean))}</dl>
    <div class="panel"><${Chart} title="outcomes" at=${at} stacked=${true} say=${(n) => number(Math.round(n * 100) / 100)} height=${160} sync="job" series=${[
      { label: "success", tone: "success", values: of("success"), bars: true },
      { label: "failed", tone: "failed", values: of("failed"), bars: true },
      { label: "cancelled", tone: "quiet", values: of("cancelled"), bars: true },
      { label: "skipped", tone: "skipped", values: of("skipped"), bars: true },
    ]} /></div>
    <div class="panel"><${Chart} title="duration" at=${at} say=${duration} height=${160} sync="job" series=${[{ label: "p50", tone: "running", values: of("p50") }, { label: "p95", tone: "retrying", values: of("p95") }]} /></div>`;
}
