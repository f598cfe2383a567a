// What an execution is doing, and why, in one line; and its course as spans of time. Pure: no element is made here.

import { duration, plural, seconds, shortId, when } from "../core/format.js";
import { now as serverNow } from "../core/clock.js";
import { STATES } from "../core/states.js";

const ENDED = new Set(["success", "failed", "cancelled", "skipped"]);
export const hasEnded = (execution) => ENDED.has(execution.status);

/** An instant as the server writes it in its sentences. */
export const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const IDS = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

const whole = (n) => duration(n < 10 ? Math.max(0, Math.round(n)) : n).replace(".0 s", " s");
const firstLine = (text) => (text ?? "").split("\n")[0];
const tries = (execution, most) => `failed ${execution.retryCount} of ${most ? plural(most, "try", "tries") : "its tries"}`;

/** One line: what it is doing and why. `most` is how many tries it has, `summary` what explain says. */
export function sentence(execution, { now = serverNow(), most = null, summary: told = "" } = {}) {
  const summary = (told || execution.hint || "").replace(INSTANT, when).replace(IDS, shortId).replaceAll("`", "");
  const since = (at) => whole(Math.max(0, (now - new Date(at)) / 1000));
  const { status } = execution;
  if (status === "running") return running(execution, since, most, summary);
  if (status === "waiting" && execution.reason === "retry") {
    const left = (new Date(execution.nextAttemptAt) - now) / 1000;
    return `${left > 0 ? `waiting ${whole(left)} to retry` : "about to be tried again"} after ${execution.error?.type ?? "a failure"}, ${tries(execution, most)}`;
  }
  if (status === "waiting" && execution.reason === "delay" && execution.nextAttemptAt) return `waiting ${whole(Math.max(0, (new Date(execution.nextAttemptAt) - now) / 1000))}: it is due at ${when(execution.nextAttemptAt)}`;
  if (!hasEnded(execution)) return `${STATES[status].word}${execution.queuedAt ? ` for ${since(execution.queuedAt)}` : ""}${summary ? `: ${summary}` : ""}`;
  return ended(execution);
}

function running(execution, since, most, summary) {
  if (execution.reason === "children" || !execution.workerId) return summary || `running for ${since(execution.startedAt)}`;
  const again = execution.retryCount ? `, ${tries(execution, most)} before` : "";
  return `running for ${since(execution.startedAt)} on ${execution.workerId}${again}${execution.message ? `: ${execution.message}` : ""}`;
}

const REASONS = { retries: "it had no tries left", permanent: "it is of no use to try again", poison: "its workers were lost with it", delivery: "it may be tried once only", step: "a step of it failed" };

function ended(execution) {
  const took = seconds(execution.startedAt, execution.completedAt);
  const span = took === null ? "" : ` after ${duration(took)}`;
  const count = execution.attempt > 1 ? `, at try ${execution.attempt}` : "";
  if (execution.status === "success") return `succeeded${span}${count}`;
  if (execution.status === "failed") return `failed${span}${count} with ${execution.error?.type ?? "an error"}${REASONS[execution.reason] ? `: ${REASONS[execution.reason]}` : ""}`;
  const why = execution.errorMessage || execution.reason;
  return `${STATES[execution.status].word}${span}${why ? `: ${firstLine(why)}` : ""}`;
}

const OUTCOMES = { success: "success", failed: "failed", lost: "lost", cancelled: "cancelled", released: "skipped", preempted: "skipped", running: "running" };

/**
 * The course of an execution for a Gantt: one row per try, each with what was before it (queued, or a pause after a
 * failure) and how long it ran. Only the last time it was queued is kept; a pause before that is told as one.
 */
export function course(execution, attempts) {
  const rows = [];
  let from = execution.scheduledAt;
  let failed = false;
  attempts.forEach((one, at) => {
    const last = at === attempts.length - 1;
    const spans = gap(from, one.startedAt, failed, last ? execution.queuedAt : null);
    spans.push({ from: one.startedAt, to: one.endedAt, state: OUTCOMES[one.outcome] ?? one.outcome, words: one.outcome === "running" ? "runs" : `ran, ${one.outcome}` });
    rows.push({ key: String(one.attempt), label: `try ${one.attempt}`, state: OUTCOMES[one.outcome] ?? one.outcome, spans, note: one.error ? one.error.type : one.workerId, title: one.errorMessage ?? "" });
    from = one.endedAt;
    failed = one.outcome === "failed";
  });
  if (!hasEnded(execution) && !(attempts.length && attempts.at(-1).outcome === "running") && from) rows.push(coming(execution, from, attempts.length));
  return rows;
}

function coming(execution, from, count) {
  const queued = execution.status === "queued" || (execution.status === "running" && !execution.reason); // one that is suspended has begun, and waits
  const until = queued ? null : execution.nextAttemptAt;
  const spans = queued ? gap(from, null, count > 0, execution.queuedAt) : [{ from, to: until, state: execution.reason === "retry" ? "retrying" : "waiting", words: execution.reason === "retry" ? "pauses before the next try" : "waits", ahead: true }];
  return { key: "next", label: `try ${execution.attempt + (execution.status === "running" ? 0 : 1)}`, state: queued ? "queued" : "waiting", spans, note: "" };
}

// Between two tries: a pause if the one before failed, then the time in the queue, as far as it is known.
function gap(from, to, failed, queuedAt) {
  const wait = failed ? { state: "retrying", words: "pause before the next try" } : { state: "queued", words: "queued" };
  if (queuedAt && from && new Date(queuedAt) > new Date(from) && (!to || new Date(queuedAt) <= new Date(to))) {
    const before = failed ? wait : { state: "waiting", words: "waited" };
    return [{ from, to: queuedAt, ...before }, { from: queuedAt, to, state: "queued", words: "queued" }];
  }
  return from ? [{ from, to, ...wait }] : [];
}
