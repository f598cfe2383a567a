// What floats: dialogs, questions and menus. The browser's own dialog keeps the focus inside; it comes back to where it was.

import { html, render, useEffect, useRef, useState, useId } from "../core/html.js";

/** Give the focus back to what had it; if that is gone or cannot take it, the content has it: it is lost nowhere. */
function giveBack(opener) {
  if (opener?.isConnected && opener !== document.body) opener.focus();
  if (document.activeElement === document.body || document.activeElement === null) document.getElementById("content")?.focus({ preventScroll: true });
}

export function Dialog({ title, children, onClose, wide = false }) {
  const box = useRef(null);
  const opener = useRef(document.activeElement);
  const there = useRef(true);
  const id = useId();
  useEffect(() => {
    const element = box.current;
    if (!element.open) element.showModal();
    if (!element.querySelector("[autofocus]")) element.querySelector("input:not([type=checkbox]), select, textarea")?.focus(); // what is to be filled in first
    return () => {
      there.current = false;
      element.close();
      queueMicrotask(() => { if (!document.querySelector("dialog[open]")) giveBack(opener.current); });
    };
  }, []);
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${(event) => { event.preventDefault(); onClose(); }} onClose=${() => there.current && onClose()} onClick=${(event) => event.target === box.current && onClose()}>
    <div class="dialog"><header><h2 id=${id}>${title}</h2><button type="button" class="link" aria-label="close" onClick=${onClose}>×</button></header>${children}</div>
  </dialog>`;
}

/** Ask before something is done; answers whether it shall. `type` is a word that must be typed first. */
export function confirm({ title, body, action = "Do it", danger = false, type }) {
  return new Promise((resolve) => {
    const place = document.createElement("div");
    document.body.append(place);
    const leave = () => end(false); // what is asked belongs to the view that is left
    const end = (answer) => { removeEventListener("popstate", leave); render(null, place); place.remove(); resolve(answer); };
    addEventListener("popstate", leave);
    render(html`<${Question} ...${{ title, body, action, danger, type, end }} />`, place);
  });
}

function Question({ title, body, action, danger, type, end }) {
  const [typed, setTyped] = useState("");
  const submit = (event) => { event.preventDefault(); if (!type || typed === type) end(true); };
  return html`<${Dialog} title=${title} onClose=${() => end(false)}><form onSubmit=${submit}>
    <div class="dialog-body">${body}</div>
    ${type && html`<label><span>Type <code>${type}</code> to go on</span><input value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off" /></label>`}
    <div class="actions end"><button type="button" onClick=${() => end(false)}>Leave it</button><button type="submit" class=${danger ? "danger" : "primary"} disabled=${Boolean(type) && typed !== type} title=${type && typed !== type ? `Type ${type} first.` : ""}>${action}</button></div>
  </form><//>`;
}

/** A button that opens a short list of choices: items {title, run, disabled: why it cannot be chosen, danger}. */
export function Menu({ label, items, title }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event) => { if (!box.current?.contains(event.target)) setOpen(false); };
    document.addEventListener("pointerdown", outside);
    box.current.querySelector("[role=menuitem]:not([disabled])")?.focus();
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const pressed = (event) => {
    if (!open) return;
    if (event.key === "Escape") { setOpen(false); box.current.querySelector("button").focus(); event.stopPropagation(); return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const choices = [...box.current.querySelectorAll("[role=menuitem]:not([disabled])")];
    choices[(choices.indexOf(document.activeElement) + step + choices.length) % choices.length]?.focus();
    event.preventDefault();
  };
  return html`<span class="menu" ref=${box} onKeyDown=${pressed}><button type="button" aria-haspopup="menu" aria-expanded=${open ? "true" : "false"} title=${title} onClick=${() => setOpen(!open)}>${label}</button>
    ${open && html`<div class="menu-list" role="menu">${items.filter(Boolean).map((one) => html`<button key=${one.title} type="button" role="menuitem" class=${one.danger ? "danger-text" : ""} disabled=${Boolean(one.disabled)} title=${one.disabled || ""} onClick=${() => { setOpen(false); box.current.querySelector("button").focus(); one.run(); }}>${one.title}</button>`)}</div>`}</span>`;
}
