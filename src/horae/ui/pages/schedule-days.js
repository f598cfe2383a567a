// Days, hours and months as the schedule shows them: in the viewer's zone, or in UTC.

import { now } from "../core/clock.js";
import { route } from "../core/route.js";

export const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const known = new Map([[OWN, true], ["UTC", true]]);
function isZone(name) {
  if (!known.has(name)) { try { new Intl.DateTimeFormat("en", { timeZone: name }); known.set(name, true); } catch { known.set(name, false); } }
  return known.get(name);
}
/** The zone whose days and hours are shown: that in the address, if there is such a one, or the viewer's. */
export const zone = () => (route.value.query.zone && isZone(route.value.query.zone) ? route.value.query.zone : OWN);
/** Names of zones that have a text in them. */
export const zones = async (text) => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])].filter((one) => one.toLowerCase().includes(text.toLowerCase())).slice(0, 20);
export const VIEWS = ["month", "week", "day", "list"];

const formats = new Map();
export function say(at, options) {
  const key = zone() + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, { hourCycle: "h23", timeZone: zone(), ...options }));
  return formats.get(key).format(new Date(at));
}
export const clockOf = (at) => say(at, { hour: "2-digit", minute: "2-digit" });
export const exactClock = (at) => say(at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const longDay = (at) => say(at, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/** The day of an instant in the zone that is shown, as 2026-11-16. */
export function dayOf(at = now()) {
  const part = Object.fromEntries(new Intl.DateTimeFormat("en", { timeZone: zone(), year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(new Date(at)).map((one) => [one.type, one.value]));
  return `${part.year}-${part.month}-${part.day}`;
}

const noon = (day) => new Date(`${day}T12:00:00Z`);
export const plus = (day, days) => new Date(+noon(day) + days * 86400_000).toISOString().slice(0, 10);
const monday = (day) => plus(day, -((noon(day).getUTCDay() + 6) % 7));
const plain = (day, options) => new Intl.DateTimeFormat(undefined, { timeZone: "UTC", ...options }).format(noon(day));

/** The view in the address: which days it shows, what it is called, and the days before and after. */
export function span(view, day) {
  if (view === "month") {
    const first = `${day.slice(0, 7)}-01`;
    const before = plus(first, -1);
    const after = plus(`${plus(first, 31).slice(0, 7)}-01`, 0);
    return { from: monday(first), to: plus(monday(first), 41), title: plain(day, { month: "long", year: "numeric" }), before, after };
  }
  if (view === "week") {
    const from = monday(day);
    return { from, to: plus(from, 6), title: `${plain(from, { day: "numeric", month: "short" })} to ${plain(plus(from, 6), { day: "numeric", month: "short", year: "numeric" })}`, before: plus(day, -7), after: plus(day, 7) };
  }
  return { from: day, to: day, title: plain(day, { weekday: "long", day: "numeric", month: "long", year: "numeric" }), before: plus(day, -1), after: plus(day, 1) };
}

export const weekdays = (from) => Array.from({ length: 7 }, (_, n) => plain(plus(from, n), { weekday: "short" }));
export const monthDay = (day) => String(Number(day.slice(8)));
const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
export const compact = (n) => COMPACT.format(n);
