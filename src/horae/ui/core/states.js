// The one place that says how a state looks: a tone (its colour), a glyph and a word. Tables, charts, graph and dial use it.

import { html } from "./html.js";

const CHECK = "M3 8.5l3.2 3.2L13 4.8";
const CROSS = "M4 4l8 8M12 4l-8 8";
const CLOCK = "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M8 5v3.2l2 1.4";
const RING = "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9";
const AGAIN = "M12.5 8a4.5 4.5 0 1 1-1.4-3.3M11.5 2v3h-3";
const SLASH = "M8 3a5 5 0 1 0 0 10a5 5 0 0 0 0-10M4.6 11.4l6.8-6.8";
const CHEVRONS = "M3.5 4l4 4l-4 4M8.5 4l4 4l-4 4";
const PAUSE = "M5.5 3.5v9M10.5 3.5v9";
const HAND = "M8 2.5v6M8 12.6v.4";

const of = (word, tone, glyph, filled = false) => Object.freeze({ word, tone, glyph, filled });

export const STATES = Object.freeze({
  success: of("success", "success", CHECK),
  failed: of("failed", "failed", CROSS),
  running: of("running", "running", RING, true),
  queued: of("queued", "quiet", RING),
  waiting: of("waiting", "quiet", CLOCK),
  retrying: of("retrying", "retrying", AGAIN),
  cancelled: of("cancelled", "quiet", SLASH),
  skipped: of("skipped", "skipped", CHEVRONS),
  paused: of("paused", "retrying", PAUSE),
  scheduled: of("scheduled", "quiet", CLOCK),
  idle: of("idle", "quiet", RING),
  deleted: of("deleted", "quiet", SLASH),
  // of steps of workflows
  pending: of("to come", "quiet", RING),
  suspended: of("waiting", "quiet", CLOCK),
  approval: of("waits for approval", "retrying", HAND),
  compensated: of("undone", "skipped", AGAIN),
  // of workers, queues, circuits and alerts
  active: of("active", "success", CHECK),
  live: of("live", "success", CHECK),
  completed: of("completed", "success", CHECK),
  draining: of("draining", "retrying", CHEVRONS),
  late: of("late", "retrying", CLOCK),
  lost: of("lost", "failed", CROSS),
  gone: of("gone", "quiet", SLASH),
  held: of("held", "retrying", PAUSE),
  open: of("open", "failed", CROSS),
  "half-open": of("half open", "retrying", AGAIN),
  closed: of("closed", "success", CHECK),
  firing: of("firing", "failed", CROSS),
  recovered: of("recovered", "success", CHECK),
});

/** The state an execution is shown in: one that waits to be tried again is "retrying". */
export const shown = (execution) => (execution.status === "waiting" && execution.reason === "retry" ? "retrying" : execution.status);

export const look = (state) => STATES[state] ?? of(String(state), "quiet", RING);

export function Glyph({ of: state, size = 16 }) {
  const { tone, glyph, filled } = look(state);
  return html`<svg class="glyph tone-${tone} ${filled ? "filled" : ""} ${state === "running" ? "pulse" : ""}" width=${size} height=${size} viewBox="0 0 16 16" aria-hidden="true"><path d=${glyph} /></svg>`;
}

/** Glyph and word; `quiet` leaves the word to screen readers. */
export function State({ of: state, quiet = false, children }) {
  const { word, tone } = look(state);
  return html`<span class="state tone-${tone}" data-state=${state}><${Glyph} of=${state} /><span class=${quiet ? "unseen" : "word"}>${children ?? word}</span></span>`;
}
