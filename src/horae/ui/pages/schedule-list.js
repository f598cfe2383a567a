// Fires one by one, gathered by their minute: what became of each, and where many meet.

import { html, useMemo } from "../core/html.js";
import { useData, useList } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { exact, number } from "../core/format.js";
import { look, shown as stateOf, State } from "../core/states.js";
import { Empty, Failure, Loading, Said } from "../parts/basics.js";
import { dayOf, exactClock, say } from "./schedule-days.js";

export const CROWD = 10; // fires of one minute that are worth a mark
const FATES = {
  planned: ["scheduled", "to come"], fired: ["success", "fired"], backfilled: ["success", "ran by a backfill"], coalesced: ["late", "missed, one ran for all"], "skipped-misfire": ["late", "missed"], moved: ["waiting", "moved"],
  "skipped-overlap": ["skipped", "skipped: the last one still ran"], "skipped-paused": ["paused", "skipped: paused"], "skipped-calendar": ["skipped", "skipped: its calendar was closed"], "skipped-unique": ["skipped", "skipped: not unique"], "skipped-quota": ["skipped", "skipped: no room"],
};
const MISSED = new Set(["coalesced", "skipped-misfire"]);

function minutesOf(items) {
  const groups = [];
  for (const one of items) {
    const minute = Math.floor(+new Date(one.dueAt ?? one.at) / 60_000) * 60_000;
    if (groups.at(-1)?.minute !== minute) groups.push({ minute, items: [] });
    groups.at(-1).items.push(one);
  }
  return groups;
}

/** The fires of [from, to), with a page more on demand; executions that they started tell how they ended. */
export function Fires({ from, to, job, fate, label }) {
  const list = useList("/fires", { from, to, job, disposition: fate, limit: 100 }, { live: ["job"], wait: 5000 });
  const started = list.items?.filter((one) => one.executionId) ?? [];
  const bounds = started.length ? { since: started[0].decidedAt ?? started[0].at, until: new Date(+new Date(started.at(-1).decidedAt ?? started.at(-1).at) + 60_000).toISOString() } : null;
  const executions = useData(bounds && "/executions", bounds && { ...bounds, since: new Date(+new Date(bounds.since) - 60_000).toISOString(), job, limit: 1000 }, { live: ["execution"], wait: 5000 });
  const ends = useMemo(() => new Map((executions.data?.items ?? []).map((one) => [one.executionId, stateOf(one)])), [executions.data]);
  if (!list.items || list.loading) return list.error ? html`<${Failure} error=${list.error} retry=${list.reload} />` : html`<${Loading} what="fires" />`;
  if (!list.items.length) return html`<${Empty} title="Nothing fires here.">What fires in this time stands here with what became of it.<//>`;
  let day = null;
  return html`<div class="fires" role="region" aria-label=${label} tabindex="0">${(list.data?.notes ?? []).map((note) => html`<p key=${note} class="notice"><${Said} text=${note} /></p>`)}
    ${minutesOf(list.items).map(({ minute, items }, place, all) => {
      const date = dayOf(minute);
      const head = date === day ? null : say(minute, { weekday: "long", day: "numeric", month: "long" });
      day = date;
      return html`${head && html`<h3 key=${`${date}-${place}`} class="fires-day">${head}</h3>`}<${Minute} key=${`${minute}-${place}`} items=${items} ends=${ends} cut=${Boolean(list.more) && place === all.length - 1} />`;
    })}
    ${list.more && html`<p class="more"><button type="button" onClick=${list.more}>Show more</button> <span class="soft small">${number(list.items.length)} so far</span></p>`}</div>`;
}

/** The fires of a minute; one that a page cuts off may have more of them. */
function Minute({ items, ends, cut }) {
  const crowded = items.length >= CROWD;
  return html`<section class="minute ${crowded ? "crowded" : ""}">${crowded && html`<p class="crowd small">${cut ? "more than " : ""}${number(items.length)} fires in one minute</p>`}<ul class="rows">${items.map((one) => html`<${Fire} key=${one.at + one.job + one.trigger + one.disposition} fire=${one} end=${ends.get(one.executionId)} />`)}</ul></section>`;
}

function Fire({ fire, end }) {
  const [glyph, word] = FATES[fire.disposition] ?? ["skipped", fire.disposition];
  const at = fire.dueAt ?? fire.until ?? fire.at;
  const state = end ?? glyph;
  const text = end ? look(end).word : word;
  const many = fire.count > 1 ? html` <span class="soft small">${number(fire.count)} fires since ${say(fire.at, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })}</span>` : null;
  return html`<li class=${MISSED.has(fire.disposition) ? "missed" : ""}><time class="mono" datetime=${at} title=${exact(at)}>${exactClock(at)}</time><a class="grow" href=${link(jobPath(fire.job))}>${fire.job}${fire.trigger !== "schedule" && html` <span class="soft small">${fire.trigger}</span>`}</a>${many}
    <span class="fire-fate" title=${fire.cause}>${fire.executionId ? html`<a href=${link(executionPath(fire.executionId))}><${State} of=${state}>${text}<//></a>` : html`<${State} of=${state}>${text}<//>`}</span></li>`;
}
