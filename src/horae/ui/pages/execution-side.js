// What an execution is about: its facts and links, its params, its result and the files it left behind.

import { html } from "../core/html.js";
import { has } from "../core/api.js";
import { useData } from "../core/data.js";
import { executionPath, jobPath, link } from "../core/route.js";
import { bytes, duration, seconds, shortId } from "../core/format.js";
import { shown, State } from "../core/states.js";
import { Facts, Json, Panel, Tags, Time } from "../parts/basics.js";
import { Download, isOf } from "../parts/log.js";
import { hasEnded } from "./execution-words.js";

export const ExecutionLink = ({ id }) => html`<a href=${link(executionPath(id))} title=${id}><code>${shortId(id)}</code></a>`;
const Several = ({ ids }) => html`${ids.map((id, at) => html`<span key=${id}>${at ? ", " : ""}<${ExecutionLink} id=${id} /></span>`)}`;
const origins = { submit: "submitted", trigger: "run by hand", fire: "a trigger's fire", event: "an event", dependency: "a dependency", backfill: "a backfill", child: "another execution", retry: "a retry" };

export function About({ execution, job: definition }) {
  const one = execution;
  const tags = { ...of(definition, one)?.tags, ...one.tags };
  const job = (query, text) => html`<a href=${link(jobPath(one.jobName), query)}>${text}</a>`;
  return html`<${Panel} title="About"><${Facts} facts=${[
    ["job", html`${job({}, one.jobName)} ${job({ tab: "definition", version: one.jobVersion }, `v${one.jobVersion}`)}`],
    ["came from", origins[one.origin] ?? one.origin],
    ["due", html`<${Time} at=${one.scheduledAt} />`],
    one.fireAt && ["fire", job({ tab: "schedule", at: one.fireAt }, html`<${Time} at=${one.fireAt} />`)],
    one.queuedAt && ["queued", html`<${Time} at=${one.queuedAt} />`],
    one.startedAt && ["started", html`<${Time} at=${one.startedAt} />`],
    one.completedAt && ["ended", html`<${Time} at=${one.completedAt} /> <span class="soft">after ${duration(seconds(one.startedAt ?? one.scheduledAt, one.completedAt))}</span>`],
    one.queue && ["queue", html`<a href=${link(`/queues/${encodeURIComponent(one.queue)}`)}>${one.queue}</a> <span class="soft">priority ${one.priority}</span>`],
    one.workerId && ["worker", html`<a href=${link(`/workers/${encodeURIComponent(one.workerId)}`)}>${one.workerId}</a>`],
    one.lastHeartbeat && one.status === "running" && ["last heard of", html`<${Time} at=${one.lastHeartbeat} ago=${true} />`],
    one.exitCode !== null && ["exit code", String(one.exitCode)],
    one.parent && ["below", html`<${ExecutionLink} id=${one.parent} />`],
    one.retryOf && ["retry of", html`<${ExecutionLink} id=${one.retryOf} />`],
    one.retriedAs && ["retried as", html`<${ExecutionLink} id=${one.retriedAs} />`],
    one.rerunOf && ["runs again", html`<${ExecutionLink} id=${one.rerunOf} />`],
    one.upstream?.length > 0 && ["after", html`<${Several} ids=${one.upstream} />`],
    one.event && ["event", html`<code>${one.event}</code>`],
    one.backfillId && ["backfill", html`<a href=${link(jobPath(one.jobName), { tab: "schedule", backfill: one.backfillId })}><code>${shortId(one.backfillId)}</code></a>`],
    one.interval && ["data", html`<${Time} at=${one.interval.start} /> – <${Time} at=${one.interval.end} />`],
    one.key && ["key", html`<code>${one.key}</code>`],
    one.traceId && ["trace", html`<code>${one.traceId}</code>`],
    Object.keys(tags).length > 0 && ["tags", html`<${Tags} tags=${tags} />`],
  ]} /><//>`;
}

// The definition that it ran by, if that is known here.
const of = (job, execution) => (job && job.version === execution.jobVersion && !execution.sensitive ? job : null);

/** What it was given: its own params over the job's; and what it returned. */
export function Values({ execution, job }) {
  const own = execution.params;
  const given = own && typeof own === "object" ? { ...of(job, execution)?.params, ...own } : own;
  const usual = own && typeof own === "object" ? Object.keys(given).filter((name) => !(name in own)) : [];
  const some = (value) => value !== null && value !== undefined && !(typeof value === "object" && !Array.isArray(value) && Object.keys(value).length === 0);
  return html`<${Panel} title="Params"><${Json} value=${some(given) ? given : null} empty="none" />${usual.length > 0 && html`<p class="soft small">${usual.length === Object.keys(given).length ? "all as the job has them" : `as the job has them: ${usual.join(", ")}`}</p>`}<//>
    ${hasEnded(execution) && execution.status === "success" && html`<${Panel} title="Result"><${Json} value=${execution.result} empty="it returned nothing" /><//>`}`;
}

export function Artifacts({ execution }) {
  const files = useData(has("artifacts") ? `/executions/${execution.executionId}/artifacts` : null, { limit: 100 }, { live: ["execution"], wait: 2000, only: (event) => isOf(event, execution.executionId) });
  if (!files.data?.items.length) return null;
  return html`<${Panel} title="Files"><ul class="plain">${files.data.items.map((one) => html`<li key=${one.name} class="file"><span class="cut" title=${one.name}>${one.name}</span><span class="soft small">${bytes(one.size)}</span><${Download} path=${one.url} name=${one.name.split("/").at(-1)}>Download<span class="unseen"> ${one.name}</span><//></li>`)}</ul>${files.data.nextCursor && html`<p class="soft small">and more: <code>horae executions artifacts ${execution.executionId}</code></p>`}<//>`;
}

/** What it started itself; the steps of a workflow are in its graph. */
export function Children({ execution }) {
  const below = useData("/executions", { parent: execution.executionId, limit: 6 }, { live: ["execution"], wait: 3000, only: (event) => !hasEnded(execution) || isOf(event, execution.executionId) });
  if (!below.data?.items.length) return null;
  return html`<${Panel} title="Started by it" actions=${html`<a href=${link("/executions", { parent: execution.executionId })}>all</a>`}><ul class="plain">${below.data.items.slice(0, 5).map((one) => html`<li key=${one.executionId}><${State} of=${shown(one)} quiet=${true} /> ${one.jobName} <${ExecutionLink} id=${one.executionId} /></li>`)}</ul><//>`;
}
