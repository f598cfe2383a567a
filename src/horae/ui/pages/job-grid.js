// Executions as columns, their steps as rows, the newest at the right. Only the columns that are seen are there, so
// that ten thousand of them are as fast as ten; older ones are read when one scrolls to them.

import { Component, html, useEffect, useMemo, useRef, useState } from "../core/html.js";
import { get } from "../core/api.js";
import { useLive } from "../core/live.js";
import { executionPath, link } from "../core/route.js";
import { day, duration, exact, plural, when } from "../core/format.js";
import { look, State, STATES } from "../core/states.js";
import { Empty, Failure, Loading } from "../parts/basics.js";

const WIDE = 16; // px of a column
const CELL = 16;
const DAYS = 16; // px of the line that tells the days
const BARS = 48; // px of the tallest duration
const LABEL = 80; // px of a day's name
const PAGE = 500;
const FRESH = 100; // of the newest that are read again when something changed
const MOST_STEPS = 200;
const AROUND = 20; // columns beyond both edges
const TOGETHER = 10; // columns that come and go at once, so that most of scrolling draws nothing
const LEGEND = ["success", "failed", "running", "queued", "cancelled", "skipped"];

export function Grid({ job }) {
  const path = `/jobs/${job.jobId}/grid`;
  const [pages, setPages] = useState({ items: undefined, steps: [], cursor: null });
  const [error, setError] = useState(null);
  const [seen, setSeen] = useState({ first: 0, last: 100 });
  const [at, setAt] = useState(null); // the column that is pointed at
  const reading = useRef(false);
  const place = useRef(null);
  const head = async () => {
    try {
      const page = await get(path, { limit: pages.items ? FRESH : PAGE });
      setPages((old) => merged(page, old));
      setError(null);
    } catch (problem) { setError(problem); }
  };
  useEffect(() => { head(); }, [path]);
  useLive(["execution", "step"], head, { wait: 3000 });
  const measure = () => {
    const box = place.current;
    if (!box) return;
    const first = Math.floor(Math.abs(box.scrollLeft) / WIDE / TOGETHER) * TOGETHER;
    const next = { first: Math.max(0, first - AROUND), last: first + TOGETHER + Math.ceil(box.clientWidth / WIDE) + AROUND };
    setSeen((old) => (old.first === next.first && old.last === next.last ? old : next));
  };
  useEffect(() => {
    if (!place.current) return undefined;
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [pages.items !== undefined]);
  useEffect(() => {
    if (!pages.cursor || reading.current || seen.last < pages.items.length) return;
    reading.current = true;
    get(path, { limit: PAGE, cursor: pages.cursor }).then((page) => setPages((old) => ({ items: [...old.items, ...page.items], steps: union(old.steps, page.steps), cursor: page.nextCursor })), setError).finally(() => { reading.current = false; });
  }, [seen, pages]);
  const items = useMemo(() => byData(pages.items ?? []), [pages.items]);
  const longest = useMemo(() => (pages.items ?? []).reduce((most, one) => Math.max(most, one.seconds ?? 0), 0.001), [pages.items]);
  const days = useMemo(() => daysOf(items, seen), [items, seen]);
  if (pages.items === undefined) return error ? html`<${Failure} error=${error} retry=${head} />` : html`<${Loading} what="the grid" />`;
  if (!pages.items.length) return html`<${Empty} title="It has not run yet." command=${`horae jobs trigger ${job.name} --follow`}>Each execution will be a column here${job.workflow ? ", each step a row" : ""}.<//>`;
  const steps = pages.steps.slice(0, MOST_STEPS);
  const height = BARS + 8 + steps.length * CELL + DAYS;
  return html`<div class="panel"><div class="grid-legend">${LEGEND.map((one) => html`<${State} key=${one} of=${one} />`)}<span class="soft small">${plural(pages.items.length, "execution")}${pages.cursor ? " so far, older ones to the left" : ""}${longest > 0.001 ? `; the height says how long it took, at most ${duration(longest)}` : ""}</span></div>
    ${error && html`<${Failure} error=${error} retry=${head} />`}
    <div class="grid"><ol class="grid-steps" style=${{ paddingTop: `${BARS + 8}px` }}>${steps.map((step) => html`<li key=${step} title=${step}>${step}</li>`)}</ol>
      <div class="grid-scroll" dir="rtl" ref=${place} onScroll=${measure} tabindex="0" role="group" aria-label="executions, the newest at the right"><div class="grid-inner" style=${{ width: `${Math.max(pages.items.length * WIDE, LABEL)}px`, height: `${height}px` }}>
        ${days.map(([name, order]) => html`<span key=${order} class="grid-day ${order * WIDE < LABEL ? "at-end" : ""}" dir="ltr" style=${{ right: `${order * WIDE < LABEL ? 0 : order * WIDE}px` }}>${name}</span>`)}
        ${items.slice(seen.first, seen.last).map((one, order) => html`<${Column} key=${one.executionId} one=${one} steps=${steps} height=${height} longest=${longest} right=${(seen.first + order) * WIDE} point=${setAt} />`)}
      </div></div></div>
    <p class="soft small grid-told" aria-hidden="true">${at ? `${look(at.status).word}, ${at.interval ? `data of ${when(at.interval.start)}` : when(at.at)}, ${duration(at.seconds)}` : "Point at a column to read it, open it to see its steps and its log."}</p>
    ${pages.steps.length > MOST_STEPS && html`<p class="soft">The first ${MOST_STEPS} of ${pages.steps.length} steps are shown.</p>`}</div>`;
}

/** Where a day begins among the columns that are seen: its name, and its first column's place. */
function daysOf(items, { first, last }) {
  const found = [];
  for (let order = first; order < Math.min(last, items.length); order += 1) {
    const name = day(pointOf(items[order]));
    if (order + 1 === items.length || day(pointOf(items[order + 1])) !== name) found.push([name, order]);
  }
  return found;
}

/** Where a column stands: at the begin of the data that it is about, or else when it was due. */
const pointOf = (one) => one.interval?.start ?? one.at;
/** The latest data first; without intervals, and of the same data, in the order in which they ran. */
const byData = (items) => (items.some((one) => one.interval) ? [...items].sort((a, b) => new Date(pointOf(b)) - new Date(pointOf(a))) : items);

const union = (one, other) => [...new Set([...one, ...other])];

/** The newest page in front of what was read before; if the two do not meet, it begins anew. What is the same stays. */
function merged(page, old) {
  const known = new Map((old.items ?? []).map((one) => [one.executionId, one]));
  const items = page.items.map((one) => { const before = known.get(one.executionId); return before && JSON.stringify(before) === JSON.stringify(one) ? before : one; });
  if (!items.some((one) => known.has(one.executionId))) return { items, steps: page.steps, cursor: page.nextCursor };
  if (items.every((one, at) => one === old.items[at])) return old;
  const fresh = new Set(items.map((one) => one.executionId));
  return { items: [...items, ...old.items.filter((one) => !fresh.has(one.executionId))], steps: union(page.steps, old.steps), cursor: old.cursor };
}

const said = (one) => `${look(one.status).word}${one.seconds === null || one.seconds === undefined ? "" : `, ${duration(one.seconds)}`}, ${one.interval ? `data of ${exact(one.interval.start)}, due ` : ""}${exact(one.at)}`;

/** Drawn again only when something about it changed. */
class Column extends Component {
  shouldComponentUpdate(next) {
    const { props } = this;
    return props.one !== next.one || props.right !== next.right || props.height !== next.height || props.longest !== next.longest;
  }

  render({ one, steps, height, longest, right, point }) {
    const words = said(one);
    const tall = Math.max(4, Math.round(BARS * Math.sqrt((one.seconds ?? 0) / longest)));
    return html`<a class="grid-column" style=${{ right: `${right}px` }} href=${link(executionPath(one.executionId))} aria-label=${words} onPointerEnter=${() => point(one)} onFocus=${() => point(one)}>
      <svg width=${WIDE} height=${height} aria-hidden="true"><rect class="hit" x="0" y="0" width=${WIDE} height=${height} />
        <rect class="fill-${look(one.status).tone}" x="3" y=${BARS - tall} width=${WIDE - 6} height=${tall} rx="1"><title>${words}</title></rect>
        ${steps.map((step, row) => html`<${Cell} key=${step} step=${step} state=${one.steps[step]} y=${BARS + 8 + row * CELL} />`)}</svg></a>`;
  }
}

function Cell({ step, state, y }) {
  if (!state) return null;
  const { tone, word, glyph } = look(state);
  const told = html`<title>${`${step}: ${word}`}</title>`;
  if (tone === "failed") return html`<g transform="translate(2 ${y + 2})"><rect class="fill-failed" width="12" height="12" rx="2" /><path class="grid-cross" d=${glyph} transform="scale(0.75)" />${told}</g>`;
  if (state === "success" || state === "running") return html`<rect class="fill-${tone} ${state === "running" ? "pulse" : ""}" x="2" y=${y + 2} width="12" height="12" rx="2">${told}</rect>`;
  return html`<g class="tone-${(STATES[state] ?? { tone }).tone}" transform="translate(2 ${y + 2})"><path class="grid-glyph" d=${glyph} transform="scale(0.75)" />${told}</g>`;
}
