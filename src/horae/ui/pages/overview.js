// The overview: is everything all right, what needs me, what comes next.

import { html, useState } from "../core/html.js";
import { has } from "../core/api.js";
import { useData, useNow } from "../core/data.js";
import { go, link, route, setQuery } from "../core/route.js";
import { number, plural, when } from "../core/format.js";
import { Glyph, look } from "../core/states.js";
import { Failure, Loading, Page, Panel } from "../parts/basics.js";
import { Dial, told } from "../parts/dial.js";
import { Needs } from "./overview-needs.js";
import { Trends } from "./overview-trends.js";
import { Behind, Coming, Queues, Running, Workers } from "./overview-lists.js";

const RANGES = { "1h": 3600, "6h": 6 * 3600, "24h": 86400, "7d": 7 * 86400 };
const WORDS = { "1h": "the last hour", "6h": "the last 6 hours", "24h": "the last day", "7d": "the last 7 days" };

/** The range in the address: ?from=&to=, or a span that ends now (?range=). */
function useRange() {
  const { range, from, to } = route.value.query;
  const now = useNow(30000);
  if (from) return { from, to, words: `${when(from)} to ${to ? when(to) : "now"}`, fixed: true };
  const name = Object.hasOwn(RANGES, range ?? "") ? range : "1h";
  return { name, whole: name === "1h", from: new Date(Math.floor(now / 60000) * 60000 - RANGES[name] * 1000).toISOString(), words: WORDS[name] };
}

export default function Overview() {
  const range = useRange();
  // The last hour is what the server tells unasked, as the frame's counters read it: one read serves both.
  const overview = useData(has("statistics") ? "/overview" : null, range.whole ? undefined : { from: range.from, to: range.to }, { live: ["execution", "worker", "hold"], wait: 3000, poll: 30000 });
  const data = overview.data;
  const lacks = !has("statistics");
  return html`<${Page} title="Overview" lead=${data && html`<${Summary} data=${data} words=${range.words} />`} actions=${html`<${Ranges} range=${range} />`}>
    ${overview.error && !lacks && overview.error.status !== 0 && html`<${Failure} error=${overview.error} retry=${overview.reload} />`}
    ${lacks && html`<p class="notice" role="status">This server keeps no statistics: the dial and the trends are left out.</p>`}
    <div class="overview-top" data-shape=${shapeOf()}>
      ${!lacks && html`<${Panel} className="dial-panel">${data ? html`<${Day} data=${data} chosen=${route.value.query.from} />` : html`<${Loading} what="the day" />`}<//>`}
      <div class="overview-right"><${Needs} since=${range.from} until=${range.to} words=${range.words} /><${Running} running=${data?.running} lacks=${lacks} counts=${data?.counts} /></div>
    </div>
    ${data && html`<${Trends} data=${data} />`}
    <div class="columns overview-low"><${Coming} /><${Queues} queues=${data?.queues} lacks=${lacks} /><${Workers} workers=${data?.workers} /></div>
  <//>`;
}

function Ranges({ range }) {
  const choose = (name) => setQuery({ range: name === "1h" ? null : name, from: null, to: null });
  return html`<div class="segmented" role="group" aria-label="Time range">${Object.keys(RANGES).map((name) => html`<button key=${name} type="button" aria-pressed=${range.name === name ? "true" : "false"} onClick=${() => choose(name)}>${name}</button>`)}</div>
    ${range.fixed && html`<span class="chip chosen"><span>${range.words}</span><button type="button" class="link" aria-label="leave this range" onClick=${() => choose("1h")}>×</button></span>`}`;
}

/** One sentence: how it went. */
function Summary({ data, words }) {
  const { success, failed, retried, lost } = data.ended;
  const parts = [
    `${number(success)} succeeded`, failed ? `${number(failed)} failed` : "none failed",
    retried ? `${number(retried)} retried` : null, lost ? `${plural(lost, "attempt")} lost with a worker` : null,
  ];
  return success + failed === 0 && !retried ? `Nothing ended in ${words}.` : `${parts.filter(Boolean).join(", ")} in ${words}.`;
}

const narrow = matchMedia("(max-width: 640px)");
const shapeOf = () => route.value.query.day ?? (narrow.matches ? "strip" : "dial");

function Day({ data, chosen }) {
  const now = useNow(15000);
  const [looked, setLooked] = useState(null);
  const shape = shapeOf();
  const choose = (segment) => {
    if (segment.is === "coming") go(link("/schedule", { view: "day", at: segment.begin }));
    else setQuery({ from: segment.begin, to: segment.end, range: null });
  };
  const other = shape === "dial" ? "strip" : "dial";
  const segment = looked ?? null;
  return html`<div class="day" data-shape=${shape}><header class="panel-head"><h2>The day</h2><button type="button" class="link small" onClick=${() => setQuery({ day: other })}>as a ${other}</button></header>
    <${Dial} data=${data.timeline} now=${now} at=${segment?.begin} chosen=${chosen} shape=${shape} onLook=${setLooked} onChoose=${choose}><${Middle} data=${data} /><//>
    <${Behind} segment=${segment} words=${segment && told(segment)} /></div>`;
}

/** What stands in the middle of the ring: the answer to the first question. */
function Middle({ data }) {
  const failed = data.timeline.past.reduce((sum, one) => sum + one.failed, 0);
  const { running, queued } = data.counts;
  const ended = data.timeline.past.some((one) => one.success || one.skipped || one.cancelled);
  const verdict = failed ? "failed" : ended ? "success" : "idle";
  return html`<a class="verdict tone-${look(verdict).tone}" href=${failed && has("dead_letters") ? link("/dead-letters") : link("/executions")}><${Glyph} of=${verdict} size="20" /><b>${failed ? number(failed) : ended ? "all well" : "quiet"}</b>${failed > 0 && html`<span>failed in 12h</span>`}</a>
    <span class="soft small">${number(running)} running</span><span class="soft small">${number(queued)} queued</span>`;
}
