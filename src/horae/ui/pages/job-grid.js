// Executions as columns, their steps as rows, the newest at the right. Only the columns that are seen are there, so
// that ten thousand of them are as fast as ten; older ones are read when one scrolls to them.

import { html, useEffect, useRef, useState } from "../core/html.js";
import { get } from "../core/api.js";
import { useLive } from "../core/live.js";
import { executionPath, link } from "../core/route.js";
import { duration, exact, plural, when } from "../core/format.js";
import { look, State, STATES } from "../core/states.js";
import { Empty, Failure, Loading } from "../parts/basics.js";

const WIDE = 16; // px of a column
const CELL = 16;
const BARS = 48; // px of the tallest duration
const PAGE = 500;
const MOST_STEPS = 200;
const AROUND = 20; // columns beyond both edges
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
      const page = await get(path, { limit: PAGE });
      setPages((old) => merged(page, old));
      setError(null);
    } catch (problem) { setError(problem); }
  };
  useEffect(() => { head(); }, [path]);
  useLive(["execution", "step"], head, { wait: 3000 });
  const look_ = () => {
    const box = place.current;
    if (!box) return;
    const first = Math.floor(Math.abs(box.scrollLeft) / WIDE);
    setSeen({ first: Math.max(0, first - AROUND), last: first + Math.ceil(box.clientWidth / WIDE) + AROUND });
  };
  useEffect(() => {
    if (!place.current) return undefined;
    look_();
    const watch = new ResizeObserver(look_);
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [pages.items !== undefined]);
  useEffect(() => {
    if (!pages.cursor || reading.current || seen.last < pages.items.length) return;
    reading.current = true;
    get(path, { limit: PAGE, cursor: pages.cursor }).then((page) => setPages((old) => ({ items: [...old.items, ...page.items], steps: union(old.steps, page.steps), cursor: page.nextCursor })), setError).finally(() => { reading.current = false; });
  }, [seen, pages]);
  if (pages.items === undefined) return error ? html`<${Failure} error=${error} retry=${head} />` : html`<${Loading} what="the grid" />`;
  if (!pages.items.length) return html`<${Empty} title="It has not run yet." command=${`horae jobs trigger ${job.name} --follow`}>Each execution will be a column here${job.workflow ? ", each step a row" : ""}.<//>`;
  const steps = pages.steps.slice(0, MOST_STEPS);
  const height = BARS + 8 + steps.length * CELL;
  const longest = Math.max(...pages.items.map((one) => one.seconds ?? 0), 0.001);
  return html`<div class="panel"><div class="grid-legend">${LEGEND.map((one) => html`<${State} key=${one} of=${one} />`)}<span class="soft small">${plural(pages.items.length, "execution")}${pages.cursor ? " so far, older ones to the left" : ""}${longest > 0.001 ? `; the height says how long it took, at most ${duration(longest)}` : ""}</span></div>
    ${error && html`<${Failure} error=${error} retry=${head} />`}
    <div class="grid"><ol class="grid-steps" style=${{ paddingTop: `${BARS + 8}px` }}>${steps.map((step) => html`<li key=${step} title=${step}>${step}</li>`)}</ol>
      <div class="grid-scroll" dir="rtl" ref=${place} onScroll=${look_} tabindex="0" role="group" aria-label="executions, the newest at the right"><div class="grid-inner" style=${{ width: `${pages.items.length * WIDE}px`, height: `${height}px` }}>
        ${pages.items.slice(seen.first, seen.last).map((one, place_) => html`<${Column} key=${one.executionId} one=${one} steps=${steps} height=${height} longest=${longest} right=${(seen.first + place_) * WIDE} point=${setAt} />`)}
      </div></div></div>
    <p class="soft small grid-told" aria-hidden="true">${at ? `${look(at.status).word}, ${when(at.at)}, ${duration(at.seconds)}` : "Point at a column to read it, open it to see its steps and its log."}</p>
    ${pages.steps.length > MOST_STEPS && html`<p class="soft">The first ${MOST_STEPS} of ${pages.steps.length} steps are shown.</p>`}</div>`;
}

const union = (one, other) => [...new Set([...one, ...other])];

/** The newest page in front of what was read before. */
function merged(page, old) {
  const steps = union(page.steps, old.steps);
  if (!old.items) return { items: page.items, steps, cursor: page.nextCursor };
  const fresh = new Set(page.items.map((one) => one.executionId));
  const rest = old.items.filter((one) => !fresh.has(one.executionId));
  const met = rest.length < old.items.length || !old.items.length;
  return met ? { items: [...page.items, ...rest], steps, cursor: old.items.length > PAGE || old.cursor === null ? old.cursor : page.nextCursor } : { items: page.items, steps, cursor: page.nextCursor };
}

const said = (one) => `${look(one.status).word}${one.seconds === null || one.seconds === undefined ? "" : `, ${duration(one.seconds)}`}, ${exact(one.at)}`;

function Column({ one, steps, height, longest, right, point }) {
  const tall = Math.max(4, Math.round(BARS * Math.sqrt((one.seconds ?? 0) / longest)));
  return html`<a class="grid-column" style=${{ right: `${right}px` }} href=${link(executionPath(one.executionId))} aria-label=${said(one)} onPointerEnter=${() => point(one)} onFocus=${() => point(one)}>
    <svg width=${WIDE} height=${height} aria-hidden="true"><rect class="hit" x="0" y="0" width=${WIDE} height=${height} />
      <rect class="fill-${look(one.status).tone}" x="3" y=${BARS - tall} width=${WIDE - 6} height=${tall} rx="1"><title>${said(one)}</title></rect>
      ${steps.map((step, row) => html`<${Cell} key=${step} step=${step} state=${one.steps[step]} y=${BARS + 8 + row * CELL} />`)}</svg></a>`;
}

function Cell({ step, state, y }) {
  if (!state) return null;
  const { tone, word, glyph } = look(state);
  const told = html`<title>${`${step}: ${word}`}</title>`;
  if (tone === "failed") return html`<g transform="translate(2 ${y + 2})"><rect class="fill-failed" width="12" height="12" rx="2" /><path class="grid-cross" d=${glyph} transform="scale(0.75)" />${told}</g>`;
  if (state === "success" || state === "running") return html`<rect class="fill-${tone} ${state === "running" ? "pulse" : ""}" x="2" y=${y + 2} width="12" height="12" rx="2">${told}</rect>`;
  return html`<g class="tone-${(STATES[state] ?? { tone }).tone}" transform="translate(2 ${y + 2})"><path class="grid-glyph" d=${glyph} transform="scale(0.75)" />${told}</g>`;
}
