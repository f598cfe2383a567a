// Every action goes through here: it says what it will do, does it, says what it did, and how a script would do it.

import { html, signal, useState } from "./html.js";
import { copyText } from "./clipboard.js";
import { can, chosenNamespace, curl, needs, send, shell } from "./api.js";
import { confirm, Menu } from "../parts/dialog.js";

export const toasts = signal([]);
export const held = signal(false); // whether somebody points at them or has the focus in them
let count = 0;

/** Say something for a while: {text, tone, undo, command, curl, error}. */
export function toast(given) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, ...given }];
  const away = () => { if (held.value) timer = setTimeout(away, 2000); else dismiss(id); }; // who reads it, or is about to press something in it
  let timer = setTimeout(away, given.error ? 15000 : given.undo ? 10000 : 6000);
  return () => { clearTimeout(timer); dismiss(id); };
}

export const dismiss = (id) => { toasts.value = toasts.value.filter((one) => one.id !== id); };

/**
 * Do something: {title, method, path, params, body, headers, hide: names in the body that are secret, cli: ["jobs", "pause", name], confirm: {...}, done: (answer) => text,
 * undo: an action of the same shape, after: (answer) => ..., see: (answer) => where to look at it, failed: (error) => ... instead of
 * a toast, for what says it beside its fields, run: (ns) => does it in another way, e.g. in parts; ns: the namespace, the one that is
 * looked at unless said}. Answers what the server said, or undefined if it was not done.
 */
export async function act(action) {
  const { method = "POST", path, params, body, headers, done, undo, after, see, failed, run } = action;
  const { ns = chosenNamespace() } = action; // as it was when it was asked for, whatever is looked at when it is answered, or undone
  if (run) return run(ns);
  const same = copies(action);
  if (action.confirm && !(await confirm({ action: action.title, ...action.confirm }))) return undefined;
  try {
    const answer = await send(method, path, { params, body, headers, ns });
    const text = typeof done === "function" ? done(answer) : done ?? `${action.title}: done.`;
    toast({ text, undo: undo && { title: undo.title ?? "Undo", run: () => act({ ...undo, ns, after: undo.after ?? after }) }, see: see?.(answer), ...same });
    await after?.(answer);
    return answer ?? null;
  } catch (error) {
    if (failed) { failed(error); return undefined; }
    toast({ text: `${action.title}: ${error.detail ?? error.message}`, remedy: error.remedy, error: true, ...same });
    return undefined;
  }
}

/** What a script would do instead. */
export const copies = ({ method = "POST", path, params, body, cli, hide }) => ({
  curl: curl(method, path, body, params, hide),
  command: cli ? shell(["horae", ...cli]) : null,
});

export async function copy(text, what) {
  try { await copyText(text); toast({ text: `${what} copied.` }); } catch { toast({ text, error: true }); }
}

/** A button for an action, with copy-as-curl and copy-as-CLI behind it. It is shown to who may, and says so to others; `why` says why it is disabled. */
export function ActionButton({ action, kind = "", role = "operator", label, children, disabled, why = "" }) {
  const [busy, setBusy] = useState(false);
  const allowed = can(role);
  const run = async () => { if (busy) return; setBusy(true); try { await act(typeof action === "function" ? action() : action); } finally { setBusy(false); } };
  const same = () => copies(typeof action === "function" ? action() : action);
  const shown = typeof action === "function" ? { title: label } : action;
  const items = [
    { title: "copy as curl", run: () => copy(same().curl, "The curl command") },
    same().command && { title: "copy as command", run: () => copy(same().command, "The command") },
  ];
  return html`<span class="split"><button type="button" class=${kind} disabled=${!allowed || disabled} aria-busy=${busy ? "true" : null} title=${!allowed ? needs(role) : disabled ? why : ""} onClick=${run}>${children ?? label ?? shown.title}</button><${Menu} label=${html`<span aria-hidden="true">▾</span><span class="unseen">more of ${label ?? shown.title}</span>`} items=${items} title="the same by script" /></span>`;
}
