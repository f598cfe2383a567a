// The log of an execution: followed while it runs, searched, and only what is seen of it is there.

import { html, Component, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../core/html.js";
import { API, headers } from "../core/api.js";
import { toast } from "../core/act.js";
import { useLive } from "../core/live.js";
import { link, route, setQuery } from "../core/route.js";
import { clock, exact, number, plural } from "../core/format.js";
import { Chips, Copy, Failure, SearchBox } from "./basics.js";
import { painted, plain, settled } from "./ansi.js";
import { AllLines, FoundLines } from "./log-lines.js";

const ROW = 18;
const BEYOND = 12; // lines above and below what is seen
const LONGEST = 2000; // characters of a line that are shown in its row
const TALLEST = 12_000_000; // px that every browser can scroll
const LEVELS = [["debug", "debug"], ["info", "info"], ["warning", "warning"], ["error", "error"]].map(([key, word]) => [key, key === "error" ? word : `${word} and worse`]);

const linked = () => Number(/^L(\d+)$/.exec(route.value.hash)?.[1] ?? 0);

/** `live`: whether lines may still come; `tries`: how many tries there are, so that one can be chosen; `end`: begin there. */
export function Log({ execution, live, tries = 1, end = false }) {
  const { grep, level, times, try: attempt } = route.value.query;
  const [version, changed] = useState(0); // tells what shows the lines, which are one object, that they changed
  const [follow, setFollow] = useState((live || end) && !linked());
  const lines = useMemo(() => {
    const tell = () => changed((n) => n + 1);
    return grep || level || attempt ? new FoundLines(execution, tell, { grep, level, attempt }, live && follow) : new AllLines(execution, tell);
  }, [execution, grep, level, attempt]);
  useEffect(() => { lines.grow(); return () => lines.close(); }, [lines]);
  useEffect(() => lines.follow(follow), [lines, follow]);
  useLive(["log", "execution"], () => lines.grown(), { wait: 1000, only: (event) => isOf(event, execution) });
  const filtered = lines instanceof FoundLines;
  const said = !lines.read ? (lines.error ? "" : "reading …") : filtered ? `${number(lines.count)}${lines.isPart ? " or more" : ""} of ${plural(lines.lines, "line")}` : plural(lines.lines, "line");
  return html`<section class="log" aria-label="Log">
    <div class="log-bar"><${SearchBox} name="grep" label="Search the log" /><${Chips} filters=${[
      { name: "level", label: "level", options: LEVELS }, tries > 1 && { name: "try", label: "try", options: Array.from({ length: Math.min(tries, 100) }, (_, at) => [String(at + 1)]) },
    ]} /><span class="soft small" role="status">${said}</span><span class="log-tools">
      ${live && html`<label class="tick-word small"><input type="checkbox" checked=${follow} onChange=${(event) => setFollow(event.target.checked)} />follow</label>`}
      <label class="tick-word small"><input type="checkbox" checked=${Boolean(times)} onChange=${(event) => setQuery({ times: event.target.checked ? "1" : null }, { replace: true })} />times</label>
      <${GoTo} most=${lines.lines} />
      <${Download} path="/executions/${execution}/logs/download" params=${{ grep, level, attempt }} name="${execution}.log">Download<//></span></div>
    ${lines.truncated && html`<p class="notice" role="status">${lines.truncated.notice}</p>`}
    ${lines.error && html`<${Failure} error=${lines.error} retry=${() => lines.grow()} />`}
    ${lines.error && !lines.read ? null : lines.read && !lines.count && !lines.open?.length && !lines.error ? html`<p class="log-none soft">${filtered && lines.isPart ? html`None so far. <button type="button" class="link" onClick=${() => lines.need(0, 0)}>Look further</button>` : filtered ? "No line fits." : live ? "Nothing was written yet." : "It wrote nothing."}</p>` : html`<${Rows} lines=${lines} version=${version} filtered=${filtered} follow=${follow} onFollow=${setFollow} times=${Boolean(times)} grep=${grep} />`}
    ${linked() > 0 && html`<${Whole} line=${lines.known?.get(linked())} />`}
  </section>`;
}

/** A line by its number: the keyboard's way to a link. */
function GoTo({ most }) {
  const jump = (event) => {
    const wanted = Math.min(Number(event.target.value), most);
    if (wanted >= 1) setQuery({ grep: null, level: null, try: null, hash: `#L${wanted}` });
    event.target.value = "";
  };
  return html`<input class="log-goto" type="number" min="1" max=${most} aria-label="Go to line" placeholder="line" onChange=${jump} />`;
}

/** Whether an event is about an execution: it may speak of several, which differ in the last four digits of their ids. */
export function isOf(event, id) {
  if (event.kind === "missed") return true;
  if (!event.id || event.id.slice(0, -4) !== id.slice(0, -4)) return false;
  const place = parseInt(id.slice(-4), 16) - parseInt(event.id.slice(-4), 16);
  return place >= 0 && place < (event.count ?? 1);
}

const LEAST = 280; // px of a log, however little room there is
const MARGIN = 16;

/** End a log where the window ends, or the rail that a narrow one has there, so that its last line is seen; one that begins far below is as high as the window. */
function fit(box) {
  const rail = document.querySelector(".rail")?.getBoundingClientRect().top ?? 0;
  const end = rail > innerHeight / 2 ? rail : innerHeight;
  const room = end - (box.getBoundingClientRect().top + scrollY) - MARGIN;
  box.style.setProperty("--log-height", `${room >= LEAST ? room : Math.max(LEAST, end - 100)}px`);
}

function Rows({ lines, filtered, follow, onFollow, times, grep }) {
  const box = useRef(null);
  const following = useRef(follow);
  following.current = follow;
  const moved = useRef(false); // then it is drawn again, for where it is now
  const [view, setView] = useState({ top: 0, height: 400 });
  const target = filtered ? 0 : linked();
  const full = lines.count * ROW;
  const tall = Math.min(full, TALLEST);
  const shift = tall < full && tall > view.height ? (full - view.height) / (tall - view.height) : 1; // of very long logs a pixel is more than one
  const first = Math.max(0, Math.floor((view.top * shift) / ROW) - BEYOND);
  const last = Math.min(lines.count, Math.ceil((view.top * shift + view.height) / ROW) + BEYOND);
  const look = () => { if (box.current) setView({ top: box.current.scrollTop, height: box.current.clientHeight }); };
  useLayoutEffect(() => {
    const settle = () => {
      fit(box.current);
      if (following.current) box.current.scrollTop = box.current.scrollHeight;
      look();
    };
    settle();
    const watch = new ResizeObserver(settle);
    watch.observe(box.current);
    for (const one of [document.getElementById("content"), document.body]) watch.observe(one); // what stands above it may grow
    addEventListener("resize", settle);
    return () => { watch.disconnect(); removeEventListener("resize", settle); };
  }, []);
  useLayoutEffect(() => {
    const above = lines.moved?.() ?? 0; // what was put above what is seen does not move it
    moved.current = above > 0 && !follow;
    if (moved.current) { box.current.scrollTop += above * ROW; look(); }
  });
  useLayoutEffect(() => { if (follow) { box.current.scrollTop = box.current.scrollHeight; look(); } }, [follow, lines.count, lines.open?.length]);
  const known = lines.count > 0;
  useLayoutEffect(() => {
    if (!target || !known) return;
    box.current.scrollTop = ((target - 1) * ROW) / shift - box.current.clientHeight / 3;
    look();
  }, [target, known, lines]);
  const atEnd = lines.fromEnd && follow && full > view.height; // then nobody looks at what is above
  useEffect(() => { if (last > first && !atEnd && !moved.current) lines.need(first, last - 1); });
  const scrolled = () => {
    if (!box.current) return; // it was told of when it is gone
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    look();
    onFollow(scrollTop + clientHeight >= scrollHeight - 2 * ROW);
  };
  const base = filtered ? link(route.value.path, { ...route.value.query, grep: null, level: null, try: null }) : "";
  const wanted = useMemo(() => sought(grep), [grep]);
  const rows = [];
  for (let at = first; at < last; at += 1) rows.push(html`<${Row} key=${filtered ? lines.row(at)?.number : at} at=${at} line=${lines.row(at)} before=${at > 0 ? lines.row(at - 1) : null} filtered=${filtered} base=${base} chosen=${target === at + 1} times=${times} wanted=${wanted} />`);
  return html`<div class="log-box" ref=${box} tabindex="0" role="region" aria-label="Lines" onScroll=${scrolled}><div class="log-all" style=${{ height: `${tall}px` }}>
    <div class="log-seen" style=${{ transform: `translateY(${first * ROW - view.top * shift + view.top}px)` }}>${rows}</div></div>
    ${lines.open?.length > 0 && html`<div class="log-open">${lines.open.map((line) => html`<${Row} key=${line.stream} at=${line.number - 1} line=${line} times=${times} />`)}</div>`}</div>`;
}

/** One line; drawn anew only when it is another, or told otherwise. */
class Row extends Component {
  shouldComponentUpdate(next) { return Object.keys(next).some((name) => next[name] !== this.props[name]); }

  render(props) { return row(props); }
}

function row({ at, line, before, filtered, base, chosen, times, wanted }) {
  if (!line) return html`<div class="log-line soft"><span class="log-number">${filtered ? "" : at + 1}</span>…</div>`;
  const other = before && before.attempt !== line.attempt && line.attempt;
  return html`<div class="log-line level-${line.level} ${chosen ? "chosen" : ""} ${other ? "other" : ""}" data-try=${other ? `try ${other}` : null}><a class="log-number" href="${base}#L${line.number}" tabindex="-1">${line.number}</a>${times && html`<time class="soft" title=${exact(line.at)}>${clock(line.at)}</time>`}${words(line.text, wanted)}</div>`;
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** What a search looks for, to be marked; null where marking it could take long: the server finds in time what this would not. */
export function sought(grep) {
  if (!grep) return null;
  const [, anyCase, expression] = /^re:(\(\?i\))?(.*)$/s.exec(grep) ?? [];
  if (expression === undefined) {
    const texts = grep.split("*").filter(Boolean).map(escaped);
    return texts.length ? new RegExp(texts.join("|"), "gi") : null;
  }
  const repeats = (expression.match(/[*+?{]/g) ?? []).length;
  if (repeats > 1 || (repeats && /[(|]/.test(expression))) return null;
  try { return new RegExp(expression, anyCase ? "gi" : "g"); } catch { return null; }
}

function marked(text, wanted) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(wanted)) {
    if (!found[0]) continue;
    parts.push(text.slice(from, found.index), html`<mark key=${found.index}>${found[0]}</mark>`);
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

function words(line, wanted) {
  const { text, written } = settled(line);
  const parts = painted(text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);
  const shown = parts.map(({ text: one, look }, at) => html`<span key=${at} class=${look}>${wanted ? marked(one, wanted) : one}</span>`);
  return written > 1 ? [...shown, html`<span key="written" class="soft log-written" title="It was written over itself; its number shows all.">${`× ${written}`}</span>`] : shown;
}

/** The line that the address names, whole. */
function Whole({ line }) {
  if (!line) return null;
  return html`<div class="log-whole"><div class="soft small">line ${number(line.number)}, ${line.attempt ? `try ${line.attempt}, ` : ""}${line.stream}, <time title=${exact(line.at)}>${clock(line.at)}</time> <${Copy} text=${location.href} label="copy link" /> <${Copy} text=${plain(line.text)} label="copy line" /></div><pre tabindex="0">${plain(line.text)}</pre></div>`;
}

/** A file to keep. In another namespace it is asked for with a header, which a plain link cannot carry. */
export function Download({ path, params, name, children }) {
  const wanted = new URLSearchParams(Object.entries(params ?? {}).filter(([, value]) => value)).toString();
  const href = API + path.replace(API, "") + (wanted ? `?${wanted}` : "");
  const bring = async (event) => {
    if (!route.value.query.ns) return;
    event.preventDefault();
    const response = await fetch(href, { headers: headers({ accept: "*/*" }) });
    if (!response.ok) {
      const said = await response.json().catch(() => ({}));
      toast({ error: true, text: `Not downloaded: ${said.detail ?? response.status}`, remedy: said.remedy });
      return;
    }
    const url = URL.createObjectURL(await response.blob());
    const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  return html`<a class="button" href=${href} download=${name} onClick=${bring}>${children}</a>`;
}
