// Tables: rows that are links, moved through with j and k, paged by cursors, and still while they are read.

import { html, useState, useRef, useEffect } from "../core/html.js";
import { useKeys } from "../core/keys.js";
import { go } from "../core/route.js";
import { plural } from "../core/format.js";
import { Failure, Loading } from "./basics.js";

const shown = new Set(); // tables on the page: keys go through their rows as if they were one

/** To the row after or before the one that keys have reached, also from one table to the next. */
function step(by) {
  const all = [...shown].filter((one) => one.body.current && one.rows.length).sort((a, b) => (a.body.current.compareDocumentPosition(b.body.current) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  if (!all.length) return;
  const here = all.findIndex((one) => one.at >= 0);
  const next = here < 0 ? 0 : all[here].at + by;
  const table = here < 0 ? 0 : next < 0 ? Math.max(0, here - 1) : next >= all[here].rows.length ? Math.min(all.length - 1, here + 1) : here;
  const last = all[table].rows.length - 1;
  const row = here < 0 ? 0 : table > here ? 0 : table < here ? last : Math.max(0, Math.min(last, next));
  all.forEach((one, at) => { one.at = at === table ? row : -1; one.setAt(one.at); });
}

function onRow(what, then = (answer) => answer) {
  const table = [...shown].find((one) => one.rows[one.at] && one[what]);
  return table ? then(table[what](table.rows[table.at])) : false;
}

/**
 * columns: [{title, cell: (row) => content, className, key}], rows: the items or undefined while they are read.
 * `href(row)` makes a row a link; `list` is what useList gives: `more`, `fresh`, `top`, `error`.
 * `choose` ({chosen: Set, onChange, of: (row) => id}) gives each row a box to tick.
 */
export function Table({ columns, rows, keyOf, href, empty, list, label, what = "rows", choose, rowClass }) {
  const [at, setAt] = useState(-1);
  const [adding, setAdding] = useState(false);
  const [failed, setFailed] = useState(null);
  const body = useRef(null);
  const own = useRef({}).current;
  Object.assign(own, { body, at, setAt, rows: rows ?? [], open: href, tick: choose && ((row) => tick(row)) });
  useKeys({ j: () => step(1), k: () => step(-1), Enter: (event) => (event.target.closest("a, button, input, select, textarea, summary") ? false : onRow("open", go)), x: () => onRow("tick") });
  useEffect(() => { shown.add(own); return () => { shown.delete(own); }; }, []);
  useEffect(() => { body.current?.children[at]?.scrollIntoView({ block: "nearest" }); }, [at]);
  if (rows === undefined) return list?.error ? html`<${Failure} error=${list.error} retry=${list.reload} />` : html`<${Loading} what=${what} />`;
  if (!rows.length) return html`${list?.error && html`<${Failure} error=${list.error} retry=${list.reload} />`}${empty ?? html`<p class="soft">Nothing here.</p>`}`;
  const tick = (row) => {
    const next = new Set(choose.chosen);
    const id = choose.of(row);
    if (!next.delete(id)) next.add(id);
    choose.onChange(next);
  };
  const all = choose && rows.every((row) => choose.chosen.has(choose.of(row)));
  const more = async () => { setAdding(true); setFailed(null); try { await list.more(); } catch (error) { setFailed(error); } finally { setAdding(false); } };
  const wanted = columns.filter(Boolean);
  return html`${list?.error && html`<${Failure} error=${list.error} retry=${list.reload} />`}
  ${list?.fresh ? html`<button type="button" class="fresh" onClick=${list.top}>${list.said ?? "Something changed since: show the newest"}</button>` : null}
  <div class="table-wrap" tabindex="0" role="region" aria-label=${label ?? what}><table>
    <thead><tr>${choose && html`<th class="tick"><input type="checkbox" aria-label="choose all that are shown" checked=${all} onChange=${() => choose.onChange(all ? new Set() : new Set(rows.map(choose.of)))} /></th>`}${wanted.map((column) => html`<th key=${column.key ?? column.title} class=${column.className ?? ""} scope="col">${column.title || html`<span class="unseen">more</span>`}</th>`)}</tr></thead>
    <tbody ref=${body}>${rows.map((row, place) => html`<tr key=${keyOf(row)} class="${place === at ? "at" : ""} ${rowClass?.(row) ?? ""}" aria-current=${place === at ? "true" : null} onClick=${(event) => href && clicked(event, href(row))}>
      ${choose && html`<td class="tick"><input type="checkbox" aria-label="choose" checked=${choose.chosen.has(choose.of(row))} onChange=${() => tick(row)} /></td>`}
      ${wanted.map((column, first) => html`<td key=${column.key ?? column.title} class=${column.className ?? ""}>${first === 0 && href ? html`<a href=${href(row)}>${column.cell(row)}</a>` : column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>
  ${list?.more ? html`<p class="more"><button type="button" onClick=${more} disabled=${adding}>${adding ? "Reading …" : "Show more"}</button> <span class="soft small">${plural(rows.length, "row")} so far</span></p><${Failure} error=${failed} />` : null}`;
}

// A click beside a link opens the row, unless text is being marked.
function clicked(event, to) {
  if (event.target.closest("a, button, input, select, label") || String(getSelection())) return;
  if (event.metaKey || event.ctrlKey) open(to, "_blank", "noopener");
  else go(to);
}
