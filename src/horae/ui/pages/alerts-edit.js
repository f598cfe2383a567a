// The forms of rules and channels.

import { html, useState } from "../core/html.js";
import { useData } from "../core/data.js";
import { ownValue } from "../core/script.js";
import { Copy, Failure } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Field } from "../parts/fields.js";
import { FormDialog } from "../parts/form-dialog.js";
import { CHANNELS, RULES } from "../core/alert-fields.js";

const rulesBy = Object.fromEntries(RULES.map((one) => [one.kind, one]));
const channelsBy = Object.fromEntries(CHANNELS.map((one) => [one.kind, one]));
const NUMBERS = new Set(["integer", "number"]);
const EXAMPLES = { jobs: "backup-*", queues: "reports", workers: "gpu-*" };
const split = (text) => text.split(/[\s,]+/).filter(Boolean);

/** What a field is called in a form: "repeatEvery" is "repeat every". */
const wordsOf = (name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
// What the form has no field for stays as it was, but for the fields of other kinds.
const OWN = new Set(["name", "kind", "severity", "channels", "repeatEvery", ...RULES.flatMap(({ fields }) => fields.map((one) => one.name))]);

export function EditRule({ rule, onClose, onDone }) {
  const old = rule.definition ?? {};
  const channels = useData("/alert-channels", { limit: 100 });
  const [name, setName] = useState(rule.name ?? "");
  const [kind, setKind] = useState(rule.kind ?? "failures-in-a-row");
  const about = rulesBy[kind].fields.find((one) => one.isSubject);
  const fields = rulesBy[kind].fields.filter((one) => !one.isSubject);
  const [subjects, setSubjects] = useState((old[about.name] ?? []).join(", "));
  const [values, setValues] = useState(Object.fromEntries(fields.map(({ name: one }) => [one, String(old[one] ?? "")])));
  const [told, setTold] = useState(rule.channels ?? []);
  const [severity, setSeverity] = useState(rule.severity ?? "warning");
  const [repeat, setRepeat] = useState(old.repeatEvery ?? "");
  const set = fields.filter((one) => (values[one.name] ?? "") !== "");
  const kept = Object.entries(old).filter(([one]) => !OWN.has(one));
  const body = {
    ...Object.fromEntries(kept), kind, severity, channels: told, ...(subjects ? { [about.name]: split(subjects) } : {}), ...(repeat ? { repeatEvery: repeat } : {}),
    ...Object.fromEntries(set.map((one) => [one.name, NUMBERS.has(one.kind) ? Number(values[one.name]) : values[one.name]])),
  };
  const action = {
    title: "Save the rule", method: "PUT", path: `/alert-rules/${encodeURIComponent(name)}`, body, done: `${name} is looked at from now on.`, after: onDone,
    cli: ["alerts", "rules", "put", name || "NAME", "--kind", kind, "--severity", severity, ...split(subjects).flatMap((one) => [about.flag, one]), ...set.flatMap((one) => [one.flag, values[one.name]]), ...told.flatMap((one) => ["--channel", one]), ...(repeat ? ["--repeat-every", repeat] : [])],
  };
  const toggle = (one) => setTold(told.includes(one) ? told.filter((other) => other !== one) : [...told, one]);
  return html`<${FormDialog} title=${rule.name ? `Rule ${rule.name}` : "New rule"} action=${action} onClose=${onClose}>
    ${!rule.name && html`<${Field} label="Name" value=${name} onChange=${setName} required maxlength="128" placeholder="nightly" />`}
    <${Field} label="Tell when" value=${kind} onChange=${(next) => { setKind(next); setValues({}); }} options=${RULES.map((one) => [one.kind, `${one.about.replace(/[.:].*/, "")} (${one.kind})`])} />
    <${Field} label=${`Which ${about.name} (names or patterns, empty: all)`} value=${subjects} onChange=${setSubjects} placeholder=${EXAMPLES[about.name]} />
    ${fields.map((one) => html`<${Field} key=${kind + one.name} label=${wordsOf(one.name)} hint=${one.help} value=${values[one.name] ?? ""} onChange=${(value) => setValues({ ...values, [one.name]: value })} placeholder=${String(one.default)} />`)}
    <${Field} label="Severity" value=${severity} onChange=${setSeverity} options=${[["info"], ["warning"], ["critical"]]} />
    <${Field} label="Remind every (empty: never)" value=${repeat} onChange=${setRepeat} placeholder="4h" />
    <fieldset class="plain"><legend class="small soft">Channels</legend>${(channels.data?.items ?? []).map((one) => html`<label key=${one.name} class="line"><input type="checkbox" checked=${told.includes(one.name)} onChange=${() => toggle(one.name)} /> ${one.name} <span class="soft">(${one.kind})</span></label>`)}${channels.data && !channels.data.items.length && html`<p class="soft small">There are none yet: the alert is only listed here.</p>`}<${Failure} error=${channels.error} /></fieldset>
  <//>`;
}

// Fields of channels that a form can take. What is private is not told again, and stays unless given.
const placesOf = (kind) => channelsBy[kind].fields.filter((one) => one.given !== "pairs");
const STAYS = "stays as it is unless given";

export function EditChannel({ channel, onClose, onDone }) {
  const isNew = !channel.name;
  const [name, setName] = useState(channel.name ?? "");
  const [kind, setKind] = useState(channel.kind ?? "webhook");
  const shown = (one) => (one.isPrivate || kind !== channel.kind ? "" : [channel.to?.[one.name] ?? ""].flat().join(", "));
  const [values, setValues] = useState(Object.fromEntries(placesOf(kind).map((one) => [one.name, shown(one)])));
  const [secret, setSecret] = useState(null);
  const read = (one) => (one.given === "repeated" ? split(values[one.name]) : NUMBERS.has(one.kind) ? Number(values[one.name]) : values[one.name]);
  const given = placesOf(kind).filter((one) => values[one.name]);
  const worded = (value, one) => (one.isPrivate && !value.startsWith("secret://") ? ownValue(one.name) : value);
  const action = {
    title: "Save the channel", method: "PUT", path: `/alert-channels/${encodeURIComponent(name)}`, hide: placesOf(kind).filter((one) => one.isPrivate).map((one) => one.name),
    body: { kind, ...(channel.description ? { description: channel.description } : {}), ...Object.fromEntries(given.map((one) => [one.name, read(one)])) },
    cli: ["alerts", "channels", "put", name || "NAME", ...given.flatMap((one) => [read(one)].flat().flatMap((each) => [one.flag, worded(String(each), one)]))],
    done: `${name} is there; test it.`, after: (answer) => { if (answer.secret) setSecret(answer.secret); else onDone(); },
  };
  if (secret) return html`<${Dialog} title="What it is signed with" onClose=${onDone}><p>It is told this once; the receiver checks signatures with it.</p><p class="command"><code>${secret}</code> <${Copy} text=${secret} /></p><div class="actions end"><button type="button" class="primary" onClick=${onDone}>I have it</button></div><//>`;
  return html`<${FormDialog} title=${isNew ? "New channel" : `Channel ${name}`} action=${action} onClose=${onClose}>
    ${isNew && html`<${Field} label="Name" value=${name} onChange=${setName} required maxlength="128" placeholder="ops" />
      <${Field} label="Kind" value=${kind} onChange=${(next) => { setKind(next); setValues({}); }} options=${CHANNELS.map((one) => [one.kind])} />`}
    ${placesOf(kind).map((one) => html`<${Field} key=${kind + one.name} label=${wordsOf(one.name)} hint=${one.help} options=${one.words && one.words.map((word) => [word])} type=${one.name === "password" ? "password" : "text"} value=${values[one.name] || (one.words ? one.default : "")} onChange=${(value) => setValues({ ...values, [one.name]: value })} required=${one.isRequired && (isNew || !one.isPrivate)} placeholder=${!isNew && one.isPrivate ? STAYS : [one.example ?? one.default ?? ""].flat().join(", ")} />`)}
  <//>`;
}
