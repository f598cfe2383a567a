// One labelled field of a form, with a hint below it that becomes a complaint.

import { html, useId } from "../core/html.js";
import { Said } from "./basics.js";

/** value and onChange(value) are texts; `options` ([[value, word]]) makes it a choice, `rows` a text of many lines. */
export function Field({ label, hint, problem, value, onChange, type = "text", options, rows, ...more }) {
  const id = useId();
  const common = { id, "aria-describedby": `${id}-hint`, "aria-invalid": problem ? "true" : null, ...more };
  const typed = (event) => onChange(event.target.value);
  const input = options
    ? html`<select ...${common} value=${value ?? ""} onChange=${typed}>${options.map(([key, word]) => html`<option key=${key} value=${key} selected=${key === (value ?? "")}>${word ?? key}</option>`)}</select>`
    : rows
      ? html`<textarea ...${common} rows=${rows} spellcheck="false" value=${value ?? ""} onInput=${typed}></textarea>`
      : html`<input ...${common} type=${type} value=${value ?? ""} onInput=${typed} autocomplete="off" />`;
  return html`<div class="field"><label for=${id}>${label}</label>${input}<p id="${id}-hint" class=${problem ? "complaint" : "soft small"}><${Said} text=${problem || hint || ""} bare /></p></div>`;
}

/** A yes or no. */
export function Tick({ label, hint, value, onChange }) {
  const id = useId();
  return html`<div class="field tick-field"><span><input id=${id} type="checkbox" checked=${Boolean(value)} onChange=${(event) => onChange(event.target.checked)} /> <label for=${id}>${label}</label></span>${hint && html`<p class="soft small">${hint}</p>`}</div>`;
}

/** A field of a simple kind, as its table describes it. */
export function TableField({ field, value, onChange, problem }) {
  const { name, kind, help, default: usual } = field;
  const hint = usual === null || usual === "" ? help : `${help} ${usual} if empty.`;
  const common = { label: name, hint, problem };
  if (kind === "flag") return html`<${Field} ...${common} value=${value === undefined ? "" : String(value)} options=${[["", "as usual"], ["true", "true"], ["false", "false"]]} onChange=${(next) => onChange(next === "" ? undefined : next === "true")} />`;
  if (kind === "choice") return html`<${Field} ...${common} value=${value} options=${[["", "as usual"], ...field.words.map((word) => [word, word])]} onChange=${onChange} />`;
  if (kind === "integer" || kind === "number") return html`<${Field} ...${common} type="number" min=${field.least} max=${field.most} value=${value} onChange=${(next) => onChange(next === "" ? undefined : Number(next))} />`;
  return html`<${Field} ...${common} value=${value} onChange=${onChange} />`;
}
