// The schedule: what fired and what will, across jobs, by month, week, day, or one by one.

import { html, useEffect, useRef } from "../core/html.js";
import { useData, useNow } from "../core/data.js";
import { useKeys } from "../core/keys.js";
import { link, route, setQuery } from "../core/route.js";
import { plural } from "../core/format.js";
import { copies, copy } from "../core/act.js";
import { Chips, Empty, Loading, Page, Panel, Ready, Said } from "../parts/basics.js";
import { Menu } from "../parts/dialog.js";
import { jobNames, TextChip } from "../parts/filters.js";
import { dayOf, OWN, say, span, VIEWS, zone, zones } from "./schedule-days.js";
import { Month, Week } from "./schedule-grid.js";
import { Day } from "./schedule-day.js";
import { Fires } from "./schedule-list.js";

const FATES = [["planned", "to come"], ["fired", "fired"], ["skipped-misfire", "missed"], ["skipped-overlap", "skipped: the last one still ran"], ["skipped-paused", "skipped: paused"]];

/** The commands that print what is shown. */
function scripts(view, shown, job, counts) {
  const { fate } = route.value.query;
  const at = route.value.query.at && counts;
  const of = job ? ["--job", job] : [];
  const days = { from: shown.from, to: shown.to, by: view === "month" ? "day" : "hour", timezone: zone(), job };
  const what = fate === "planned" ? ["--next"] : fate ? ["--disposition", fate] : [];
  const when = at ? ["--from", counts.items[0].at, "--to", counts.items.at(-1).until] : [];
  const same = view === "list"
    ? copies({ method: "GET", path: "/fires", params: { job, disposition: fate, ...(at ? { from: when[1], to: when[3] } : {}) }, cli: ["fires", "list", ...what, ...when, ...of] })
    : copies({ method: "GET", path: "/fires/counts", params: days, cli: ["fires", "count", "--from", days.from, "--to", days.to, "--by", days.by, "--timezone", days.timezone, ...of] });
  const next = copies({ method: "GET", path: "/fires", params: { disposition: "planned", job }, cli: ["fires", "list", "--next", ...of] });
  return [
    { title: "copy as command", run: () => copy(same.command, "The command") }, { title: "copy as curl", run: () => copy(same.curl, "The curl command") },
    { title: "copy the command for the next fires", run: () => copy(next.command, "The command") },
  ];
}

/** What the address says: the view, its day, the job, and the hour whose fires are listed. */
function asked() {
  const { view, at, job, hour } = route.value.query;
  const known = VIEWS.includes(view) ? view : "week";
  const day = /^\d{4}-\d\d-\d\d$/.test(at ?? "") ? at : at && !Number.isNaN(+new Date(at)) ? dayOf(at) : dayOf();
  const begun = hour ?? (known === "day" && at && at.length > 10 ? at : null);
  return { view: known, day, job, hour: begun && !Number.isNaN(+new Date(begun)) ? new Date(begun).toISOString() : null };
}

export default function Schedule() {
  const { view, day, job, hour } = asked();
  const shown = span(view, day);
  const today = dayOf();
  const to = (at) => setQuery({ at: at === today ? null : at, hour: null });
  useKeys({ "[": () => to(shown.before), "]": () => to(shown.after), t: () => to(today), ...Object.fromEntries(VIEWS.map((one, n) => [String(n + 1), () => setQuery({ view: one, hour: null })])) });
  const by = view === "month" ? "day" : "hour";
  const counts = useData("/fires/counts", { from: shown.from, to: shown.to, by, timezone: zone(), job }, { live: ["job"], wait: 5000, poll: 60000 });
  const fits = (data) => data.by === by && dayOf(data.items[0].at) === shown.from && dayOf(data.items.at(-1).at) === shown.to; // not that of the view before
  const actions = html`<div class="segmented" role="group" aria-label="View">${VIEWS.map((one) => html`<button key=${one} type="button" aria-pressed=${one === view ? "true" : "false"} onClick=${() => setQuery({ view: one === "week" ? null : one, hour: null })}>${one}</button>`)}</div>`;
  return html`<${Page} title="Schedule" lead=${html`<${Lead} counts=${counts.data} title=${shown.title} month=${view === "month" ? day.slice(0, 7) : null} />`} actions=${actions}>
    <div class="chips schedule-bar"><span class="segmented"><button type="button" aria-label="before: ${shown.before}" title="before ( [ )" onClick=${() => to(shown.before)}>‹</button><button type="button" title="today ( t )" onClick=${() => to(today)}>today</button><button type="button" aria-label="after: ${shown.after}" title="after ( ] )" onClick=${() => to(shown.after)}>›</button></span>
      <input type="date" aria-label="Go to a day" value=${day} onChange=${(event) => event.target.value && to(event.target.value)} />
      <${TextChip} name="job" label="job" placeholder="all" suggest=${jobNames} />
      <${TextChip} name="zone" label="time zone" placeholder=${OWN} suggest=${zones} />
      ${view === "list" && html`<${Chips} filters=${[{ name: "fate", label: "what became of it", options: FATES, all: "anything" }]} />`}
      <${Menu} label="Script" title="the same by script" items=${scripts(view, shown, job, counts.data)} /></div>
    ${route.value.query.zone && zone() !== route.value.query.zone && html`<p class="notice">There is no time zone ${route.value.query.zone}; these are the days of ${OWN}.</p>`}
    <${Ready} of=${counts} what="the schedule">${(data) => (!fits(data) ? html`<${Loading} what="the schedule" />` : html`${data.notes.map((note) => html`<p key=${note} class="notice"><${Said} text=${note} /></p>`)}
      ${!counts.loading && view !== "list" && !anything(data) && html`<${Nothing} job=${job} />`}
      ${view === "month" && anything(data) && html`<${Month} data=${data} day=${day} today=${today} />`}
      ${view === "week" && anything(data) && html`<${Week} data=${data} from=${shown.from} today=${today} hour=${hour} />`}
      ${view === "day" && anything(data) && html`<${Day} data=${data} job=${job} hour=${hour} />`}`)}<//>
    ${view === "list" && counts.data && fits(counts.data) && html`<${List} counts=${counts.data} job=${job} title=${shown.title} />`}
    ${view === "week" && hour && html`<${Hour} hour=${hour} job=${job} />`}
  <//>`;
}

const anything = (data) => data.items.some((one) => one.fired || one.missed || one.skipped || one.planned || one.more);

const Nothing = ({ job }) => html`<${Empty} title="Nothing fires here${job ? `, of ${job}` : ""}." command=${job ? `horae explain ${job}` : "horae jobs create hello --command 'echo hello' --every 1m"}>Jobs with a schedule stand here: what became of their fires, and those that are to come.<//>`;

/** One by one: of the day in the address, or from an hour ago to a day ahead. */
function List({ counts, job, title }) {
  const minute = Math.floor(useNow(60000) / 60000) * 60000;
  const { fate } = route.value.query;
  const near = fate === "planned" ? { from: new Date(minute).toISOString(), title: "The next ones" } : { from: new Date(minute - 3600_000).toISOString(), to: new Date(minute + 86400_000).toISOString(), title: "From an hour ago to a day ahead" };
  const { from, to, title: words } = route.value.query.at ? { from: counts.items[0].at, to: counts.items.at(-1).until, title } : near;
  return html`<${Panel} title=${words}><${Fires} key=${fate} from=${from} to=${to} job=${job} fate=${fate} label="fires" /><//>`;
}

/** The fires of an hour, behind a cell of the week. */
function Hour({ hour, job }) {
  const box = useRef(null);
  useEffect(() => { box.current?.scrollIntoView({ block: "nearest" }); }, [hour]);
  const until = new Date(+new Date(hour) + 3600_000).toISOString();
  const title = `${say(hour, { weekday: "long", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })}`;
  return html`<div ref=${box} class="bounded"><${Panel} title=${title} actions=${html`<a class="small" href=${link("/schedule", { ...route.value.query, view: "day", at: hour, hour: null })}>the whole day</a> <button type="button" class="link" onClick=${() => setQuery({ hour: null })}>close</button>`}><${Fires} from=${hour} to=${until} job=${job} label="fires of this hour" /><//></div>`;
}

function Lead({ counts, title, month }) {
  const items = (counts?.items ?? []).filter((one) => !month || dayOf(one.at).startsWith(month));
  const sum = (name) => items.reduce((total, one) => total + one[name], 0);
  const more = items.some((one) => one.more);
  const parts = counts ? [sum("fired") && `${plural(sum("fired"), "fire")} so far`, sum("missed") && `${sum("missed")} missed`, sum("planned") && `${more ? "more than " : ""}${sum("planned").toLocaleString()} to come`].filter(Boolean) : [];
  return html`${title}${parts.length > 0 && html`<span> · ${parts.join(", ")}</span>`}`;
}
