// A dialog that asks for what an action needs. What fails is said in it, what was typed stays, and a script finds the same behind it.

import { html, useState } from "../core/html.js";
import { act, copies } from "../core/act.js";
import { Copy, Failure } from "./basics.js";
import { Dialog } from "./dialog.js";

/** `action` is as core/act.js has it; `after` of it closes the dialog. */
export function FormDialog({ title, action, submit = "Save", onClose, wide, disabled = false, children }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try { await act({ ...action, failed: setProblem }); } finally { setBusy(false); }
  };
  const { command, curl } = copies(action);
  return html`<${Dialog} title=${title} onClose=${onClose} wide=${wide}><form onSubmit=${run}>${children}<${Failure} error=${problem} />
    <div class="actions end"><span class="same">${command && html`<${Copy} text=${command} label="copy as command" />`} <${Copy} text=${curl} label="copy as curl" /></span><button type="button" onClick=${onClose}>Leave it</button><button type="submit" class="primary" disabled=${disabled} title=${disabled ? "Something above is missing or cannot be read." : ""} aria-busy=${busy ? "true" : null}>${submit}</button></div>
  </form><//>`;
}
