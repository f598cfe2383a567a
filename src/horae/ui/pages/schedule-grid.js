// A month by days and a week by hours. The arrows move between cells; missed fires stand out.

import { html, useRef } from "../core/html.js";
import { now as present } from "../core/clock.js";
import { link, route, setQuery } from "../core/route.js";
import { number } from "../core/format.js";
import { Glyph } from "../core/states.js";
import { clockOf, compact, dayOf, longDay, monthDay, plus, say, weekdays } from "./schedule-days.js";

/** In words, for who does not see the cell. */
export function told(one) {
  const parts = [
    one.fired && `${number(one.fired)} fired`, one.missed && `${number(one.missed)} missed`, one.skipped && `${number(one.skipped)} skipped`,
    (one.planned || one.more) && `${one.more ? "more than " : ""}${number(one.planned)} to come`,
  ].filter(Boolean);
  return parts.join(", ") || "nothing";
}

const share = (n, most) => (n ? Math.max(0.08, Math.sqrt(n / most)) : 0);
const mostOf = (items) => Math.max(...items.map((one) => Math.max(one.planned, one.fired)), 1);

// The arrows move between cells; only one of them is reached with Tab.
function useCells(across) {
  const box = useRef(null);
  const pressed = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    const cells = [...box.current.querySelectorAll("[data-cell]")];
    const at = cells.indexOf(document.activeElement);
    if (at < 0 || (!step && event.key !== "Home" && event.key !== "End")) return;
    const next = event.key === "Home" ? cells[0] : event.key === "End" ? cells.at(-1) : cells[at + step];
    next?.focus();
    event.preventDefault();
  };
  return { ref: box, onKeyDown: pressed };
}

const Fate = ({ state, n, word, tone }) => (n ? html`<span class="fate tone-${tone}"><${Glyph} of=${state} size="12" /><b>${compact(n)}</b> <span class="fate-word">${word}</span><span class="unseen">, </span></span>` : null);

export function Month({ data, day, today }) {
  const cells = useCells(7);
  const most = mostOf(data.items);
  const from = dayOf(data.items[0].at);
  return html`<div class="month" ...${cells} role="group" aria-label="The days of the month">
    ${weekdays(from).map((one) => html`<span key=${one} class="weekday soft small" aria-hidden="true">${one}</span>`)}
    ${data.items.map((one, n) => {
      const date = plus(from, n);
      const is = date === today ? "today" : "";
      return html`<a key=${one.at} data-cell class="cell ${is} ${date.slice(0, 7) === day.slice(0, 7) ? "" : "outside"} ${one.missed ? "missed" : ""}" tabindex=${date === day ? 0 : -1} href=${link("/schedule", { ...route.value.query, view: "day", at: date, hour: null })} aria-current=${is ? "date" : null}>
        <span class="unseen">${longDay(one.at)}: ${told(one) === "nothing" ? "nothing" : ""}</span><span class="date" aria-hidden="true">${monthDay(date)}</span>
        <span class="fates"><${Fate} state="success" tone="quiet" n=${one.fired} word="fired" /><${Fate} state="late" tone="retrying" n=${one.missed} word="missed" /><${Fate} state="skipped" tone="skipped" n=${one.skipped} word="skipped" />${(one.planned > 0 || one.more) && html`<span class="fate soft"><${Glyph} of="scheduled" size="12" /><b>${compact(one.planned)}${one.more ? "+" : ""}</b> <span class="fate-word">to come</span></span>`}</span>
        <span class="density" style=${{ width: `${100 * share(one.planned || one.fired, most)}%` }} data-is=${one.planned ? "coming" : "past"}></span>
      </a>`;
    })}</div>`;
}

export function Week({ data, from, today, hour }) {
  const cells = useCells(7);
  const most = mostOf(data.items);
  const days = Array.from({ length: 7 }, (_, n) => plus(from, n));
  const byDay = new Map(days.map((day) => [day, []]));
  for (const one of data.items) byDay.get(dayOf(one.at))?.push(one);
  const rows = Math.max(...[...byDay.values()].map((items) => items.length));
  const now = present();
  const current = data.items.findIndex((one) => +new Date(one.at) <= now && now < +new Date(one.until));
  const entered = (hour && data.items.find((one) => +new Date(one.at) <= +new Date(hour) && +new Date(hour) < +new Date(one.until))) ?? data.items[Math.max(0, current)];
  const cell = (one, place) => {
    if (!one) return html`<span key=${place} class="hour-cell"></span>`;
    const count = one.planned || one.fired;
    const written = count || one.more ? compact(count) + (one.more ? "+" : "") : "";
    const state = one.missed ? "missed" : one.planned ? "ahead" : "behind-now";
    return html`<button key=${one.at} type="button" data-cell class="hour-cell ${state} ${one === entered && hour ? "chosen" : ""} ${one === data.items[current] ? "now" : ""}" tabindex=${one === entered ? 0 : -1} style=${{ "--share": share(count, most) }} aria-label="${say(one.at, { weekday: "long", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })}: ${written && `${written}, `}${told(one)}" aria-pressed=${one === entered && hour ? "true" : "false"} title=${told(one)} onClick=${() => setQuery({ hour: one.at })}>
      ${one.missed > 0 && html`<${Glyph} of="late" size="12" /> `}${written}</button>`;
  };
  return html`<div class="week" ...${cells} role="group" aria-label="The hours of the week">
    <span></span>${days.map((day) => html`<a key=${day} class="weekday ${day === today ? "today" : ""}" href=${link("/schedule", { ...route.value.query, view: "day", at: day, hour: null })}>${say(`${day}T12:00:00Z`, { weekday: "short" })} <b>${monthDay(day)}</b></a>`)}
    ${Array.from({ length: rows }, (_, row) => {
      const first = [...byDay.values()].map((items) => items[row]).find(Boolean);
      return html`<span key=${`at${row}`} class="hour-name soft small" aria-hidden="true">${first ? clockOf(first.at) : ""}</span>${days.map((day, n) => cell(byDay.get(day)[row], `${row}-${n}`))}`;
    })}</div>`;
}
