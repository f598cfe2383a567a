// The keyboard: one listener, the newest binding of a key wins. Nothing is taken from who is typing.

import { useEffect, useRef } from "./html.js";

const bindings = []; // refs to {keys: {key: run}, first}
const typing = (element) => element?.closest?.("input, textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const palette = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
  if (!palette && (event.metaKey || event.ctrlKey || event.altKey)) return;
  if (!palette && event.key !== "Escape" && (typing(event.target) || document.querySelector("dialog[open]"))) return;
  const key = palette ? "ctrl-k" : event.key;
  for (const binding of [...bindings].reverse().sort((a, b) => b.current.first - a.current.first)) {
    const run = binding.current.keys[key];
    if (!run || run(event) === false) continue;
    event.preventDefault();
    return;
  }
});

/**
 * Bind keys while a component is shown: useKeys({ j: next, "/": search }). A run that answers false leaves the key to others.
 * What was shown last is asked first, unless somebody is `first`.
 */
export function useKeys(keys, { first = false } = {}) {
  const binding = useRef(null);
  binding.current = { keys, first: Number(first) };
  useEffect(() => {
    bindings.push(binding);
    return () => { bindings.splice(bindings.indexOf(binding), 1); };
  }, []);
}
