// The day dial: a ring of 24 hours with now at its top. Behind now the outcomes of the last 12 hours, ahead of it the density of coming fires.
// The same segments are drawn as a plain strip for those who prefer it, and where there is little room.

import { html, useRef } from "../core/html.js";
import { number, plural, shortClock } from "../core/format.js";

const DAY = 86400_000;
const SIZE = 320;
const MIDDLE = SIZE / 2;
const INNER = 92;
const OUTER = 138;
// From the ring outwards; what needs a person stands at the rim.
const OUTCOMES = [["success", "success"], ["skipped", "skipped"], ["cancelled", "quiet"], ["failed", "failed"]];
const LEAST = 3; // of what is there at all something is seen, however much else there is

/** What is drawn: one segment for each step, oldest first, clipped to the 24 hours around now. */
export function segmentsOf({ past = [], coming = [], step }, now) {
  const clip = (one, is) => {
    const from = Math.max(+new Date(one.at), is === "past" ? now - DAY / 2 : now);
    const to = Math.min(+new Date(one.at) + step * 1000, is === "past" ? now : now + DAY / 2);
    return { ...one, is, from, to, begin: one.at, end: new Date(+new Date(one.at) + step * 1000).toISOString() };
  };
  const total = (one) => OUTCOMES.reduce((sum, [name]) => sum + (one[name] ?? 0), 0);
  return [...past.map((one) => ({ ...clip(one, "past"), total: total(one) })), ...coming.map((one) => ({ ...clip(one, "coming"), total: one.fires ?? 0 }))].filter((one) => one.to > one.from);
}

/** In words: what a segment holds. */
export function told(segment) {
  const span = `${shortClock(segment.begin)} to ${shortClock(segment.end)}`;
  if (segment.is === "coming") return `${span}: ${segment.more ? "more than " : ""}${plural(segment.total, "fire")} to come`;
  const counts = OUTCOMES.filter(([name]) => segment[name]).map(([name]) => `${number(segment[name])} ${name}`);
  return `${span}: ${counts.join(", ") || "nothing ended"}`;
}

// Heights grow with the root of the count, so that 3 and 30,000 can stand side by side.
function layers(segment, most, room) {
  if (!segment.total) return [];
  const height = Math.max(LEAST + 1, room * Math.sqrt(segment.total / most));
  if (segment.is === "coming") return [["coming", 0, height]];
  const there = OUTCOMES.filter(([name]) => segment[name]);
  const spare = Math.max(0, height - LEAST * there.length);
  let below = 0;
  return there.map(([name, tone]) => {
    const tall = LEAST + spare * (segment[name] / segment.total);
    const layer = [tone, below, below + tall];
    below += tall;
    return layer;
  });
}

const point = (radius, turn) => `${(MIDDLE + radius * Math.sin(turn)).toFixed(1)} ${(MIDDLE - radius * Math.cos(turn)).toFixed(1)}`;
const turnOf = (at, now) => ((at - now) / DAY) * 2 * Math.PI;

function sector(inner, outer, from, to) {
  return `M${point(inner, from)}A${inner} ${inner} 0 0 1 ${point(inner, to)}L${point(outer, to)}A${outer} ${outer} 0 0 0 ${point(outer, from)}Z`;
}

/**
 * data: `timeline` of the overview, now: ms. `at` is the segment that is looked at (its `begin`), `onLook` is told when another one is,
 * `onChoose` when one is clicked or entered. `shape` is "dial" or "strip"; children stand in the middle of the ring.
 */
export function Dial({ data, now, at, onLook, onChoose, shape = "dial", chosen, children }) {
  const box = useRef(null);
  const segments = segmentsOf(data, now);
  const most = Math.max(...segments.map((one) => one.total), 1);
  const looked = Math.max(0, segments.findIndex((one) => one.begin === at && one.is === "past"), segments.findIndex((one) => one.begin === at));
  const pressed = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = step ? segments[(looked + step + segments.length) % segments.length] : event.key === "Home" ? segments[0] : event.key === "End" ? segments.at(-1) : null;
    if (next) { onLook(next); event.preventDefault(); box.current?.querySelector(`[data-at="${next.is}${next.begin}"]`)?.focus(); }
    if (event.key === "Enter" || event.key === " ") { onChoose(segments[looked]); event.preventDefault(); }
  };
  const hit = (segment, place, shape_) => ({
    "data-at": segment.is + segment.begin, class: `segment ${segment.begin === at ? "at" : ""} ${chosen === segment.begin ? "chosen" : ""}`, role: "button", tabindex: place === looked ? 0 : -1, "aria-label": told(segment),
    onMouseEnter: () => onLook(segment), onFocus: () => onLook(segment), onClick: () => onChoose(segment), ...shape_,
  });
  const draw = shape === "strip" ? strip : ring;
  return html`<div class="dial ${shape}" ref=${box} onKeyDown=${pressed} onMouseLeave=${() => onLook(null)}>${draw({ segments, most, now, hit })}${shape === "dial" && html`<div class="dial-middle" aria-live="off">${children}</div>`}</div>`;
}

const density = (segment, most) => 0.25 + 0.45 * Math.sqrt(segment.total / most);

function ring({ segments, most, now, hit }) {
  const gap = 0.008;
  return html`<svg viewBox="0 0 ${SIZE} ${SIZE}" role="group" aria-label="The day: the last 12 hours on the left, the next 12 on the right, now at the top">
    <circle class="dial-ring" cx=${MIDDLE} cy=${MIDDLE} r=${INNER - 3} /><circle class="dial-ring faint" cx=${MIDDLE} cy=${MIDDLE} r=${OUTER + 1} />
    ${hours(now).map((one) => html`<g key=${one.at} class="dial-hour"><path d="M${point(INNER - 3, one.turn)}L${point(INNER - (one.label ? 9 : 6), one.turn)}" />${one.label && html`<text x=${MIDDLE + (OUTER + 12) * Math.sin(one.turn)} y=${MIDDLE - (OUTER + 12) * Math.cos(one.turn) + 4} text-anchor="middle">${one.label}</text>`}</g>`)}
    ${segments.map((segment, place) => {
      const from = turnOf(segment.from, now) + gap;
      const to = Math.max(from + 0.01, turnOf(segment.to, now) - gap);
      return html`<g key=${segment.is + segment.begin} ...${hit(segment, place)}>
        <path class="hit" d=${sector(INNER - 2, OUTER + 4, from - gap, to + gap)} />
        ${layers(segment, most, OUTER - INNER).map(([tone, low, high]) => html`<path key=${tone} class=${tone === "coming" ? "fill-accent" : `fill-${tone}`} opacity=${tone === "coming" ? density(segment, most) : 1} d=${sector(INNER + low, INNER + high, from, to)} />`)}
      </g>`;
    })}
    <path class="dial-now" d="M${MIDDLE} ${MIDDLE - INNER + 10}V${MIDDLE - OUTER - 4}" /><text class="dial-word" x=${MIDDLE} y=${MIDDLE - OUTER - 8} text-anchor="middle">now</text>
  </svg>`;
}

// The whole hours of the ring; every third one has its number, unless "now" stands there.
function hours(now) {
  const first = Math.ceil((now - DAY / 2) / 3600_000) * 3600_000;
  return Array.from({ length: 24 }, (_, n) => {
    const at = first + n * 3600_000;
    const hour = new Date(at).getHours();
    const turn = turnOf(at, now);
    return { at, turn, label: hour % 3 === 0 && Math.abs(turn) > 0.2 ? String(hour).padStart(2, "0") : null };
  });
}

const little = matchMedia("(max-width: 640px)");

function strip({ segments, most, now, hit }) {
  const [wide, tall] = [little.matches ? 340 : 720, 64];
  const x = (at) => ((at - now + DAY / 2) / DAY) * wide;
  return html`<svg viewBox="0 0 ${wide} ${tall + 18}" role="group" aria-label="The day: the last 12 hours, now, the next 12 hours">
    <path class="dial-ring" d="M0 ${tall}H${wide}" />
    ${segments.map((segment, place) => {
      const [left, width] = [x(segment.from) + 1, Math.max(2, x(segment.to) - x(segment.from) - 2)];
      return html`<g key=${segment.is + segment.begin} ...${hit(segment, place)}><rect class="hit" x=${left - 1} y="0" width=${width + 2} height=${tall} />
        ${layers(segment, most, tall - 4).map(([tone, low, high]) => html`<rect key=${tone} class=${tone === "coming" ? "fill-accent" : `fill-${tone}`} opacity=${tone === "coming" ? density(segment, most) : 1} x=${left} y=${tall - high} width=${width} height=${high - low} />`)}</g>`;
    })}
    <path class="dial-now" d="M${wide / 2} 0V${tall + 4}" /><text class="dial-word" x=${wide / 2} y=${tall + 15} text-anchor="middle">now</text>
    ${hours(now).filter((one) => one.label && Math.abs(one.at - now) < DAY / 2 - 1800_000 && Math.abs(x(one.at) - wide / 2) > 28).map((one) => html`<text key=${one.at} x=${x(one.at)} y=${tall + 15} text-anchor="middle">${one.label}</text>`)}
  </svg>`;
}
