// Rows of spans along one time: tries of an execution, steps of a workflow. Live, windowed, and read by row.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../core/html.js";
import { useNow } from "../core/data.js";
import { duration, exact } from "../core/format.js";
import { Glyph, look } from "../core/states.js";

const ROW = 24;
const MOST = 320; // of its height, then it scrolls
const BEYOND = 6; // rows above and below what is seen
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];

/**
 * rows: [{key, label, state, note, title, critical, spans: [{from, to, state, words, ahead}]}]; a span without `to` goes on.
 * `selected` and `onSelect(key)` share a selection with others.
 */
export function Gantt({ rows, selected, onSelect, label, live = false }) {
  const now = useNow(live ? 1000 : 3600000);
  const [box, width] = useWidth();
  const [top, setTop] = useState(0);
  const body = useRef(null);
  const at = rows.findIndex((row) => row.key === selected);
  useEffect(() => {
    if (at < 0 || !body.current) return;
    const place = at * ROW;
    if (place < body.current.scrollTop || place + ROW > body.current.scrollTop + body.current.clientHeight) body.current.scrollTop = Math.max(0, place - 3 * ROW);
  }, [at]);
  const bounds = limits(rows, now);
  if (!bounds) return null;
  const names = Math.min(width * 0.34, 48 + 7 * Math.max(6, ...rows.map((row) => row.label.length)));
  const room = Math.max(80, width - names - 16);
  const x = (time) => ((time - bounds.from) / (bounds.to - bounds.from)) * (room - 6);
  const first = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const seen = rows.slice(first, Math.ceil((top + MOST) / ROW) + BEYOND);
  const Line = onSelect ? "button" : "div";
  return html`<div class="gantt" ref=${box} role="group" aria-label=${label}>
    <svg class="gantt-axis" aria-hidden="true" width=${room + names} height="18">${ticks(bounds, room).map((tick) => html`<g key=${tick.s} transform="translate(${names + x(tick.at)} 0)"><line y1="12" y2="18" /><text y="10" text-anchor=${tick.s ? "middle" : "start"}>${tick.s ? `+${duration(tick.s)}` : "0"}</text></g>`)}</svg>
    <div class="gantt-body" ref=${body} style=${{ maxHeight: `${MOST}px` }} tabindex=${rows.length * ROW > MOST ? 0 : null} onScroll=${(event) => setTop(event.target.scrollTop)}>
      <div class="gantt-rows" style=${{ height: `${rows.length * ROW}px` }}><div style=${{ transform: `translateY(${first * ROW}px)` }}>
        ${seen.map((row) => html`<${Line} key=${row.key} type=${onSelect ? "button" : null} class="gantt-row ${row.key === selected ? "selected" : ""} ${row.critical ? "critical" : ""}" aria-pressed=${onSelect ? String(row.key === selected) : null} title=${row.title ?? ""} onClick=${onSelect && (() => onSelect(row.key))}>
          <span class="gantt-name" style=${{ width: `${names}px` }}><${Glyph} of=${row.state} /><span class="cut">${row.label}</span><span class="unseen">${`, ${look(row.state).word}: ${told(row, now)}`}</span></span>
          <svg width=${room} height=${ROW} aria-hidden="true">${row.spans.map((span, place) => bar(span, place, x, now))}</svg></${Line}>`)}
      </div></div></div></div>`;
}

const ms = (iso) => new Date(iso).getTime();
const end = (span, now) => (span.to ? ms(span.to) : Math.max(now, ms(span.from)));
const told = (row, now) => row.spans.map((span) => `${span.words} ${duration((end(span, now) - ms(span.from)) / 1000)}`).join(", ") + (row.note ? `, ${row.note}` : "");

const THIN = new Set(["queued", "waiting", "retrying", "pending"]);

function bar(span, place, x, now) {
  const from = x(ms(span.from));
  const wide = Math.max(2, x(end(span, now)) - from);
  const thin = THIN.has(span.state);
  const length = (end(span, now) - ms(span.from)) / 1000;
  return html`<rect key=${place} class="fill-${look(span.state).tone} ${thin ? "faint" : ""} ${span.ahead ? "ahead" : ""} ${span.to ? "" : "open"}" x=${from} y=${thin ? 10 : 5} width=${wide} height=${thin ? 4 : 14} rx=${thin ? 2 : 3}><title>${`${span.words} ${duration(length)}\n${exact(span.from)}`}</title></rect>`;
}

function limits(rows, now) {
  let [from, to] = [Infinity, -Infinity];
  for (const row of rows) for (const span of row.spans) { from = Math.min(from, ms(span.from)); to = Math.max(to, end(span, now)); }
  return from === Infinity ? null : { from, to: Math.max(to, from + 1) };
}

function ticks({ from, to }, room) {
  const span = (to - from) / 1000;
  const step = STEPS.find((one) => span / one <= room / 80) ?? 604800 * Math.ceil(span / 604800 / (room / 80));
  const found = [];
  for (let s = 0; s <= span * 0.97; s += step) found.push({ s: Number(s.toFixed(3)), at: from + s * 1000 });
  return found;
}

/** The width of an element, as it is now. */
export function useWidth() {
  const [element, setElement] = useState(null);
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    if (!element) return undefined;
    const watch = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    watch.observe(element);
    return () => watch.disconnect();
  }, [element]);
  return [setElement, width];
}
