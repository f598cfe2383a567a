// The forms of rules and channels.

import { html, useState } from "../core/html.js";
import { useData } from "../core/data.js";
import { ownValue } from "../core/script.js";
import { Copy, Failure } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";

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
// What the fields are called in the form.
const WORDS = {
  count: "How many in a row", below: "Below this share of successes", above: "Above so many retries for each execution", window: "Counted over the last", minimum: "With at least so many executions",
  times: "So many times its usual longest", atLeast: "And for longer than", since: "For so long", margin: "So long before the deadline", after: "For longer than", within: "Told for so long",
};
const NUMBERS = new Set(["count", "minimum", "times"]);
const split = (text) => text.split(/[\s,]+/).filter(Boolean);

// What the form has no field for stays as it was.
const OWN = ["name", "kind", "severity", "channels", "jobs", "queues", "workers", "repeatEvery"];

export function EditRule({ rule, onClose, onDone }) {
  const old = rule.definition ?? {};
  const channels = useData("/alert-channels", { limit: 100 });
  const [name, setName] = useState(rule.name ?? "");
  const [kind, setKind] = useState(rule.kind ?? "failures-in-a-row");
  const [about, , fields] = KINDS[kind];
  const [subjects, setSubjects] = useState((old.jobs ?? old.queues ?? old.workers ?? []).join(", "));
  const [values, setValues] = useState(Object.fromEntries(Object.keys(fields).map((one) => [one, String(old[one] ?? "")])));
  const [told, setTold] = useState(rule.channels ?? []);
  const [severity, setSeverity] = useState(rule.severity ?? "warning");
  const [repeat, setRepeat] = useState(old.repeatEvery ?? "");
  const set = Object.entries(values).filter(([one, value]) => one in fields && value !== "");
  const kept = Object.entries(old).filter(([one]) => !OWN.includes(one) && !Object.values(KINDS).some(([, , known]) => one in known));
  const body = {
    ...Object.fromEntries(kept), kind, severity, channels: told, ...(subjects ? { [about]: split(subjects) } : {}), ...(repeat ? { repeatEvery: repeat } : {}),
    ...Object.fromEntries(set.map(([one, value]) => [one, NUMBERS.has(one) ? Number(value) : value])),
  };
  const action = {
    title: "Save the rule", method: "PUT", path: `/alert-rules/${encodeURIComponent(name)}`, body, done: `${name} is looked at from now on.`, after: onDone,
    cli: ["alerts", "rules", "put", name || "NAME", "--kind", kind, "--severity", severity, ...split(subjects).flatMap((one) => [`--${about.slice(0, -1)}`, one]), ...set.flatMap(([one, value]) => ["--set", `${one}=${value}`]), ...told.flatMap((one) => ["--channel", one]), ...(repeat ? ["--repeat-every", repeat] : [])],
  };
  const toggle = (one) => setTold(told.includes(one) ? told.filter((other) => other !== one) : [...told, one]);
  return html`<${FormDialog} title=${rule.name ? `Rule ${rule.name}` : "New rule"} action=${action} onClose=${onClose}>
    ${!rule.name && html`<${Field} label="Name" value=${name} onChange=${setName} required maxlength="128" placeholder="nightly" />`}
    <${Field} label="Tell when" value=${kind} onChange=${(next) => { setKind(next); setValues({}); }} options=${Object.entries(KINDS).map(([one, [, words]]) => [one, `${words} (${one})`])} />
    <${Field} label=${`Which ${about} (names or patterns, empty: all)`} value=${subjects} onChange=${setSubjects} placeholder=${{ jobs: "backup-*", queues: "reports", workers: "gpu-*" }[about]} />
    ${Object.entries(fields).map(([one, usually]) => html`<${Field} key=${kind + one} label=${WORDS[one]} value=${values[one] ?? ""} onChange=${(value) => setValues({ ...values, [one]: value })} placeholder=${usually} />`)}
    <${Field} label="Severity" value=${severity} onChange=${setSeverity} options=${[["info"], ["warning"], ["critical"]]} />
    <${Field} label="Remind every (empty: never)" value=${repeat} onChange=${setRepeat} placeholder="4h" />
    <fieldset class="plain"><legend class="small soft">Channels</legend>${(channels.data?.items ?? []).map((one) => html`<label key=${one.name} class="line"><input type="checkbox" checked=${told.includes(one.name)} onChange=${() => toggle(one.name)} /> ${one.name} <span class="soft">(${one.kind})</span></label>`)}${channels.data && !channels.data.items.length && html`<p class="soft small">There are none yet: the alert is only listed here.</p>`}<${Failure} error=${channels.error} /></fieldset>
  <//>`;
}

// kind: its fields [name in the API, in words, option of the command, more]; what is secret is not told again, and stays unless given.
const PLACES = {
  webhook: [["url", "URL", "--webhook", { type: "url", secret: true, placeholder: "https://example.com/alerts" }]],
  email: [
    ["to", "To", "--email", { many: true }], ["from", "From", "--from", {}], ["host", "SMTP server", "--smtp", {}], ["username", "User", "--user", { optional: true }],
    ["password", "Password, or secret://NAME", "--password", { type: "password", secret: true, optional: true }],
  ],
  apprise: [["urls", "URLs, as apprise spells them", "--apprise", { many: true, secret: true }]],
};
const STAYS = "stays as it is unless given";

export function EditChannel({ channel, onClose, onDone }) {
  const isNew = !channel.name;
  const [name, setName] = useState(channel.name ?? "");
  const [kind, setKind] = useState(channel.kind ?? "webhook");
  const shown = (one, { secret }) => (secret || kind !== channel.kind ? "" : [channel.to?.[one] ?? ""].flat().join(", "));
  const [values, setValues] = useState(Object.fromEntries(PLACES[kind].map(([one, , , more]) => [one, shown(one, more)])));
  const [secret, setSecret] = useState(null);
  const given = PLACES[kind].filter(([one]) => values[one]).map(([one, , option, more]) => [one, more.many ? split(values[one]) : values[one], option, more]);
  const kept = kind === channel.kind && kind === "email" ? Object.fromEntries(["port", "tls"].filter((one) => channel.to?.[one]).map((one) => [one, channel.to[one]])) : {};
  const worded = (value, one, more) => (more.secret && !value.startsWith("secret://") ? ownValue(one) : value);
  const action = {
    title: "Save the channel", method: "PUT", path: `/alert-channels/${encodeURIComponent(name)}`, hide: PLACES[kind].filter(([, , , more]) => more.secret).map(([one]) => one),
    body: { kind, ...(channel.description ? { description: channel.description } : {}), ...kept, ...Object.fromEntries(given.map(([one, value]) => [one, value])) },
    cli: ["alerts", "channels", "put", name || "NAME", ...given.flatMap(([one, value, option, more]) => [value].flat().flatMap((each) => [option, worded(each, one, more)]))],
    done: `${name} is there; test it.`, after: (answer) => { if (answer.secret) setSecret(answer.secret); else onDone(); },
  };
  if (secret) return html`<${Dialog} title="What it is signed with" onClose=${onDone}><p>It is told this once; the receiver checks signatures with it.</p><p class="command"><code>${secret}</code> <${Copy} text=${secret} /></p><div class="actions end"><button type="button" class="primary" onClick=${onDone}>I have it</button></div><//>`;
  return html`<${FormDialog} title=${isNew ? "New channel" : `Channel ${name}`} action=${action} onClose=${onClose}>
    ${isNew && html`<${Field} label="Name" value=${name} onChange=${setName} required maxlength="128" placeholder="ops" />
      <${Field} label="Kind" value=${kind} onChange=${(next) => { setKind(next); setValues({}); }} options=${Object.keys(PLACES).map((one) => [one])} />`}
    ${PLACES[kind].map(([one, label, , { type, placeholder, optional, secret: hidden }]) => html`<${Field} key=${kind + one} label=${label} type=${type ?? "text"} value=${values[one] ?? ""} onChange=${(value) => setValues({ ...values, [one]: value })} required=${!optional && (isNew || !hidden)} placeholder=${!isNew && hidden ? STAYS : placeholder} />`)}
  <//>`;
}
