// A day by hours, each with its minutes: where many fires meet in one minute, it is seen. An hour opens into its fires.

import { html, useEffect, useState } from "../core/html.js";
import { get } from "../core/api.js";
import { setQuery } from "../core/route.js";
import { number } from "../core/format.js";
import { Glyph } from "../core/states.js";
import { clockOf, compact } from "./schedule-days.js";
import { CROWD, Fires } from "./schedule-list.js";
import { told } from "./schedule-grid.js";

const MOST_PAGES = 8; // of a thousand fires: a busier day is shown by its hours alone

/** How many fires each minute has; null while they are read, and of a day that has too many. */
function useMinutes(data, job) {
  const [minutes, setMinutes] = useState(null);
  const [from, to] = [data.items[0].at, data.items.at(-1).until];
  const total = data.items.reduce((sum, one) => sum + one.fired + one.planned, 0);
  const few = total > 0 && total <= MOST_PAGES * 1000;
  useEffect(() => {
    setMinutes(null);
    if (!few) return undefined;
    const abort = new AbortController();
    const read = async () => {
      const counted = new Map();
      let cursor;
      for (let page = 0; page < MOST_PAGES && cursor !== null; page += 1) {
        const part = await get("/fires", { from, to, job, limit: 1000, cursor }, { signal: abort.signal });
        for (const one of part.items) {
          const minute = Math.floor(+new Date(one.dueAt ?? one.at) / 60_000);
          counted.set(minute, (counted.get(minute) ?? 0) + 1);
        }
        cursor = part.nextCursor;
      }
      setMinutes(counted);
    };
    read().catch(() => {});
    return () => abort.abort();
  }, [from, job, few]);
  return minutes;
}

export function Day({ data, job, hour }) {
  const minutes = useMinutes(data, job);
  const most = Math.max(...data.items.map((one) => one.fired + one.planned), 1);
  const peak = minutes ? Math.max(...minutes.values(), 1) : 1;
  const now = Date.now();
  return html`<ol class="day-hours bounded">${data.items.map((one) => {
    const open = hour && +new Date(hour) >= +new Date(one.at) && +new Date(hour) < +new Date(one.until);
    const current = +new Date(one.at) <= now && now < +new Date(one.until);
    const crowded = minutes ? crowdsOf(minutes, one) : 0;
    const empty = !one.fired && !one.planned && !one.missed && !one.skipped && !one.more;
    return html`<li key=${one.at} class="${open ? "open" : ""} ${current ? "now" : ""} ${one.missed ? "missed" : ""}">
      <button type="button" class="day-hour" aria-expanded=${open ? "true" : "false"} disabled=${empty} onClick=${() => setQuery({ hour: open ? null : one.at })} aria-label="${clockOf(one.at)}: ${told(one)}${crowded ? `, ${crowded} crowded minutes` : ""}">
        <span class="soft mono">${clockOf(one.at)}</span>
        ${minutes ? html`<${Minutes} minutes=${minutes} hour=${one} peak=${peak} now=${now} />` : html`<span class="day-bar"><span class="density" data-is=${one.planned ? "coming" : "past"} style=${{ width: `${(100 * (one.fired + one.planned)) / most}%` }}></span></span>`}
        <span class="day-words small">${empty ? "" : words(one)}${crowded > 0 && html` <span class="crowd">${number(crowded)} crowded</span>`}</span></button>
      ${open && html`<${Fires} from=${one.at} to=${one.until} job=${job} label="fires from ${clockOf(one.at)}" />`}</li>`;
  })}</ol>`;
}

function crowdsOf(minutes, hour) {
  const first = Math.floor(+new Date(hour.at) / 60_000);
  let count = 0;
  for (let n = 0; n < 60; n += 1) if ((minutes.get(first + n) ?? 0) >= CROWD) count += 1;
  return count;
}

const words = (one) => html`${one.fired > 0 && html`<span>${compact(one.fired)} fired</span>`}${one.failed > 0 && html` <span class="tone-failed"><${Glyph} of="failed" size="12" /> ${compact(one.failed)} failed</span>`}${one.missed > 0 && html` <span class="tone-retrying"><${Glyph} of="late" size="12" /> ${compact(one.missed)} missed</span>`}${one.skipped > 0 && html` <span class="soft">${compact(one.skipped)} skipped</span>`}${(one.planned > 0 || one.more) && html` <span class="soft">${compact(one.planned)}${one.more ? "+" : ""} to come</span>`}`;

/** Sixty ticks: the taller, the more fires in that minute; a crowded one is amber. */
function Minutes({ minutes, hour, peak, now }) {
  const first = Math.floor(+new Date(hour.at) / 60_000);
  const ticks = [];
  for (let n = 0; n < 60; n += 1) {
    const count = minutes.get(first + n);
    if (!count) continue;
    const tall = Math.max(3, 18 * Math.sqrt(count / peak));
    const tone = count >= CROWD ? "retrying" : (first + n) * 60_000 < now ? "quiet" : "accent";
    ticks.push(html`<rect key=${n} class="fill-${tone}" x=${n * 10 + 1} y=${20 - tall} width="7" height=${tall} />`);
  }
  return html`<svg class="minutes" viewBox="0 0 600 20" preserveAspectRatio="none" aria-hidden="true">${ticks}</svg>`;
}
