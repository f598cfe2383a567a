// The keyboard: one listener, the newest binding of a key wins. Nothing is taken from who is typing.

import { useEffect, useRef } from "./html.js";

const bindings = []; // refs to {key: run}
const typing = (element) => element?.closest?.("input, textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const palette = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
  if (!palette && (event.metaKey || event.ctrlKey || event.altKey)) return;
  if (!palette && event.key !== "Escape" && (typing(event.target) || document.querySelector("dialog[open]"))) return;
  const key = palette ? "ctrl-k" : event.key;
  for (let at = bindings.length - 1; at >= 0; at -= 1) {
    const run = bindings[at].current[key];
    if (!run) continue;
    if (run(event) !== false) event.preventDefault();
    return;
  }
});

/** Bind keys while a component is shown: useKeys({ j: next, "/": search }). A run that answers false leaves the key alone. */
export function useKeys(keys) {
  const binding = useRef(keys);
  binding.current = keys;
  useEffect(() => {
    bindings.push(binding);
    return () => { bindings.splice(bindings.indexOf(binding), 1); };
  }, []);
}
