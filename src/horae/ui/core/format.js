// How numbers, spans and instants are said. Exact values belong into titles; see parts/basics.js.

import { now as current } from "./clock.js";

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

/** A span as people say it: "2m 14s", "3h 5m", "240 ms". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0) return "–" + duration(-seconds);
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return "<1 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const at = UNITS.findIndex(([, size]) => whole >= size);
  const [unit, size] = UNITS[at];
  const count = Math.floor(whole / size);
  const next = UNITS[at + 1];
  const rest = next ? Math.floor((whole - count * size) / next[1]) : 0;
  return rest ? `${count}${unit} ${rest}${next[0]}` : `${count}${unit}`;
}

export const seconds = (from, to) => (from && to ? (new Date(to) - new Date(from)) / 1000 : null);

/** How far an instant is from now: "4m ago", "in 3h". */
export function relative(at, now = current()) {
  if (!isInstant(at)) return at || "–";
  const away = (new Date(at) - now) / 1000;
  if (Math.abs(away) < 1) return "now";
  const span = duration(Math.abs(away) < 10 ? Math.round(Math.abs(away)) : Math.abs(away)).replace(".0 s", "s").replace(" s", "s");
  return away < 0 ? `${span} ago` : `in ${span}`;
}

const parts = (options) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...options });
const CLOCK = parts({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT = parts({ hour: "2-digit", minute: "2-digit" });
const DAY = parts({ weekday: "short", day: "numeric", month: "short" });
const FULL = parts({ weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

/** Whether it is an instant: what an address says may be anything, and is then shown as it stands. */
export const isInstant = (at) => Boolean(at) && !Number.isNaN(new Date(at).getTime());
const said = (form) => (at) => (isInstant(at) ? form.format(new Date(at)) : at || "–");

export const clock = said(CLOCK);
export const shortClock = said(SHORT);
export const day = said(DAY);

/** An instant in the viewer's zone: today only the time, otherwise the day as well. */
export function when(at) {
  if (!isInstant(at)) return at || "–";
  const then = new Date(at);
  return then.toDateString() === new Date(current()).toDateString() ? CLOCK.format(then) : `${DAY.format(then)} ${SHORT.format(then)}`;
}

/** An instant in full, in the viewer's zone, in UTC and, if told, in a job's zone. */
export function exact(at, zone) {
  if (!isInstant(at)) return "";
  const then = new Date(at);
  const lines = [FULL.format(then), then.toISOString()];
  if (zone && zone !== "UTC") lines.push(`${parts({ timeZone: zone, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(then)} ${zone}`);
  return lines.join("\n");
}

const ZONES = new Map();

/** An instant in another zone, short: "Mon 16 Nov 10:00". */
export function inZone(at, zone) {
  if (!isInstant(at)) return at || "–";
  if (!ZONES.has(zone)) ZONES.set(zone, parts({ timeZone: zone, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }));
  return ZONES.get(zone).format(new Date(at)).replaceAll(",", "");
}

export const number = (n) => (n === null || n === undefined ? "–" : n.toLocaleString());
export const percent = (share) => (share === null || share === undefined ? "–" : `${(share * 100).toFixed(share > 0.995 && share < 1 ? 2 : share < 0.1 ? 1 : 0)}%`);
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
/** An id as it can be told from others at a glance: some of its chance, and its place among those made together. */
export const shortId = (id) => (id?.length === 36 ? `${id.slice(19, 23)}-${id.slice(-8).replace(/^0+(?=.)/, "")}` : id);

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  let at = 0;
  while (n >= 1024 && at < 4) { n /= 1024; at += 1; }
  return `${n >= 10 || at === 0 ? Math.round(n) : n.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][at]}`;
}
