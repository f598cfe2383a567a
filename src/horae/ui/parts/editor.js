// A text of many lines with their numbers beside it; the line that something is wrong with is marked.

import { html, useEffect, useMemo, useRef } from "../core/html.js";

/** mark: {line, column} from 1, or null. Tab leaves the field as everywhere. */
export function Editor({ text, onText, mark, rows = 28, ...more }) {
  const box = useRef(null);
  const numbers = useRef(null);
  const count = useMemo(() => text.split("\n").length, [text]);
  const at = mark ? Math.max(1, Math.min(mark.line, count)) : 0;
  const follow = () => { numbers.current.scrollTop = box.current.scrollTop; };
  useEffect(follow, [text]);
  const lines = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n).join("\n");
  return html`<div class="editor"><pre ref=${numbers} class="editor-lines" aria-hidden="true">${at ? html`${at > 1 ? `${lines(1, at - 1)}\n` : ""}<span class="editor-wrong">${at}</span>${at < count ? `\n${lines(at + 1, count)}` : ""}` : lines(1, count)}</pre>
    <textarea ref=${box} class="whole" wrap="off" spellcheck="false" rows=${rows} value=${text} onInput=${(event) => onText(event.target.value)} onScroll=${follow} ...${more}></textarea></div>`;
}

/** Put the caret of a field there. */
export function goTo(field, text, { line, column = 1 }) {
  const before = text.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(before + column - 1, before + column - 1);
  const high = field.scrollHeight / Math.max(1, text.split("\n").length);
  field.scrollTop = Math.max(0, (line - 3) * high);
}
