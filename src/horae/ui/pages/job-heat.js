// A calendar of what a job did and will do: a square for each day, weeks as columns. Past days tell outcomes, coming
// ones how often it will fire.

import { html, useEffect, useRef } from "../core/html.js";
import { now } from "../core/clock.js";
import { useData } from "../core/data.js";
import { number, plural } from "../core/format.js";
import { link, route } from "../core/route.js";
import { Ready } from "../parts/basics.js";

const DAY = 86_400_000;
const PAST = 38 * 7;
const AHEAD = 12 * 7;
const SQUARE = 12;
const STEP = 14;
const LEFT = 32;
const TOP = 16;
const WEEKDAYS = ["Mon", "", "Wed", "", "Fri", "", "Sun"];
const MONTH = new Intl.DateTimeFormat(undefined, { month: "short", timeZone: "UTC" });
const LONG = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
const monday = (day) => (day.getUTCDay() + 6) % 7;

export function Heat({ job }) {
  const today = new Date(new Date(now()).toISOString().slice(0, 10));
  const from = new Date(today - (PAST + monday(today)) * DAY).toISOString();
  const to = new Date(+today + AHEAD * DAY).toISOString();
  const days = useData(`/jobs/${job.jobId}/days`, { from, to, timezone: zone() }, { live: ["job"], wait: 30000 });
  return html`<${Ready} of=${days} what="the calendar">${(data) => html`<${Calendar} days=${data.days} />`}<//>`;
}

/** How a day looks: its class and how strongly, from 1 (hardly) to 4. */
function shade(day, most) {
  const ended = day.success + day.failed + day.cancelled + day.skipped;
  const strength = (n) => Math.max(1, Math.ceil((4 * Math.log1p(n)) / Math.log1p(most)));
  if (day.failed) return ["failed", Math.max(2, Math.ceil((4 * day.failed) / Math.max(1, day.failed + day.success)))];
  if (day.success) return ["success", strength(day.success)];
  if (ended) return ["quiet", 1];
  return day.coming ? ["coming", strength(day.coming)] : ["none", 1];
}

function told(day) {
  const parts = ["success", "failed", "cancelled", "skipped"].filter((one) => day[one]).map((one) => `${number(day[one])} ${one}`);
  if (day.coming) parts.push(`${plural(day.coming, "fire")} to come`);
  return `${LONG.format(new Date(day.day))}: ${parts.join(", ") || "nothing"}`;
}

function Calendar({ days }) {
  const place = useRef(null);
  const first = new Date(days[0]?.day ?? now());
  const lead = monday(first);
  const date = new Date(now()).toLocaleDateString("sv-SE");
  const most = Math.max(1, ...days.map((day) => Math.max(day.success, day.coming)));
  const weeks = Math.ceil((days.length + lead) / 7);
  const today = days.findIndex((day) => day.day >= date);
  useEffect(() => { if (place.current) place.current.scrollLeft = LEFT + Math.floor((today + lead) / 7) * STEP - place.current.clientWidth * 0.75; }, [days.length]);
  const to = (day) => {
    const at = new Date(`${day.day}T00:00:00`);
    const end = new Date(at);
    end.setDate(end.getDate() + 1);
    return link(route.value.path, { ...route.value.query, tab: "executions", view: "list", since: at.toISOString(), until: end.toISOString() });
  };
  // Days are links of which Tab reaches the newest; the arrows go from one to the next.
  const pressed = (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const open = [...place.current.querySelectorAll("a")];
    const at = open.indexOf(document.activeElement);
    if (!step || at < 0) return;
    open[at + step]?.focus();
    event.preventDefault();
  };
  const isPast = (day) => day.day <= date && !["none", "coming"].includes(shade(day, most)[0]);
  const newest = days.findLast(isPast);
  const months = days.map((day, at) => [new Date(day.day), at]).filter(([day]) => day.getUTCDate() === 1);
  const total = (name) => days.reduce((sum, day) => sum + (day[name] ?? 0), 0);
  return html`<div class="heat" ref=${place} tabindex="0" role="region" aria-label="calendar" onKeyDown=${pressed}><svg width=${LEFT + weeks * STEP} height=${TOP + 7 * STEP} role="group" aria-label=${`${number(total("success"))} succeeded, ${number(total("failed"))} failed, ${number(total("coming"))} to come`}>
    ${months.map(([day, at]) => html`<text key=${at} class="heat-text" x=${LEFT + Math.floor((at + lead) / 7) * STEP} y="10">${MONTH.format(day)}</text>`)}
    ${WEEKDAYS.map((word, row) => word && html`<text key=${word} class="heat-text" x="0" y=${TOP + row * STEP + 10}>${word}</text>`)}
    ${days.map((day, at) => {
      const [kind, strength] = shade(day, most);
      const past = isPast(day);
      const square = html`<rect key=${day.day} class="heat-day heat-${kind} strength-${Math.min(4, strength)} ${day.day === date ? "heat-now" : ""} ${past ? "heat-open" : ""}" x=${LEFT + Math.floor((at + lead) / 7) * STEP} y=${TOP + ((at + lead) % 7) * STEP} width=${SQUARE} height=${SQUARE} rx="2"><title>${told(day)}</title></rect>`;
      return past ? html`<a key=${day.day} href=${to(day)} aria-label=${told(day)} tabindex=${day === newest ? 0 : -1}>${square}</a>` : square;
    })}</svg></div>
    <p class="heat-legend soft small"><span><svg width="12" height="12"><rect class="heat-success strength-3" width="12" height="12" rx="2" /></svg> all succeeded</span> <span><svg width="12" height="12"><rect class="heat-failed strength-3" width="12" height="12" rx="2" /></svg> some failed</span> <span><svg width="12" height="12"><rect class="heat-coming strength-3" x="0.5" y="0.5" width="11" height="11" rx="2" /></svg> to come</span></p>`;
}
