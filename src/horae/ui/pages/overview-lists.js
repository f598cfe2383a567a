// What runs, what comes next, what stands in line and who works.

import { html, useEffect, useState } from "../core/html.js";
import { now } from "../core/clock.js";
import { useData, useNow } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { duration, number, plural, seconds } from "../core/format.js";
import { Glyph, State } from "../core/states.js";
import { Empty, Loading, Panel, Progress, Ready, Time } from "../parts/basics.js";

const queuePath = (name) => `/queues/${encodeURIComponent(name)}`;

const LEGEND = [["success", "success"], ["failed", "failed"], ["skipped", "skipped"], ["cancelled", "quiet"], ["to come", "accent"]];
const Legend = () => html`<span class="legend small soft">${LEGEND.map(([word, tone]) => html`<span key=${word}><i class="key bg-${tone}"></i>${word}</span>`)}</span>`;

/** What the segment of the dial that is looked at holds: its count at once, what fired in it a moment later. */
export function Behind({ segment, words }) {
  const [settled, setSettled] = useState(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(segment), segment ? 200 : 0);
    return () => clearTimeout(timer);
  }, [segment?.begin, segment?.is]);
  const asked = settled && segment && settled.begin === segment.begin && settled.is === segment.is ? settled : null;
  const fires = useData(asked && asked.total ? "/fires" : null, asked && { from: new Date(asked.from).toISOString(), to: new Date(asked.to).toISOString(), limit: 3, disposition: asked.is === "coming" ? "planned" : null });
  const items = asked && asked.total && fires.data && !fires.loading ? fires.data.items : [];
  return html`<div class="behind" aria-live="polite"><p>${words ?? html`<${Legend} />`}</p>
    <ul class="plain small">${items.map((one) => html`<li key=${one.at + one.job + one.trigger}><${Time} at=${one.dueAt ?? one.at} /> <a href=${link(jobPath(one.job))}>${one.job}</a> ${one.disposition === "planned" || one.disposition === "fired" ? "" : html`<span class="soft">${one.disposition}</span>`}</li>`)}</ul></div>`;
}

/** What runs now, the longest first. */
export function Running({ running, lacks, counts }) {
  const at = useNow(1000);
  const own = useData(lacks ? "/executions" : null, { status: "running", limit: 10 }, { live: ["execution"], wait: 3000 });
  const items = running ?? own.data?.items;
  const rows = items && [...items].sort((a, b) => new Date(a.startedAt) - new Date(b.startedAt)).slice(0, 10);
  const more = counts && rows && counts.running > rows.length ? counts.running - rows.length : 0;
  return html`<${Panel} title="Running now" actions=${html`<a class="small" href=${link("/executions", { status: "running" })}>all that run</a>`}>
    ${!rows && html`<${Loading} />`}${rows && !rows.length && !more && html`<p class="soft">Nothing runs. What does stands here, the longest first.</p>`}
    <ul class="rows">${rows?.map((one) => html`<li key=${one.executionId}><${Glyph} of="running" /><a class="grow" href=${link(executionPath(one.executionId))}>${one.jobName}</a>
      <${Progress} value=${one.progress} message=${one.message} /><span class="number soft" title="for how long it has been running">${duration(Math.max(0, Math.round(seconds(one.startedAt, at))))}</span></li>`)}</ul>
    ${more > 0 && html`<p class="soft small">${rows.length ? "and " : ""}<a href=${link("/executions", { status: "running" })}>${rows.length ? `${number(more)} more` : plural(more, "execution")}</a></p>`}<//>`;
}

/** The next fires. What is due meanwhile leaves the list by itself. */
export function Coming() {
  const minute = Math.floor(useNow(5000) / 10000) * 10000;
  const fires = useData("/fires", { from: new Date(minute).toISOString(), disposition: "planned", limit: 12 }, { live: ["job"], wait: 5000 });
  return html`<${Panel} title="Next fires" actions=${html`<a class="small" href=${link("/schedule")}>the schedule</a>`}><${Ready} of=${fires} what="what is to come">${(data) => {
    const rows = data.items.filter((one) => new Date(one.dueAt ?? one.at) > now() - 1000).slice(0, 8);
    if (!rows.length) return html`<${Empty} title="Nothing is to come." command="horae jobs create hello --command 'echo hello' --every 1m">Jobs with a schedule stand here with their next fires.<//>`;
    return html`<ul class="rows">${rows.map((one) => html`<li key=${one.at + one.job + one.trigger}><${Glyph} of="scheduled" /><a class="grow" href=${link(jobPath(one.job))}>${one.job}</a>${one.trigger !== "schedule" && html`<span class="soft small">${one.trigger}</span>`}<span class="soft number"><${Time} at=${one.dueAt ?? one.at} ago /></span></li>`)}</ul>`;
  }}<//><//>`;
}

/** Queues: how deep they are, and how long the first in line has waited. */
export function Queues({ queues, lacks }) {
  const own = useData(lacks ? "/queues" : null, undefined, { live: ["execution", "hold"], wait: 3000 });
  const items = queues ?? own.data?.items.map((one) => ({ ...one, queue: one.name, held: Boolean(one.holds?.length) }));
  const most = Math.max(...(items ?? []).map((one) => one.queued), 1);
  return html`<${Panel} title="Queues" actions=${html`<a class="small" href=${link("/queues")}>all queues</a>`}>${!items && html`<${Loading} what="queues" />`}
    ${items && !items.length && html`<p class="soft">Nothing is waiting.</p>`}
    <ul class="rows">${items?.slice(0, 10).map((one) => html`<li key=${one.queue}><a class="grow" href=${link(queuePath(one.queue))}>${one.queue}</a>${one.held && html`<span title="held"><${State} of="held" quiet /></span>`}
      <meter min="0" max=${most} value=${one.queued} aria-label="queued, beside the deepest queue"></meter><span class="number">${number(one.queued)} <span class="soft">queued</span></span><span class="number soft" title="how long the first in line has waited">${one.oldestSeconds ? duration(Math.round(one.oldestSeconds)) : "–"}</span></li>`)}</ul><//>`;
}

/** How busy the workers are. */
export function Workers({ workers }) {
  const list = useData("/workers", undefined, { live: ["worker"], wait: 3000, poll: 15000 });
  const items = (list.data?.items ?? []).filter((one) => one.status !== "lost" && one.status !== "gone");
  const slots = workers?.slots ?? items.reduce((sum, one) => sum + (one.capacity ?? 0), 0);
  const busy = workers?.busy ?? items.reduce((sum, one) => sum + (one.running ?? 0), 0);
  const rows = [...items].sort((a, b) => b.running / b.capacity - a.running / a.capacity).slice(0, 8);
  return html`<${Panel} title="Workers" actions=${html`<a class="small" href=${link("/workers")}>all workers</a>`}>
    ${!list.data && html`<${Loading} what="workers" />`}
    ${list.data && !items.length && html`<${Empty} title="No worker is there: nothing starts." command="horae worker">A worker takes executions from queues and runs them.<//>`}
    ${items.length > 0 && html`<p class="utilised"><b>${slots ? Math.round((100 * busy) / slots) : 0}%</b> <span class="soft">${number(busy)} of ${plural(slots, "slot")} busy, ${plural(items.length, "worker")}</span></p>`}
    <ul class="rows">${rows.map((one) => html`<li key=${one.sessionId}><${State} of=${one.status} quiet /><a class="grow" href=${link(`/workers/${encodeURIComponent(one.workerId)}`)}>${one.workerId}</a><meter min="0" max=${one.capacity} value=${one.running} aria-label="busy slots"></meter><span class="number soft">${number(one.running)} of ${number(one.capacity)}</span></li>`)}</ul><//>`;
}
