// Sending an event: what it would fire, and what not and why, is said while it is typed.

import { html, useEffect, useState } from "../core/html.js";
import { send } from "../core/api.js";
import { useData } from "../core/data.js";
import { jobPath, link, setQuery } from "../core/route.js";
import { plural } from "../core/format.js";
import { State } from "../core/states.js";
import { Dialog } from "../parts/dialog.js";
import { ActionButton } from "../core/act.js";
import { Failure, Said } from "../parts/basics.js";
import { Field } from "../parts/fields.js";
import { JsonField } from "../parts/form.js";

const WAIT = 300;
const MOST = 200; // triggers that are asked for

/** Triggers that listen to names, and these names. */
export function useHeard() {
  const list = useData("/triggers", { kind: "event", limit: MOST }, { live: ["job"], wait: 5000 });
  const items = list.data?.items;
  return { ...list, items, more: Boolean(list.data?.nextCursor), names: [...new Set((items ?? []).map((one) => one.definition.event).filter(Boolean))].sort() };
}

export function SendDialog({ name: given, close }) {
  const heard = useHeard();
  const [name, setName] = useState(given ?? "");
  const [payload, setPayload] = useState(undefined);
  const [unread, setUnread] = useState(null);
  const [id, setId] = useState("");
  const [error, setError] = useState(null);
  const body = { name, ...(payload === undefined ? {} : { payload }), ...(id ? { id } : {}) };
  const [plan, problem] = usePlan(name && !unread ? body : null);
  const told = error ?? problem;
  const wrong = (field) => told?.body?.field === field && told.detail;
  const change = (set) => (value) => { set(value); setError(null); };
  const action = () => ({
    title: "Send", path: "/events", body, cli: ["events", "send", name, ...(payload === undefined ? [] : ["--payload", JSON.stringify(payload)]), ...(id ? ["--id", id] : [])], failed: setError,
    done: (answer) => answer.note ?? (answer.fired.length ? `${name} started ${answer.fired.map((one) => one.job).slice(0, 3).join(", ")}${answer.fired.length > 3 ? ` and ${answer.fired.length - 3} more` : ""}.` : `${name} was kept and started nothing.`),
    after: (answer) => setQuery({ do: null, tab: null, name: null, event: `${answer.receivedAt} ${answer.eventId}` }),
  });
  return html`<${Dialog} title="Send an event" onClose=${close}><form onSubmit=${(event) => event.preventDefault()} noValidate>
    <${Field} label="name" value=${name} onChange=${change(setName)} problem=${wrong("name")} list="heard-names" hint=${heard.names.length ? `listened to: ${heard.names.slice(0, 5).join(", ")}${heard.names.length > 5 ? ", …" : ""}` : "nothing listens to any name yet"} />
    <datalist id="heard-names">${heard.names.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
    <${JsonField} label="payload" rows=${4} told=${wrong("payload")} hint=${'{"key": "a.csv", "size": 42}; filters and params see it as event.payload'} onChange=${(next, bad) => { setUnread(bad); change(setPayload)(next); }} />
    <${Field} label="id" value=${id} onChange=${change(setId)} problem=${wrong("id")} hint="by which it is known when it comes again; one is made if empty" />
    <div class="plan" role="status" aria-live="polite">${told && (["name", "payload", "id"].includes(told.body?.field) ? html`<p class="soft"><${Said} text=${told.remedy} /></p>` : html`<${Failure} error=${told} />`)}${!told && html`<${Plan} plan=${plan} unread=${unread} name=${name} />`}</div>
    <div class="actions end"><button type="button" onClick=${close}>Leave it</button><${ActionButton} kind="primary" label="Send" action=${action} disabled=${!name || Boolean(unread)} why=${name ? "Its payload cannot be read." : "It has no name yet."} /></div>
  </form><//>`;
}

/** Ask the server, when typing rests, what it would come to. */
function usePlan(body) {
  const [state, setState] = useState([null, null]);
  const key = JSON.stringify(body);
  useEffect(() => {
    setState([null, null]);
    if (!body) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try { setState([await send("POST", "/events", { params: { dryRun: true }, body, signal: abort.signal }), null]); } catch (problem) { if (problem.name !== "AbortError") setState([null, problem]); }
    }, WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [key]);
  return state;
}

function Plan({ plan, unread, name }) {
  if (!name) return html`<p class="soft">Say its name: here it will say what it would start.</p>`;
  if (unread) return html`<p class="soft">The payload cannot be read yet.</p>`;
  if (!plan) return html`<p class="soft">Looking what it would start …</p>`;
  const row = (one, state, word) => html`<li key=${one.jobId + one.trigger}><${State} of=${state}>${word}<//> <a href=${link(jobPath(one.job), { tab: "schedule" })} target="_blank" rel="noopener">${one.job}</a> <span class="soft">${one.trigger}${one.disposition === "fired" ? "" : `: ${one.cause}`}</span></li>`;
  return html`${plan.note && html`<p><${Said} text=${plan.note} /></p>`}${!plan.note && html`<p><strong>${plan.fires.length ? `It would start ${plural(plan.fires.length, "job")}.` : "It would start nothing."}</strong></p>`}
    <ul class="plain plan-list">${plan.fires.map((one) => row(one, "success", one.disposition === "moved" ? "later" : "starts"))}${plan.skipped.map((one) => row(one, "skipped", "not"))}</ul>`;
}
