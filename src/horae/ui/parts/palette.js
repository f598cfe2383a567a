// Ctrl-K: go to a page, a job or an execution by typing a part of its name. core/commands.js says what there is.

import { html, useEffect, useRef, useState } from "../core/html.js";
import { go } from "../core/route.js";
import { Dialog } from "./dialog.js";
import { found } from "../core/commands.js";

export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [{ items, of }, setFound] = useState({ items: [], of: null });
  const [at, setAt] = useState(0);
  const list = useRef(null);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(async () => { const next = await found(text.trim()); if (current) { setFound({ items: next, of: text }); setAt(0); } }, text ? 120 : 0);
    return () => { current = false; clearTimeout(timer); };
  }, [text]);
  useEffect(() => { list.current?.children[at]?.scrollIntoView({ block: "nearest" }); }, [at]);
  const run = (item) => { if (!item) return; onClose(); if (item.run) item.run(); else go(item.to); };
  const pressed = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) { setAt((at + step + items.length) % items.length); event.preventDefault(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (of === text) run(items[at]);
    else found(text.trim()).then((next) => run(next[0])); // who types fast means what was typed, not what is shown still
  };
  return html`<${Dialog} title="Go to or do" onClose=${onClose}>
    <input class="palette-input" autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${items[at] ? `palette-${at}` : null} aria-label="a page, a job, a queue, an execution's id, pause or trigger a job" placeholder="a page, a job, an execution's id, or: trigger …" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed} />
    <ul id="palette-list" class="palette-list" role="listbox" aria-label="what was found" ref=${list}>${items.map((item, place) => html`<li key=${item.to ?? item.title} id="palette-${place}" role="option" aria-selected=${place === at ? "true" : "false"} onClick=${() => run(item)} onMouseMove=${() => setAt(place)}><span>${item.title}</span><span class="soft small">${item.hint ?? ""}</span></li>`)}</ul>
    ${!items.length && html`<p class="soft">Nothing of that name.</p>`}
  <//>`;
}
