// What was just done, in a corner: told to screen readers, with the way back where there is one.

import { html } from "../core/html.js";
import { dismiss, held, toasts } from "../core/act.js";
import { Copy, Said } from "./basics.js";

export function Toasts() {
  const hold = () => { held.value = true; };
  const leave = () => { held.value = false; };
  return html`<div class="toasts" role="region" aria-label="What was done" aria-live="polite" onMouseEnter=${hold} onMouseLeave=${leave} onFocusIn=${hold} onFocusOut=${leave}>${toasts.value.map((one) => html`<div key=${one.id} class="toast ${one.error ? "error" : ""}" role=${one.error ? "alert" : "status"}>
    <p><${Said} text=${one.text} bare /></p>${one.remedy && html`<p class="soft"><${Said} text=${one.remedy} /></p>`}
    <div class="toast-foot">${one.see && html`<a href=${one.see} onClick=${() => dismiss(one.id)}>look at it</a>`}${one.undo && html`<button type="button" class="link" onClick=${() => { dismiss(one.id); one.undo.run(); }}>${one.undo.title}</button>`}
    ${one.command && html`<${Copy} text=${one.command} label="copy as command" />`}${one.curl && html`<${Copy} text=${one.curl} label="copy as curl" />`}
    <button type="button" class="link" aria-label="dismiss" onClick=${() => dismiss(one.id)}>×</button></div></div>`)}</div>`;
}
