// The forms of rules and channels.

import { html, useState } from "../core/html.js";
import { useData } from "../core/data.js";
import { act, copies } from "../core/act.js";
import { Copy, Failure } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";

// kind: [what it is about, in words, its fields with what they are unless given]
const KINDS = {
  "failures-in-a-row": ["jobs", "a job's newest executions failed", { count: "3" }],
  "success-rate": ["jobs", "too few of a job's executions succeeded", { below: "95%", window: "1h", minimum: "10" }],
  "retry-rate": ["jobs", "too many retries for each execution", { above: "20%", window: "1h", minimum: "10" }],
  overlong: ["jobs", "an execution runs for longer than it usually does", { times: "3", atLeast: "1m" }],
  "missing-success": ["jobs", "nothing of a job has succeeded for so long", { since: "1d" }],
  "deadline-risk": ["jobs", "an execution will probably miss its deadline", { margin: "0s" }],
  "circuit-open": ["jobs", "a circuit is open", {}],
  lag: ["jobs", "a fire is due and was not made", { after: "1m" }],
  "queue-age": ["queues", "what is next in a queue has waited for long", { after: "10m" }],
  "late-worker": ["workers", "a worker is silent", { after: "10s" }],
  "worker-lost": ["workers", "a worker was lost", { within: "1h" }],
};
const NUMBERS = new Set(["count", "minimum", "times"]);
const split = (text) => text.split(/[\s,]+/).filter(Boolean);

const Text = ({ id, label, value, set, ...more }) => html`<div class="field"><label for=${id}>${label}</label><input id=${id} value=${value} onInput=${(event) => set(event.target.value)} ...${more} /></div>`;

export function EditRule({ rule, onClose, onDone }) {
  const old = rule.definition ?? {};
  const channels = useData("/alert-channels", { limit: 100 });
  const [name, setName] = useState(rule.name ?? "");
  const [kind, setKind] = useState(rule.kind ?? "failures-in-a-row");
  const [about, usual, fields] = [KINDS[kind][0], KINDS[kind][1], KINDS[kind][2]];
  const [subjects, setSubjects] = useState((old.jobs ?? old.queues ?? old.workers ?? []).join(", "));
  const [values, setValues] = useState(Object.fromEntries(Object.keys(fields).map((one) => [one, String(old[one] ?? "")])));
  const [told, setTold] = useState(rule.channels ?? []);
  const [severity, setSeverity] = useState(rule.severity ?? "warning");
  const [repeat, setRepeat] = useState(old.repeatEvery ?? "");
  const set = Object.entries(values).filter(([one, value]) => one in fields && value !== "");
  const body = {
    kind, severity, channels: told, ...(subjects ? { [about]: split(subjects) } : {}), ...(repeat ? { repeatEvery: repeat } : {}),
    ...Object.fromEntries(set.map(([one, value]) => [one, NUMBERS.has(one) ? Number(value) : value])),
  };
  const action = {
    title: "Save the rule", method: "PUT", path: `/alert-rules/${encodeURIComponent(name)}`, body, done: `${name} is looked at from now on.`, after: onDone,
    cli: ["alerts", "rules", "put", name || "NAME", "--kind", kind, ...split(subjects).flatMap((one) => [`--${about.slice(0, -1)}`, one]), ...set.flatMap(([one, value]) => ["--set", `${one}=${value}`]), ...told.flatMap((one) => ["--channel", one]), ...(repeat ? ["--repeat-every", repeat] : [])],
  };
  const submit = (event) => { event.preventDefault(); act(action); };
  const toggle = (one) => setTold(told.includes(one) ? told.filter((other) => other !== one) : [...told, one]);
  return html`<${Dialog} title=${rule.name ? `Rule ${rule.name}` : "New rule"} onClose=${onClose}><form onSubmit=${submit}>
    ${!rule.name && html`<${Text} id="rule-name" label="Name" value=${name} set=${setName} required maxlength="128" placeholder="nightly" />`}
    <div class="field"><label for="rule-kind">Tell when</label><select id="rule-kind" value=${kind} onChange=${(event) => { setKind(event.target.value); setValues({}); }}>${Object.entries(KINDS).map(([one, [, words]]) => html`<option key=${one} value=${one} selected=${one === kind}>${words} (${one})</option>`)}</select><p class="soft small">${usual}</p></div>
    <${Text} id="rule-about" label=${`Which ${about} (names or patterns, empty: all)`} value=${subjects} set=${setSubjects} placeholder=${{ jobs: "backup-*", queues: "reports", workers: "gpu-*" }[about]} />
    ${Object.entries(fields).map(([one, usually]) => html`<${Text} key=${kind + one} id="rule-${one}" label=${one} value=${values[one] ?? ""} set=${(value) => setValues({ ...values, [one]: value })} placeholder=${usually} />`)}
    <div class="field"><label for="rule-severity">Severity</label><select id="rule-severity" value=${severity} onChange=${(event) => setSeverity(event.target.value)}>${["info", "warning", "critical"].map((one) => html`<option key=${one} selected=${one === severity}>${one}</option>`)}</select></div>
    <${Text} id="rule-repeat" label="Remind every (empty: never)" value=${repeat} set=${setRepeat} placeholder="4h" />
    <fieldset class="plain"><legend class="small soft">Channels</legend>${(channels.data?.items ?? []).map((one) => html`<label key=${one.name} class="line"><input type="checkbox" checked=${told.includes(one.name)} onChange=${() => toggle(one.name)} /> ${one.name} <span class="soft">(${one.kind})</span></label>`)}${channels.data && !channels.data.items.length && html`<p class="soft small">There are none yet: the alert is only listed here.</p>`}<${Failure} error=${channels.error} /></fieldset>
    <p class="small"><${Copy} text=${copies(action).command} label="copy as command" /> <${Copy} text=${copies(action).curl} label="copy as curl" /></p>
    <div class="actions end"><button type="button" onClick=${onClose}>Leave it</button><button type="submit" class="primary">Save</button></div>
  </form><//>`;
}

export function EditChannel({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState("webhook");
  const [values, setValues] = useState({});
  const [secret, setSecret] = useState(null);
  const FIELDS = {
    webhook: [["url", "URL", { type: "url", required: true, placeholder: "https://example.com/alerts" }]],
    email: [["to", "To", { required: true }], ["from", "From", { required: true }], ["host", "SMTP server", { required: true }], ["username", "User"], ["password", "Password, or secret://NAME", { type: "password", autocomplete: "off" }]],
    apprise: [["urls", "URLs, as apprise spells them", { required: true }]],
  };
  const submit = async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(FIELDS[kind].map(([one]) => [one, values[one]]).filter(([, value]) => value).map(([one, value]) => [one, one === "to" || one === "urls" ? split(value) : value]));
    const answer = await act({ title: "Save the channel", method: "PUT", path: `/alert-channels/${encodeURIComponent(name)}`, body: { kind, ...given }, done: `${name} is there; test it.` });
    if (answer?.secret) setSecret(answer.secret); else if (answer) onDone();
  };
  if (secret) return html`<${Dialog} title="What it is signed with" onClose=${onDone}><p>It is told this once; the receiver checks signatures with it.</p><p class="command"><code>${secret}</code> <${Copy} text=${secret} /></p><div class="actions end"><button type="button" class="primary" onClick=${onDone}>I have it</button></div><//>`;
  return html`<${Dialog} title="New channel" onClose=${onClose}><form onSubmit=${submit}>
    <${Text} id="channel-name" label="Name" value=${name} set=${setName} required maxlength="128" placeholder="ops" />
    <div class="field"><label for="channel-kind">Kind</label><select id="channel-kind" value=${kind} onChange=${(event) => setKind(event.target.value)}>${Object.keys(FIELDS).map((one) => html`<option key=${one} selected=${one === kind}>${one}</option>`)}</select></div>
    ${FIELDS[kind].map(([one, label, more]) => html`<${Text} key=${kind + one} id="channel-${one}" label=${label} value=${values[one] ?? ""} set=${(value) => setValues({ ...values, [one]: value })} ...${more ?? {}} />`)}
    <div class="actions end"><button type="button" onClick=${onClose}>Leave it</button><button type="submit" class="primary">Save</button></div>
  </form><//>`;
}
