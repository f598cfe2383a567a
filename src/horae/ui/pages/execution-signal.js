// A signal for an execution that waits for one, or will: its name, and any JSON.

import { html, useState } from "../core/html.js";
import { can } from "../core/api.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { JsonField } from "../parts/form.js";

/** The names of the signals that it waits for now; null when none is of use to it, as far as is known here. */
export function signalsOf({ execution, job, graph, explanation }) {
  const steps = (graph?.nodes ?? []).filter((node) => node.kind === "signal" && !node.endedAt);
  if (steps.length) return steps.filter((node) => node.status === "waiting").map((node) => node.waitsFor?.name).filter(Boolean);
  if (execution.reason === "signal") return (explanation?.blockers ?? []).flatMap((one) => one.details?.signals ?? []);
  return job?.durable ? [] : null;
}

export function SignalButton({ id, names, reload, label, kind = "" }) {
  const [asking, setAsking] = useState(false);
  return html`<button type="button" class=${kind} disabled=${!can("operator")} title=${can("operator") ? "tell it what it waits for" : "This needs the role operator."} onClick=${() => setAsking(true)}>${label ?? "Signal …"}</button>
    ${asking && html`<${Ask} id=${id} names=${names} onClose=${() => setAsking(false)} reload=${reload} />`}`;
}

function Ask({ id, names, onClose, reload }) {
  const [typed, setName] = useState(null);
  const name = typed ?? names[0] ?? ""; // it may come to wait for one while this is open
  const [payload, setPayload] = useState(undefined);
  const [wrong, setWrong] = useState(null);
  const action = {
    title: "Send it", path: `/executions/${id}/signals`, body: { name, ...(payload === undefined ? {} : { payload }) },
    cli: ["executions", "signal", id, name, ...(payload === undefined ? [] : ["--payload", JSON.stringify(payload)])],
    done: (answer) => (answer.delivered ? `The signal ${name} was delivered.` : `The signal ${name} is kept until it waits for it.`),
    after: () => { onClose(); reload(); },
  };
  const known = names.includes(name) ? "It waits for this one now." : name ? "It does not wait for this one now: it is kept until it does." : "needed";
  return html`<${FormDialog} title="Send a signal" action=${action} submit="Send it" onClose=${onClose} disabled=${!name || wrong !== null}>
    ${names.length > 1 ? html`<${Field} label="Name" value=${name} onChange=${setName} options=${names.map((one) => [one])} />` : html`<${Field} label="Name" value=${name} onChange=${setName} hint=${known} maxlength="200" />`}
    <${JsonField} label="Payload" rows=${4} hint="what the wait returns; null unless given" onChange=${(next, problem) => { setPayload(next); setWrong(problem); }} />
  <//>`;
}
