// Many things done part by part: how far it is, and a way to stop; what is done stays done.

import { html, render, signal } from "../core/html.js";
import { number } from "../core/format.js";
import { Progress } from "./basics.js";
import { Dialog } from "./dialog.js";

const SHORT = 300; // ms: what is done by then needs no bar

/**
 * Go through `parts` (an async generator of {done, skipped}) with a bar that tells how far of `total` it is.
 * Answers {done, skipped, stopped, error}: an error ends it, and what came before it is counted.
 */
export async function inParts({ title, total, parts }) {
  const so = signal({ done: 0, skipped: 0, stopped: false });
  const stop = () => { so.value = { ...so.value, stopped: true }; };
  const place = document.createElement("div");
  document.body.append(place);
  const timer = setTimeout(() => render(html`<${Going} title=${title} total=${total} so=${so} stop=${stop} />`, place), SHORT);
  try {
    for await (const { done, skipped = 0 } of parts) {
      so.value = { ...so.value, done: so.value.done + done, skipped: so.value.skipped + skipped };
      if (so.value.stopped) break;
    }
    return so.value;
  } catch (error) {
    return { ...so.value, error };
  } finally {
    clearTimeout(timer);
    render(null, place);
    place.remove();
  }
}

function Going({ title, total, so, stop }) {
  const { done, skipped, stopped } = so.value;
  const far = done + skipped;
  return html`<${Dialog} title=${title} onClose=${stop}>
    <div role="status"><${Progress} value=${total ? (100 * far) / Math.max(far, total) : 0} message="${number(far)} of ${number(total)}" /></div>
    <div class="actions end"><button type="button" disabled=${stopped} onClick=${stop}>${stopped ? "Stopping …" : "Stop here"}</button></div><//>`;
}

/** A list cut into parts of a size. */
export const cut = (list, size) => Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
