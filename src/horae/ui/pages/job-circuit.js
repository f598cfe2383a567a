// A job's circuit breaker: how it stands, why, and what a hand can do about it.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { jobPath } from "../core/route.js";
import { ActionButton } from "../core/act.js";
import { number, plural } from "../core/format.js";
import { State } from "../core/states.js";
import { Panel, Ready, Time } from "../parts/basics.js";

const ORDER = ["open", "half-open", "closed"];
const useCircuit = (job) => useData(`${jobPath(job.jobId)}/circuit`, undefined, { live: ["circuit"], wait: 2000 });

/** The worst of its circuits, in a word. */
export function CircuitState({ job }) {
  const circuit = useCircuit(job);
  if (!circuit.data) return null;
  const worst = ORDER.find((state) => circuit.data.circuits.some((one) => one.state === state)) ?? "closed";
  return html`<span class="soft">circuit</span> <${State} of=${worst} />`;
}

export function Circuit({ job }) {
  const circuit = useCircuit(job);
  const action = (verb, title, done, key) => ({
    title, path: `${jobPath(job.jobId)}/circuit/${verb}`, body: key === null ? {} : { key }, cli: ["circuits", verb, job.name, ...(key === null ? [] : ["--key", key])], done, after: circuit.reload,
    confirm: verb === "reset" ? undefined : { title: `${title} of ${job.name}?`, body: verb === "open" ? "Nothing of it starts until the circuit is reset." : "It stays closed, whatever fails, until it is reset." },
  });
  return html`<${Panel} title="Circuit breaker"><${Ready} of=${circuit} what="the circuit">${(data) => html`
    ${(data.circuits.length ? data.circuits : [{ key: null, state: "closed", cause: "nothing failed too often", attempts: 0, failed: 0, waiting: 0 }]).map((one) => html`<div key=${one.key} class="entry">
      <p><${State} of=${one.state} /> ${one.key && html`<code>${one.key}</code> `}${one.cause}${one.changedBy && ` (${one.changedBy})`}${one.since && html`, since <${Time} at=${one.since} ago=${true} />`}${one.until && html`; probes <${Time} at=${one.until} ago=${true} />`}</p>
      <p class="soft small">${number(one.failed)} of ${plural(one.attempts, "attempt")} failed; ${number(one.waiting)} wait for it</p>
      <p class="actions">${one.state === "closed" && !one.forced && html`<${ActionButton} action=${action("open", "Open the circuit", "The circuit is open: nothing starts.", one.key)} />`}
        ${one.state !== "closed" && html`<${ActionButton} action=${action("close", "Close the circuit", "The circuit is closed by hand.", one.key)} />`}
        ${(one.forced || one.state !== "closed") && html`<${ActionButton} action=${action("reset", "Reset the circuit", "The circuit counts anew.", one.key)} />`}</p></div>`)}
    ${data.changes.length > 0 && html`<h3>What it went through</h3><ul class="plain">${data.changes.slice(0, 20).map((one) => html`<li key=${one.at + one.key}><${Time} at=${one.at} /> <${State} of=${one.state} /> ${one.cause}${one.changedBy && ` (${one.changedBy})`}</li>`)}</ul>`}`}<//><//>`;
}
