// A day by hours, each with its minutes: where many fires meet in one minute, it is seen. An hour opens into its fires.

import { html, useMemo } from "../core/html.js";
import { now as present } from "../core/clock.js";
import { useData } from "../core/data.js";
import { setQuery } from "../core/route.js";
import { number } from "../core/format.js";
import { Glyph } from "../core/states.js";
import { clockOf, compact, dayOf, zone } from "./schedule-days.js";
import { CROWD, Fires } from "./schedule-list.js";

const MINUTE = 60_000;
const OF_A_DAY = 1440;
const CROWDED = 3; // times as many as a minute of that day has on average

/** How many fires each minute has, which of them are crowded, and the fullest; null while they are read. */
function useMinutes(data, job) {
  const read = useData("/fires/counts", { from: dayOf(data.items[0].at), by: "minute", timezone: zone(), job }, { live: ["job"], wait: 5000, poll: 60000 });
  return useMemo(() => {
    if (!read.data || read.data.by !== "minute") return null;
    const of = new Map(read.data.items.map((one) => [Math.floor(+new Date(one.at) / MINUTE), one.fired + one.missed + one.skipped + one.planned]));
    const all = [...of.values()];
    const most = Math.max(...all, 0);
    return { of, most, crowd: Math.max(CROWD, (CROWDED * all.reduce((sum, n) => sum + n, 0)) / OF_A_DAY), fullest: [...of].find(([, n]) => n === most)?.[0] };
  }, [read.data]);
}

export function Day({ data, job, hour }) {
  const minutes = useMinutes(data, job);
  const most = Math.max(...data.items.map((one) => one.fired + one.planned), 1);
  const now = present();
  const fullest = minutes?.most > 1 ? minutes.fullest * MINUTE : null;
  return html`${fullest !== null && html`<p class="soft">Most at once: <button type="button" class="link" onClick=${() => setQuery({ hour: data.items.find((one) => +new Date(one.at) <= fullest && fullest < +new Date(one.until))?.at })}>${number(minutes.most)} in the minute of ${clockOf(fullest)}</button></p>`}<ol class="day-hours bounded">${data.items.map((one) => {
    const open = hour && +new Date(hour) >= +new Date(one.at) && +new Date(hour) < +new Date(one.until);
    const current = +new Date(one.at) <= now && now < +new Date(one.until);
    const crowded = minutes ? crowdsOf(minutes, one) : 0;
    const empty = !one.fired && !one.planned && !one.missed && !one.skipped && !one.more;
    return html`<li key=${one.at} class="${open ? "open" : ""} ${current ? "now" : ""} ${one.missed ? "missed" : ""}">
      <button type="button" class="day-hour" aria-expanded=${open ? "true" : "false"} disabled=${empty} title=${empty ? "Nothing fires in this hour." : ""} onClick=${() => setQuery({ hour: open ? null : one.at })}>
        <span class="soft mono">${clockOf(one.at)}<span class="unseen">: ${empty ? "nothing" : ""}</span></span>
        ${minutes ? html`<${Minutes} minutes=${minutes} hour=${one} now=${now} />` : html`<span class="day-bar"><span class="density" data-is=${one.planned ? "coming" : "past"} style=${{ width: `${(100 * (one.fired + one.planned)) / most}%` }}></span></span>`}
        <span class="day-words small">${empty ? "" : words(one)}${crowded > 0 && html` <span class="crowd">${number(crowded)} crowded<span class="unseen"> minutes</span></span>`}</span></button>
      ${open && html`<${Fires} from=${one.at} to=${one.until} job=${job} label="fires from ${clockOf(one.at)}" />`}</li>`;
  })}</ol>`;
}

function crowdsOf(minutes, hour) {
  const first = Math.floor(+new Date(hour.at) / MINUTE);
  let count = 0;
  for (let n = 0; n < 60; n += 1) if ((minutes.of.get(first + n) ?? 0) >= minutes.crowd) count += 1;
  return count;
}

const words = (one) => html`${one.fired > 0 && html`<span>${compact(one.fired)} fired</span>`}${one.missed > 0 && html` <span class="tone-retrying"><${Glyph} of="late" size="12" /> ${compact(one.missed)} missed</span>`}${one.skipped > 0 && html` <span class="soft">${compact(one.skipped)} skipped</span>`}${(one.planned > 0 || one.more) && html` <span class="soft">${compact(one.planned)}${one.more ? "+" : ""} to come</span>`}`;

/** Sixty ticks: the taller, the more fires in that minute; a crowded one is amber. */
function Minutes({ minutes, hour, now }) {
  const first = Math.floor(+new Date(hour.at) / MINUTE);
  const ticks = [];
  for (let n = 0; n < 60; n += 1) {
    const count = minutes.of.get(first + n);
    if (!count) continue;
    const tall = Math.max(3, 18 * Math.sqrt(count / minutes.most));
    const tone = count >= minutes.crowd ? "retrying" : (first + n) * MINUTE < now ? "quiet" : "accent";
    ticks.push(html`<rect key=${n} class="fill-${tone}" x=${n * 10 + 1} y=${20 - tall} width="7" height=${tall} />`);
  }
  return html`<svg class="minutes" viewBox="0 0 600 20" preserveAspectRatio="none" aria-hidden="true">${ticks}</svg>`;
}
