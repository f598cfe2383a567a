// The whole definition as JSON: everything that the form has no field for.

import { html, useId, useState } from "../core/html.js";
import { Copy, Panel } from "../parts/basics.js";

/** onChange(value, wrong): the object, or why it cannot be read. */
export function Whole({ value, onChange }) {
  const id = useId();
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState(null);
  const typed = (next) => {
    setText(next);
    let read;
    let bad = null;
    try {
      read = JSON.parse(next);
      if (read === null || typeof read !== "object" || Array.isArray(read)) bad = "A definition is an object: { … }.";
    } catch (error) { bad = `This is not JSON: ${error.message}`; }
    setWrong(bad);
    onChange(bad ? undefined : read, bad);
  };
  // Tab leaves the field as everywhere; two spaces are typed as they are.
  return html`<${Panel} title="The whole definition" actions=${html`<${Copy} text=${text} />`}><div class="field"><label for=${id}>${"JSON, as `horae apply` and the API take it"}</label>
    <textarea id=${id} class="whole" spellcheck="false" rows="28" value=${text} aria-invalid=${wrong ? "true" : null} aria-describedby="${id}-hint" onInput=${(event) => typed(event.target.value)}></textarea>
    <p id="${id}-hint" class=${wrong ? "complaint" : "soft small"}>${wrong ?? "All fields are in docs/rest.md; what is left out is the default."}</p></div><//>`;
}
