// What an execution is doing, in one line that counts while it goes on.

import { html } from "../core/html.js";
import { useNow } from "../core/data.js";
import { hasEnded, sentence } from "./execution-words.js";

/** The line that says it all. `job` tells how many tries there are, `explanation` what holds it. */
export function Doing({ execution, job, explanation }) {
  const now = useNow(hasEnded(execution) ? 3600000 : 1000);
  const most = job && job.version === execution.jobVersion && job.retries ? job.retries + 1 : null;
  return html`<span class="doing">${sentence(execution, { now, most, summary: explanation?.summary })}</span>`;
}
