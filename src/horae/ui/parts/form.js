// A form made from a JSON schema: one field per property, checked while it is typed; what has no simple field is JSON.

import { html, useState, useId } from "../core/html.js";

const kindOf = (schema) => {
  if (schema.enum) return "choice";
  const type = [schema.type].flat().find((one) => one !== "null");
  return { string: "text", integer: "number", number: "number", boolean: "tick" }[type] ?? "json";
};

/** What is wrong with one value, in words; null if nothing that can be seen here. The server looks again. */
export function complaint(schema, value, required) {
  if (value === undefined || value === "") return required ? "needed" : null;
  const kind = kindOf(schema);
  if (kind === "number") {
    if (Number.isNaN(value)) return "not a number";
    if (schema.type === "integer" && !Number.isInteger(value)) return "not a whole number";
    if (schema.minimum !== undefined && value < schema.minimum) return `at least ${schema.minimum}`;
    if (schema.maximum !== undefined && value > schema.maximum) return `at most ${schema.maximum}`;
  }
  if (kind === "text") {
    if (schema.minLength && value.length < schema.minLength) return `at least ${schema.minLength} characters`;
    if (schema.maxLength !== undefined && value.length > schema.maxLength) return `at most ${schema.maxLength} characters`;
    if (schema.pattern) { try { if (!new RegExp(schema.pattern, "u").test(value)) return `must match ${schema.pattern}`; } catch { /* the server knows */ } }
  }
  return null;
}

/** How many of an object's fields are wrong, also those that nobody touched. */
export const complaints = (schema, value) =>
  Object.entries(schema?.properties ?? {}).filter(([name, one]) => complaint(one, value[name] ?? one.default, (schema.required ?? []).includes(name))).length;

/**
 * schema: of an object; value: the object; onChange(value, problems) with the number of complaints.
 * `strict` complains of untouched fields as well, `told` is what the server said, by name.
 */
export function SchemaForm({ schema, value = {}, onChange, strict = false, told = {} }) {
  const [problems, setProblems] = useState({});
  const fields = Object.entries(schema?.properties ?? {});
  const needed = new Set(schema?.required ?? []);
  const change = (name, next, problem) => {
    const values = { ...value };
    if (next === undefined || next === "") delete values[name]; else values[name] = next;
    const now = { ...problems, [name]: problem };
    setProblems(now);
    onChange(values, Object.values(now).filter(Boolean).length);
  };
  if (!fields.length) return html`<${JsonField} label="params" value=${value} onChange=${(next, problem) => { setProblems({ all: problem }); if (!problem) onChange(next ?? {}, 0); else onChange(value, 1); }} />`;
  return html`<div class="form">${fields.map(([name, one]) => html`<${Field} key=${name} name=${name} schema=${one} needed=${needed.has(name)} value=${value[name]} problem=${problems[name] ?? told[name] ?? (strict ? complaint(one, value[name] ?? one.default, needed.has(name)) : null)} onChange=${(next, problem) => change(name, next, problem)} />`)}</div>`;
}

function Field({ name, schema, needed, value, problem, onChange }) {
  const id = useId();
  const kind = kindOf(schema);
  const label = schema.title ?? name;
  if (kind === "json") return html`<${JsonField} label=${label} value=${value ?? schema.default} hint=${schema.description} told=${problem} onChange=${onChange} />`;
  const set = (next) => onChange(next, complaint(schema, next, needed));
  const shown = value ?? schema.default ?? "";
  const common = { id, "aria-describedby": `${id}-hint`, "aria-invalid": problem ? "true" : null, required: needed };
  const input = kind === "choice"
    ? html`<select ...${common} value=${String(shown)} onChange=${(event) => set(schema.enum.find((one) => String(one) === event.target.value))}>${!needed && html`<option value=""></option>`}${schema.enum.map((one) => html`<option key=${one} value=${String(one)}>${String(one)}</option>`)}</select>`
    : kind === "tick"
      ? html`<input ...${common} required=${false} type="checkbox" checked=${Boolean(shown)} onChange=${(event) => set(event.target.checked)} />`
      : html`<input ...${common} type=${kind === "number" ? "number" : "text"} step="any" value=${shown} onInput=${(event) => set(kind === "number" ? (event.target.value === "" ? undefined : Number(event.target.value)) : event.target.value)} />`;
  return html`<div class="field"><label for=${id}>${label}${needed ? " (needed)" : ""}</label>${input}<p id="${id}-hint" class=${problem ? "complaint" : "soft small"}>${problem ?? schema.description ?? ""}</p></div>`;
}

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
