// What can be done with an execution: stop it, try it again, run it again from somewhere, pause its steps.

import { html, useState } from "../core/html.js";
import { can, needs, paramsWord } from "../core/api.js";
import { ActionButton } from "../core/act.js";
import { executionPath, go, link } from "../core/route.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { JsonField } from "../parts/form.js";
import { SignalButton, signalsOf } from "./execution-signal.js";
import { hasEnded } from "./execution-words.js";

const show = (id) => go(link(executionPath(id)));

export function Actions({ execution, job, graph, explanation, reload }) {
  const [asking, setAsking] = useState(false);
  const id = execution.executionId;
  const signals = hasEnded(execution) ? null : signalsOf({ execution, job, graph, explanation });
  if (!hasEnded(execution)) return html`${signals && html`<${SignalButton} id=${id} names=${signals} kind=${signals.length ? "primary" : ""} reload=${reload} />`}${graph && html`<${PauseButton} id=${id} paused=${graph.paused} reload=${reload} />`}<${ActionButton} action=${cancel(execution, reload)} />`;
  const isStep = Boolean(execution.step); // alone it would give its workflow nothing
  const letter = execution.status === "failed" && !execution.retriedAs && !graph && !isStep;
  return html`${isStep && html`<a class="button ${execution.status === "failed" ? "primary" : ""}" href=${link(executionPath(execution.parent))}>To its workflow</a>`}${letter && html`<${ActionButton} action=${retry(id)} kind="primary" />`}
    <button type="button" class=${graph && execution.status === "failed" ? "primary" : ""} disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setAsking(true)}>Run again …</button>
    ${asking && html`<${Rerun} execution=${execution} graph=${graph} onClose=${() => setAsking(false)} />`}`;
}

function PauseButton({ id, paused, reload }) {
  const word = paused ? "Resume" : "Pause";
  const action = { title: word, path: `/executions/${id}/${word.toLowerCase()}`, cli: ["executions", word.toLowerCase(), id], after: reload, done: paused ? "It goes on." : "No further step starts until it is resumed; what runs goes on." };
  return html`<${ActionButton} key=${word} kind=${paused ? "primary" : ""} action=${action} />`;
}

function cancel(execution, reload) {
  const body = { reason: "" };
  const id = execution.executionId;
  return {
    title: "Cancel", path: `/executions/${id}/cancel`, body, cli: ["executions", "cancel", id], after: reload,
    done: (answer) => (answer.outcome === "requested" ? "Its worker is asked to stop it." : "Cancelled."),
    confirm: {
      title: `Cancel this execution of ${execution.jobName}?`, action: "Cancel it", danger: true,
      body: html`<p>${execution.status === "running" ? "It is asked to stop, then made to." : "It never runs."}</p><label>Why (kept with it)<input maxlength="1000" onInput=${(event) => { body.reason = event.target.value; }} /></label>`,
    },
  };
}

const retry = (id) => ({
  title: "Retry", path: "/dlq/retry", body: { ids: [id] }, cli: ["dlq", "retry", id],
  done: (answer) => (answer.done ? "It runs again, as a new execution." : "It was retried or discarded meanwhile."),
  after: (answer) => answer.executionIds[0] && show(answer.executionIds[0]),
});

/** Run a workflow again from one of its steps. */
export function RerunButton({ execution, graph, from }) {
  const [asking, setAsking] = useState(false);
  return html`<button type="button" disabled=${!can("operator")} title=${needs("operator")} onClick=${() => setAsking(true)}>Run again from here …</button>${asking && html`<${Rerun} execution=${execution} graph=${graph} start=${from} onClose=${() => setAsking(false)} />`}`;
}

/** How to run it again: from where, with what, and by which definitions. */
function Rerun({ execution, graph, start, onClose }) {
  const steps = graph ? graph.nodes.filter((node) => node.phase === "main").map((node) => node.step) : [];
  const [from, setFrom] = useState(start ?? (graph && execution.status === "failed" ? "failed" : ""));
  const [stop, setStop] = useState("");
  const [latest, setLatest] = useState(false);
  const [params, setParams] = useState(undefined);
  const [wrong, setWrong] = useState(null);
  const id = execution.executionId;
  const body = { ...(from ? { from } : {}), ...(params ? { params } : {}), ...(latest ? { latest } : {}), ...(stop ? { breakpoints: [stop] } : {}) };
  const hide = execution.sensitive ? Object.keys(params ?? {}) : [];
  const cli = ["executions", "rerun", id, ...(from ? ["--from", from] : []), ...(params ? ["--params", paramsWord(params, hide)] : []), ...(latest ? ["--latest"] : []), ...(stop ? ["--break", stop] : [])];
  const action = { title: "Run it again", path: `/executions/${id}/rerun`, body, hide, cli, done: "It runs again, as a new execution.", after: (answer) => { onClose(); show(answer.executionId); } };
  return html`<${FormDialog} title="Run ${execution.jobName} again" action=${action} submit="Run it again" onClose=${onClose} disabled=${wrong !== null}>
    ${graph && html`<${Field} label="From" value=${from} onChange=${setFrom} options=${[["", "the beginning"], ["failed", "what failed"], ...steps.map((step) => [step])]} />
      <${Field} label="Stop before" value=${stop} onChange=${setStop} options=${[["", "nothing"], ...steps.map((step) => [step])]} />`}
    <${JsonField} label="Params that differ" rows=${4} hint="members replace those it had, null takes one away" onChange=${(next, problem) => { setParams(next); setWrong(problem); }} />
    <label class="line"><input type="checkbox" checked=${latest} onChange=${(event) => setLatest(event.target.checked)} />by the definition of now, not the one it ran with (v${execution.jobVersion})</label>
  <//>`;
}
