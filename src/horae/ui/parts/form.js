// A form made from a JSON schema: one field per property, checked while it is typed; what has no simple field is JSON.
// What it shows is what it gives: a default that stands in a field is part of the value.

import { html, useState, useId } from "../core/html.js";
import { complaint, initial, inputOf, kindOf, options, resolved } from "./schema.js";
import { Said } from "./basics.js";

/**
 * schema: of an object; value: the object; onChange(value, unread) with how many fields cannot be read at all.
 * `strict` complains of untouched fields as well; `told` ({path, detail}) is what the server said, of which field;
 * `own` is what stands in for a field that is left empty.
 */
export function SchemaForm({ schema, value = {}, onChange, strict = false, told, own = {}, root = schema }) {
  const [unread, setUnread] = useState({});
  const fields = Object.entries(schema?.properties ?? {});
  const needed = new Set(schema?.required ?? []);
  const tell = (name, values, bad) => {
    const now = { ...unread, [name]: Number(bad) };
    setUnread(now);
    onChange(values, Object.values(now).reduce((sum, n) => sum + n, 0));
  };
  const change = (name) => (next, bad = 0) => {
    const values = { ...value };
    if (next === undefined) delete values[name]; else values[name] = next;
    tell(name, values, bad);
  };
  if (!fields.length) return html`<${JsonField} label="params" value=${Object.keys(value).length ? value : undefined} told=${told?.detail} onChange=${(next, bad) => onChange(bad ? value : next ?? {}, bad ? 1 : 0)} />`;
  return html`<div class="form">${fields.map(([name, one]) => html`<${Field} key=${name} name=${name} schema=${resolved(one, root)} root=${root} needed=${needed.has(name)} value=${value[name]} own=${own?.[name]} strict=${strict} told=${under(told, name)} onChange=${change(name)} />`)}
    ${fields.length > 0 && schema.additionalProperties && html`<${Further} schema=${schema} value=${value} onChange=${(values, bad) => tell("", values, bad)} />`}</div>`;
}

const under = (told, name) => (told && (told.path[0] === name) ? { path: told.path.slice(1), detail: told.detail } : null);

/** What the schema allows beside its own fields. */
function Further({ schema, value, onChange }) {
  const named = Object.entries(value).filter(([name]) => name in schema.properties);
  const others = Object.entries(value).filter(([name]) => !(name in schema.properties));
  return html`<details><summary>Further ones</summary><${JsonField} label="others" rows=${3} hint="names and values that have no field here" value=${others.length ? Object.fromEntries(others) : undefined} onChange=${(next, bad) => onChange(bad ? value : { ...next, ...Object.fromEntries(named) }, bad ? 1 : 0)} /></details>`;
}

function Field({ name, schema, root, needed, value, own, strict, told, onChange }) {
  const id = useId();
  const [touched, setTouched] = useState(false);
  const kind = kindOf(schema, root);
  const label = schema.title ?? name;
  const set = (next, bad) => { setTouched(true); onChange(next, bad ? 1 : 0); };
  const problem = told?.detail ?? complaint(schema, value, needed && (strict || touched), root);
  const hint = [schema.description, schema.format === "date-time" && "In your time.", schema.deprecated && "Better not used any more.", own !== undefined && own !== null && value === undefined && `If it is empty, the job's own is used: ${JSON.stringify(own)}.`].filter(Boolean).join(" ");
  if (kind === "group") return html`<${Group} id=${id} label=${label} hint=${hint} ...${{ schema, root, needed, value, own, strict, told, problem: told?.path.length ? null : problem }} onChange=${onChange} />`;
  const told_ = html`<p id="${id}-hint" class=${problem ? "complaint" : "soft small"}><${Said} text=${problem || hint} bare /></p>`;
  if (kind === "json") return html`<${JsonField} label=${label + (needed ? " (needed)" : "")} value=${value} hint=${hint || kinds(schema)} told=${problem} onChange=${set} />`;
  const common = { id, "aria-describedby": `${id}-hint`, "aria-invalid": problem ? "true" : null, "aria-required": needed ? "true" : null, disabled: schema.readOnly };
  return html`<div class="field"><label for=${id}>${label}${needed ? " (needed)" : ""}</label><${INPUT[kind]} ...${{ common, schema, root, value, set, needed }} />${told_}</div>`;
}

const kinds = (schema) => { const types = [schema.type, ...(schema.anyOf ?? schema.oneOf ?? []).map((one) => one.type)].flat().filter(Boolean); return types.length > 1 ? `${types.join(" or ")}; a text stands in "quotes"` : ""; };

/** An object within: its own fields, which are there only once somebody wants it. */
function Group({ id, label, hint, schema, root, needed, value, own, strict, told, problem, onChange }) {
  const there = value !== undefined && value !== null;
  return html`<fieldset class="field group"><legend>${needed ? `${label} (needed)` : html`<label><input type="checkbox" checked=${there} onChange=${(event) => onChange(event.target.checked ? initial(schema, own ?? {}, root) : undefined)} /> ${label}</label>`}</legend>
    <p id="${id}-hint" class=${problem ? "complaint" : "soft small"}>${problem || hint}</p>
    ${there && html`<${SchemaForm} schema=${schema} root=${root} value=${value} strict=${strict} told=${told} onChange=${onChange} />`}</fieldset>`;
}

const local = (text) => { const at = new Date(text); return Number.isNaN(at.getTime()) ? "" : new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16); };
const instant = (text) => { const at = new Date(text); return Number.isNaN(at.getTime()) ? undefined : at.toISOString(); };

// A choice is known by its place: "1" and 1, or null and "null", are different ones.
function Choice({ common, schema, value, set }) {
  const all = options(schema);
  const at = all.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  return html`<select ...${common} value=${at < 0 ? "" : String(at)} onChange=${(event) => set(all[event.target.value])}><option value="" selected=${at < 0}></option>${all.map((one, place) => html`<option key=${place} value=${String(place)} selected=${place === at}>${schema.words?.[place] ?? String(one)}</option>`)}</select>`;
}

function TickField({ common, schema, value, set, needed }) {
  if (schema.default === undefined && !needed || schema.nullable) return html`<${Choice} ...${{ common, value, set }} schema=${{ enum: [true, false], words: ["yes", "no"] }} />`;
  return html`<input ...${common} type="checkbox" checked=${value === true} onChange=${(event) => set(event.target.checked)} />`;
}

function NumberField({ common, schema, value, set }) {
  const [text, setText] = useState(value ?? ""); // as it is typed: "1." is on its way to 1.5
  const typed = ({ target }) => {
    setText(target.value);
    if (target.validity.badInput) set(undefined, "not a number");
    else set(target.value === "" ? undefined : Number(target.value));
  };
  return html`<input ...${common} type="number" step="any" min=${schema.minimum} max=${schema.maximum} placeholder=${example(schema)} value=${text} onInput=${typed} />`;
}

function TextField({ common, schema, value, set }) {
  const type = inputOf(schema);
  const moment = type === "datetime-local";
  const typed = (event) => { const text = event.target.value; set(text === "" ? undefined : moment ? instant(text) : type === "time" && text.length === 5 ? `${text}:00` : text); };
  if (!type || String(value ?? "").includes("\n")) return html`<textarea ...${common} rows="4" spellcheck="false" placeholder=${example(schema)} value=${value ?? ""} onInput=${typed}></textarea>`;
  return html`<input ...${common} type=${type} step=${type === "time" ? "1" : null} autocomplete=${type === "password" ? "new-password" : "off"} placeholder=${example(schema)} value=${moment ? local(value) : value ?? ""} onInput=${typed} />`;
}

const example = (schema) => (schema.examples?.length ? String(schema.examples[0]) : null);

/** A list of texts or numbers, one on each line. */
function Lines({ common, schema, root, value, set }) {
  const item = resolved(schema.items, root);
  const [text, setText] = useState((value ?? []).join("\n"));
  const typed = (event) => {
    const next = event.target.value;
    setText(next);
    const lines = next.split("\n").filter((line) => line !== "");
    set(lines.length ? lines.map((line) => (item.type === "string" ? line : Number(line.trim()))) : undefined);
  };
  return html`<textarea ...${common} rows=${Math.min(8, Math.max(3, text.split("\n").length + 1))} spellcheck="false" placeholder="one on each line" value=${text} onInput=${typed}></textarea>`;
}

const INPUT = { choice: Choice, tick: TickField, number: NumberField, text: TextField, lines: Lines };

/** A value as JSON, checked while it is typed. */
export function JsonField({ label, value, hint, told, onChange, rows = 5 }) {
  const id = useId();
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [wrong, setProblem] = useState(null);
  const problem = wrong ?? told;
  const typed = (event) => {
    const next = event.target.value;
    setText(next);
    let parsed;
    let bad = null;
    if (next.trim()) { try { parsed = JSON.parse(next); } catch (error) { bad = `not JSON: ${error.message}`; } }
    setProblem(bad);
    onChange(parsed, bad);
  };
  return html`<div class="field"><label for=${id}>${`${label} (JSON)`}</label><textarea id=${id} rows=${rows} spellcheck="false" aria-describedby="${id}-hint" aria-invalid=${problem ? "true" : null} value=${text} onInput=${typed}></textarea><p id="${id}-hint" class=${problem ? "complaint" : "soft small"}>${problem ?? hint ?? ""}</p></div>`;
}
