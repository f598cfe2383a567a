// A graph of steps, drawn left to right: live states, the running path alive, many alike as one, moved by mouse, touch and keys.

import { html, Component, useEffect, useMemo, useState } from "../core/html.js";
import { useNow } from "../core/data.js";
import { duration } from "../core/format.js";
import { reducedMotion } from "../core/prefs.js";
import { Glyph, look } from "../core/states.js";
import { Loading } from "./basics.js";
import { grouped } from "./graph-groups.js";
import { HIGH, placed, WIDE } from "./graph-layout.js";
import { useView } from "./graph-view.js";

const GOES_ON = new Set(["running", "waiting"]);
const RING = 2 * Math.PI * 11;

/** The state a step is shown in: one that asks somebody is told from one that waits for a time. */
export const stepState = (node) => (node.status === "waiting" && node.kind === "approval" ? "approval" : node.status === "held" ? "paused" : node.status);

/** nodes and edges as the API gives them; `critical` shows the path that was waited for; `opened`: groups shown step by step. */
export function StepGraph({ nodes, edges, selected, onSelect, critical = false, opened, label, tools }) {
  const shown = useMemo(() => grouped({ nodes, edges }, opened), [nodes, edges, opened]);
  const shape = shown.nodes.map((node) => node.step).join() + shown.edges.length;
  const [layout, setLayout] = useState(null);
  useEffect(() => {
    let current = true;
    placed(shown).then((found) => current && setLayout({ ...found, shape }));
    return () => { current = false; };
  }, [shape]);
  const at = shown.taken?.get(selected) ?? selected;
  const active = layout && (layout.places.get(at) ?? layout.places.get(shown.nodes.find((node) => node.status === "failed" || GOES_ON.has(node.status))?.step) ?? [...layout.places.values()][0]);
  const view = useView(layout, active);
  const [focused, setFocused] = useState(null);
  useEffect(() => { const place = layout?.places.get(at); if (place) view.reveal(place); }, [at, layout]);
  const ready = layout !== null && shown.nodes.every((node) => layout.places.has(node.step));
  const stop = focused && layout?.places.has(focused) ? focused : layout?.places.has(at) ? at : shown.nodes[0]?.step;
  const choose = (step) => { if (!view.moved.current) onSelect(step); };
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.target.closest?.("[data-step]")?.dataset.step;
    if (MOVES[event.key] && event.shiftKey) view.pan(...MOVES[event.key].map((one) => -80 * one));
    else if (MOVES[event.key]) {
      const next = step && beside(layout.places, step, MOVES[event.key]);
      if (next) { setFocused(next); view.reveal(layout.places.get(next)); requestAnimationFrame(() => view.frame.current?.querySelector(`[data-step="${CSS.escape(next)}"]`)?.focus({ preventScroll: true })); }
    } else if (event.key === "+" || event.key === "=") view.zoom(1.25);
    else if (event.key === "-") view.zoom(0.8);
    else if (event.key === "0") view.fit();
    else if ((event.key === "Enter" || event.key === " ") && step) onSelect(step);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const goesOn = shown.nodes.some((node) => GOES_ON.has(node.status));
  const now = useNow(goesOn ? 1000 : 3600000);
  const beat = reducedMotion ? 0 : -5 * (Math.round(now / 1000) % 2); // the running path moves once a second: what moves always costs always
  const alive = new Set(shown.nodes.filter((node) => node.status === "running").map((node) => node.step));
  const onPath = new Set(critical ? shown.nodes.filter((node) => node.critical).map((node) => node.step) : []);
  const high = layout ? Math.max(150, Math.min(layout.height + 48, 460)) : 150;
  return html`<div class="graph"><div class="graph-tools">${tools}<span class="graph-zoom"><button type="button" onClick=${() => view.zoom(1.25)} aria-label="larger">+</button><button type="button" onClick=${() => view.zoom(0.8)} aria-label="smaller">−</button><button type="button" onClick=${() => view.fit()}>fit</button></span></div>
    <div class="graph-box" ref=${view.frame} style=${{ height: `${high}px` }} onKeyDown=${pressed}>${!ready ? html`<${Loading} what="the graph" />` : html`<svg width="100%" height="100%" role="group" aria-label=${label}><g ref=${view.layer}>
      ${layout.phases.map((phase) => html`<g key=${phase.name} class="phase"><text x=${phase.x} y="10">${phase.first ? "" : PHASES[phase.name] ?? phase.name}</text>${!phase.first && html`<line x1=${phase.x - 32} x2=${phase.x - 32} y1="0" y2=${layout.height} />`}</g>`)}
      <g stroke-dashoffset=${beat}>${layout.paths.map((path) => html`<path key="${path.from}>${path.to}" class="edge ${alive.has(path.to) ? "alive" : ""} ${onPath.has(path.from) && onPath.has(path.to) ? "critical" : ""}" d=${path.d} />`)}</g>
      ${shown.nodes.map((node) => html`<${Node} key=${node.step} node=${node} place=${layout.places.get(node.step)} selected=${node.step === at} stop=${node.step === stop} critical=${onPath.has(node.step)} dim=${critical && !onPath.has(node.step)} words=${under(node, now)} choose=${choose} />`)}
    </g></svg>`}</div></div>`;
}

const PHASES = { undo: "undoing", onSuccess: "on success", onFailure: "on failure", finally: "finally" };
const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** The nearest step in a direction. */
function beside(places, from, [dx, dy]) {
  const here = places.get(from);
  let [best, least] = [null, Infinity];
  for (const [step, { x, y }] of places) {
    const [along, across] = dx ? [(x - here.x) * dx, Math.abs(y - here.y)] : [(y - here.y) * dy, Math.abs(x - here.x)];
    if (step !== from && along > 1 && along + 3 * across < least) [best, least] = [step, along + 3 * across];
  }
  return best;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Who agreed or did not, and why; in a word why nobody was asked.
const answer = (node) => node.error?.message || node.reason;

function under(node, now) {
  if (node.kind === "group") return `${node.items.total} steps`;
  const what = { job: "", approval: "", foreach: "", loop: node.run ? `run ${node.run}` : "loop" }[node.kind] ?? node.kind;
  if (node.kind === "approval" && node.endedAt && answer(node)) return answer(node);
  const took = !node.startedAt ? "" : node.endedAt ? duration(node.seconds) : duration(Math.max(0, Math.round((now - new Date(node.startedAt)) / 1000)));
  return [look(stepState(node)).word, took, what].filter(Boolean).join(" · ");
}

/** One step; drawn anew only when what it shows is another. */
class Node extends Component {
  shouldComponentUpdate(next) {
    const { node, ...rest } = this.props;
    return next.node.status !== node.status || next.node.items?.success !== node.items?.success || next.node.items?.failed !== node.items?.failed
      || Object.keys(rest).some((name) => name !== "choose" && next[name] !== rest[name]);
  }

  render({ node, place, selected, stop, critical, dim, words, choose }) {
    const state = stepState(node);
    const { word, tone } = look(state);
    const name = node.label ?? node.step;
    const items = node.items?.total > 1 ? node.items : null;
    const told = `${name}, ${word}${items ? `, ${items.success + items.failed} of ${items.total} done${items.failed ? `, ${items.failed} failed` : ""}` : ""}${node.kind === "group" ? ", a group of steps" : ""}${words && words !== word ? `: ${words}` : ""}`;
    return html`<g class="node tone-${tone} state-${state} ${selected ? "selected" : ""} ${critical ? "critical" : ""} ${dim ? "dim" : ""} ${node.kind === "group" || items ? "many" : ""}" data-step=${node.step} transform="translate(${place.x - WIDE / 2} ${place.y - HIGH / 2})" role="button" tabindex=${stop ? 0 : -1} aria-pressed=${selected ? "true" : "false"} onClick=${() => choose(node.step)}>
      ${(node.kind === "group" || items) && html`<rect class="behind" x="4" y="4" width=${WIDE} height=${HIGH} rx="6" />`}
      <rect class="card" width=${WIDE} height=${HIGH} rx="6" /><title>${told}</title>
      <g transform="translate(10 14)"><${Glyph} of=${state} /></g>
      <text class="name" x="34" y="19">${cut(name, items ? 15 : 20)}</text><text class="under" x="34" y="34">${cut(words, items ? 19 : 24)}</text>
      ${items && html`<g transform="translate(${WIDE - 22} ${HIGH / 2}) rotate(-90)"><circle class="ring" r="11" /><circle class="ring done" r="11" stroke-dasharray="${(RING * items.success) / items.total} ${RING}" /><circle class="ring bad" r="11" stroke-dasharray="${(RING * items.failed) / items.total} ${RING}" stroke-dashoffset=${(-RING * items.success) / items.total} /><text class="share" transform="rotate(90)" y="3">${Math.floor((100 * (items.success + items.failed)) / items.total)}</text></g>`}
    </g>`;
  }
}
