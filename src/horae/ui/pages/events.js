// Events: what came from elsewhere, what each fired and what not and why; who listens; and one can be sent.

import { html } from "../core/html.js";
import { can, needs } from "../core/api.js";
import { useData, useList } from "../core/data.js";
import { executionPath, jobPath, link, route, setQuery } from "../core/route.js";
import { plural, shortId } from "../core/format.js";
import { State } from "../core/states.js";
import { Copy, Empty, Facts, Json, Page, Panel, Tabs, Time } from "../parts/basics.js";
import { TextChip } from "../parts/filters.js";
import { Table } from "../parts/table.js";
import { SendDialog, useHeard } from "./events-send.js";

const SEND = "horae events send upload --payload '{\"key\": \"a.csv\"}'";
const LISTEN = "horae triggers add hello --event upload";

export default function Events() {
  const tabs = [{ id: "came", title: "What came", show: () => html`<${Came} />` }, { id: "listeners", title: "Who listens", show: () => html`<${Listeners} />` }];
  const send = html`<button type="button" class="primary" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setQuery({ do: "send" })}>Send an event …</button>`;
  return html`<${Page} title="Events" lead="What happens elsewhere, and the jobs that it starts." actions=${send}>
    <div><${Tabs} tabs=${tabs} /></div>
    ${route.value.query.do === "send" && html`<${SendDialog} name=${route.value.query.name} close=${() => setQuery({ do: null }, { replace: true })} />`}
  <//>`;
}

const keyOf = (one) => `${one.receivedAt} ${one.eventId}`;

function Came() {
  const { name, event } = route.value.query;
  const heard = useHeard();
  const list = useList("/events", { name }, { live: ["execution"], wait: 3000, poll: 15000 });
  const known = [...new Set([...heard.names, ...(list.items ?? []).map((one) => one.name)])].sort();
  const shown = (list.items ?? []).find((one) => keyOf(one) === event);
  const empty = name
    ? html`<${Empty} title="No event of the name ${name} came." command=${`horae events send ${name}`} action=${html`<button type="button" onClick=${() => setQuery({ name: null })}>Show all events</button>`}>${heard.names.includes(name) ? "Somebody listens to it, though." : "Nobody listens to it either."}<//>`
    : html`<${Empty} title="No event came yet." command=${SEND}>An event has a name and a payload. It comes by request, by a webhook, or is a new file in a watched place, and starts every job with a trigger that listens to its name.<//>`;
  return html`<div class="stack"><div class="chips"><${TextChip} name="name" label="name" suggest=${async (text) => known.filter((one) => one.includes(text))} /></div>
    ${event && html`<${One} event=${shown} reading=${list.items === undefined} />`}
    <${Table} what="events" columns=${COLUMNS} rows=${list.items} list=${list} keyOf=${keyOf} rowClass=${(one) => (keyOf(one) === event ? "chosen-row" : "")} href=${(one) => link("/events", { ...route.value.query, event: keyOf(one) })} empty=${empty} /></div>`;
}

const execution = (one) => html`<a href=${link(executionPath(one.executionId))}>${one.job}</a>`;
const SOME = 3;

function Fired({ of: fired }) {
  if (!fired.length) return html`<span class="soft">nothing</span>`;
  return html`${fired.slice(0, SOME).map((one, at) => html`${at > 0 && ", "}${execution(one)}`)}${fired.length > SOME && html` <span class="soft">and ${fired.length - SOME} more</span>`}`;
}

const COLUMNS = [
  { title: "came", className: "nowrap", cell: (one) => html`<${Time} at=${one.receivedAt} />` },
  { title: "name", className: "cut event-name", cell: (one) => html`<span title=${one.name}>${one.name}</span>` },
  { title: "by", className: "nowrap", cell: (one) => html`${one.source}${one.type && html` <span class="soft">${one.type}</span>`}` },
  { title: "started", cell: (one) => html`<${Fired} of=${one.fired} />` },
  { title: "not started", className: "cut middle", cell: (one) => (one.skipped.length ? html`<span title=${one.skipped.map((s) => `${s.job} (${s.trigger}): ${s.cause}`).join("\n")}>${one.skipped[0].job}: ${one.skipped[0].cause}${one.skipped.length > 1 ? `, and ${one.skipped.length - 1} more` : ""}</span>` : one.note && html`<span class="soft" title=${one.note}>${one.note}</span>`) },
  { title: "id", className: "cut event-id large", cell: (one) => html`<code title=${one.eventId}>${shortId(one.eventId)}</code>` },
];

/** One event with all that it said and came to. */
function One({ event: one, reading }) {
  const close = html`<button type="button" class="link" onClick=${() => setQuery({ event: null })}>close</button>`;
  if (!one) return reading ? null : html`<${Panel} title="That event" actions=${close}><p class="soft">It is not among those below: it is older, or was forgotten. “Show more” reads on.</p><//>`;
  const again = html`<button type="button" class="link" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setQuery({ do: "send", name: one.name })}>send one like it</button>`;
  return html`<${Panel} title=${one.name} actions=${html`${again}${close}`}><div class="columns definition"><div><${Facts} facts=${[
      ["came", html`<${Time} at=${one.receivedAt} /> <span class="soft"><${Time} at=${one.receivedAt} ago=${true} /></span>`], ["by", one.source], ["type", one.type],
      ["id", html`<code class="breaks">${one.eventId}</code> <${Copy} text=${one.eventId} />`], ["note", one.note],
    ]} /><h3>What it came to</h3><ul class="plain">${one.fired.map((f) => html`<li key=${f.executionId}><${State} of="success">started<//> ${execution(f)} <span class="soft">by ${f.trigger}${f.disposition === "moved" ? `: ${f.cause}` : ""}</span></li>`)}
      ${one.skipped.map((s) => html`<li key=${s.jobId + s.trigger}><${State} of="skipped">not<//> <a href=${link(jobPath(s.job), { tab: "schedule" })}>${s.job}</a> <span class="soft">${s.trigger}: ${s.cause}</span></li>`)}
      ${!one.fired.length && !one.skipped.length && html`<li class="soft">Nobody listened.</li>`}</ul></div>
    <div><h3>What it said</h3><${Json} value=${one.payload} empty="nothing, or more than is shown here" /></div></div><//>`;
}

const LISTENERS = [
  { title: "job", cell: (one) => one.job },
  { title: "trigger", cell: (one) => html`<${State} of=${one.jobState === "paused" || one.state === "paused" ? "paused" : one.state === "ended" ? "gone" : "active"} quiet=${true} /> ${one.name}` },
  { title: "listens to", className: "nowrap", cell: (one) => (one.definition.event ? html`<code>${one.definition.event}</code>` : one.kind) },
  { title: "in words", className: "cut middle", cell: (one) => html`<span title=${one.text}>${one.text}</span>` },
  { title: "filter", className: "cut", cell: (one) => (one.definition.filter ? html`<code title=${one.definition.filter}>${one.definition.filter}</code>` : html`<span class="soft">all of them</span>`) },
  { title: "fired", className: "number", cell: (one) => one.fired },
  { title: "", key: "send", cell: (one) => one.definition.event && html`<button type="button" class="link" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setQuery({ do: "send", name: one.definition.event })}>send one</button>` },
];

function Listeners() {
  const heard = useHeard();
  const also = useData("/triggers", { kind: "webhook", limit: 200 });
  const watch = useData("/triggers", { kind: "watch", limit: 200 });
  const error = heard.error ?? also.error ?? watch.error;
  const rows = heard.items && [...heard.items, ...(also.data?.items ?? []), ...(watch.data?.items ?? [])];
  const more = heard.more || also.data?.nextCursor || watch.data?.nextCursor;
  const empty = html`<${Empty} title="No trigger listens." command=${LISTEN}>A trigger with <code>event</code>, <code>webhook</code> or <code>watch</code> starts its job when something comes; a filter may say which.<//>`;
  return html`<div class="stack">${rows?.length > 0 && html`<p class="soft">${plural(rows.length, "trigger")}${more ? " and more" : ""} ${rows.length === 1 ? "listens" : "listen"}.</p>`}
    <${Table} what="listeners" columns=${LISTENERS} rows=${rows} list=${{ error, reload: heard.reload }} keyOf=${(one) => one.jobId + one.name} href=${(one) => link(jobPath(one.job), { tab: "schedule" })} empty=${empty} /></div>`;
}
