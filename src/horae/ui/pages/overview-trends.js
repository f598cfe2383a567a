// Lag, throughput and depth over the range: three small charts with one time axis. Dragging over one chooses a range.

import { html } from "../core/html.js";
import { setQuery } from "../core/route.js";
import { duration, number } from "../core/format.js";
import { Chart } from "../parts/chart.js";
import { Panel } from "../parts/basics.js";

const OUTCOMES = [["success", "success"], ["retried", "retrying"], ["skipped", "skipped"], ["cancelled", "quiet"], ["failed", "failed"]];
const rate = (n) => (n === 0 ? "0" : n < 1 ? n.toFixed(2) : n < 10 ? n.toFixed(1) : number(Math.round(n)));

export function Trends({ data }) {
  const series = data.series;
  const at = series.map((one) => one.at);
  const begun = series.findIndex((one) => one.queued !== null || one.success || one.failed || one.retried);
  const column = (name, scale = 1) => series.map((one) => (one[name] === null || one[name] === undefined ? null : one[name] * scale));
  // Where something happened and nothing was seen to stand in line, nothing did.
  const depth = series.map((one, n) => one.queued ?? (n >= begun ? 0 : null));
  const range = (from, to) => setQuery({ from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString(), range: null });
  const shared = { at, sync: "overview", height: 128, onRange: range };
  const shown = OUTCOMES.filter(([name]) => name === "success" || name === "failed" || series.some((one) => one[name]));
  return html`<${Panel} title="Trends" className="trends"><div class="columns">
    <${Chart} ...${shared} title="lag: from the nominal time to the fire" say=${duration} series=${[{ label: "most", tone: "retrying", values: column("lagMax") }, { label: "half below", tone: "accent", values: column("lagP50") }]} />
    <${Chart} ...${shared} title="ended per minute" say=${rate} stacked series=${shown.map(([name, tone]) => ({ label: name, tone, values: column(name, 60 / data.step) }))} />
    <${Chart} ...${shared} title="depth: queued" say=${number} series=${[{ label: "queued", tone: "running", fill: true, values: begun < 0 ? series.map(() => null) : depth }]} />
  </div><//>`;
}
