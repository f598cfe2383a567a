// Small charts over time (uPlot, brought when the first one is shown). Charts of one `sync` share their cursor.

import { html, useEffect, useRef } from "../core/html.js";
import { once } from "../core/bring.js";
import { day, shortClock } from "../core/format.js";
import { color, isDark } from "../core/prefs.js";

const load = once(() => import("../vendor/uplot.js").then((found) => found.default));

/**
 * series: [{label, tone, values, bars, fill}], at: instants (ISO) of the points. `say(value)` formats, `stacked` adds up.
 * A table of the same numbers is there for screen readers.
 */
export function Chart({ title, at, series, say = String, height = 120, sync, stacked = false, onRange }) {
  const place = useRef(null);
  const chart = useRef(null);
  const tones = series.map((one) => one.tone).join();
  const dark = isDark.value;
  const data = [at.map((one) => new Date(one) / 1000), ...stack(series.map((one) => one.values), stacked)];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    let watch;
    load().then((UPlot) => {
      if (gone || !place.current) return;
      chart.current = new UPlot(options(UPlot, { place: place.current, series, say, height, sync, stacked, onRange }), latest.current, place.current);
      watch = new ResizeObserver(() => place.current && chart.current?.setSize({ width: place.current.clientWidth, height }));
      watch.observe(place.current);
    });
    return () => { gone = true; watch?.disconnect(); chart.current?.destroy(); chart.current = null; };
  }, [tones, dark, height, stacked]);
  useEffect(() => { chart.current?.setData(data); });
  return html`<figure class="chart"><figcaption>${title}<span class="legend">${series.map((one) => html`<span key=${one.label}><i class="key bg-${one.tone}"></i>${one.label}</span>`)}</span></figcaption><div ref=${place} role="img" aria-label="${title}: ${words(series, say)}"></div></figure>`;
}

function stack(columns, stacked) {
  if (!stacked) return columns;
  const sums = [];
  let below = columns[0]?.map(() => 0) ?? [];
  for (const values of columns) sums.push((below = values.map((value, at) => (value ?? 0) + below[at])));
  return sums;
}

function words(series, say) {
  return series.map((one) => {
    const known = one.values.filter((value) => value !== null && value !== undefined);
    return `${one.label} ${known.length ? `${say(known.at(-1))} now, at most ${say(Math.max(...known))}` : "nothing"}`;
  }).join("; ");
}

const times = (ticks, span) => ticks.map((at) => (span > 3 * 86400 ? day : shortClock)(new Date(at * 1000).toISOString()));

/** The points that no line leads to or from: they would not be seen. */
function alone(chart, place, shown) {
  const values = chart.data[place];
  const known = (at) => values[at] !== null && values[at] !== undefined;
  return shown ? null : values.map((_, at) => at).filter((at) => known(at) && !known(at - 1) && !known(at + 1));
}

function options(UPlot, { place, series, say, height, sync, stacked, onRange }) {
  const ink = color("soft");
  const line = color("line");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 32 };
  const order = series.map((one) => ({
    label: one.label,
    stroke: color(one.tone),
    fill: one.fill || stacked ? `color-mix(in srgb, ${color(one.tone)} ${stacked ? 75 : 18}%, transparent)` : undefined,
    width: stacked ? 0 : 1.5,
    paths: one.bars ? UPlot.paths.bars({ size: [0.8] }) : undefined,
    points: { show: false, size: 4, filter: alone },
    spanGaps: false,
  }));
  return {
    width: place.clientWidth || 300, height, legend: { show: false },
    cursor: { sync: sync ? { key: sync } : undefined, drag: { x: Boolean(onRange), y: false }, points: { size: 6 } },
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [{ ...axis, size: 24, space: 80, values: (u, ticks) => times(ticks, u.scales.x.max - u.scales.x.min) }, { ...axis, size: 48, space: 28, values: (_, ticks) => ticks.map((value) => say(value)) }],
    series: [{}, ...order],
    bands: stacked ? order.slice(1).map((_, at) => ({ series: [at + 2, at + 1] })) : undefined,
    hooks: onRange ? { setSelect: [(u) => { if (u.select.width > 4) onRange(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); }] } : {},
  };
}
