// Small parts that every page uses.

import { html, useState, useEffect, useRef } from "../core/html.js";
import { exact, relative, shortId, when } from "../core/format.js";
import { copyText } from "../core/clipboard.js";
import { now } from "../core/clock.js";
import { useNow } from "../core/data.js";
import { setQuery, route } from "../core/route.js";
import { useKeys } from "../core/keys.js";

/** The page's head: its title, what stands beside it, its actions. */
export function Page({ title, lead, actions, children, crumbs }) {
  const text = typeof title === "string" ? title : null;
  useEffect(() => { if (text) document.title = `${text} · Horae`; }, [text]);
  return html`<div class="page">
    <header class="page-head">
      <div class="page-title">${crumbs && html`<nav aria-label="Where this is" class="crumbs">${crumbs}</nav>`}<h1>${title}</h1>${lead && html`<p class="soft">${lead}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </div>`;
}

export const Panel = ({ title, actions, children, className = "", id }) =>
  html`<section class="panel ${className}" id=${id}>${(title || actions) && html`<header class="panel-head"><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}${children}</section>`;

/** An instant in the viewer's zone, with UTC (and a job's zone) on hover; `ago` says it relative to now. */
export function Time({ at, zone, ago = false }) {
  if (!at) return html`<span class="soft">–</span>`;
  return html`<time datetime=${at} title=${exact(at, zone)}>${ago ? html`<${Ago} at=${at} />` : when(at)}</time>`;
}

function Ago({ at }) {
  const left = new Date(at) - now();
  // What is about to come is counted down; what has been changes less often, since a table is laid out anew each time.
  const every = Math.abs(left) > 120000 ? 15000 : left > 0 || left < -5000 ? (left > 0 && left < 60000 ? 1000 : 5000) : 1000;
  return relative(at, useNow(every));
}

export function Copy({ text, label = "copy", title }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try { await copyText(text); setDone(true); setTimeout(() => setDone(false), 1500); } catch { setDone(null); }
  };
  return html`<button type="button" class="link small" onClick=${copy} title=${title ?? text}>${done === null ? "cannot copy here" : done ? "copied" : label}</button>`;
}

/** An id, shortened, copied whole. */
export const Id = ({ id }) => html`<span class="id"><code title=${id}>${shortId(id)}</code> <${Copy} text=${id} /></span>`;

/** What a page will show, and how to make it show something. */
export function Empty({ title, children, command, action }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<div class="soft">${children}</div>`}
    ${command && html`<p class="command"><code>${command}</code> <${Copy} text=${command} /></p>`}${action && html`<div class="actions">${action}</div>`}</div>`;
}

/** Words in which commands stand between backticks: each as code, with a way to copy it behind the punctuation that follows unless `bare`. */
export function Said({ text, plain = (part) => part, bare = false }) {
  const parts = (text ?? "").split("`");
  const ends = parts.map((part, at) => (at % 2 ? "" : /^[.,;:)]*/.exec(part)[0]));
  return html`${parts.map((part, at) => (at % 2 ? html`<span key=${at} class="command"><code>${part}</code>${ends[at + 1]}${!bare && html` <${Copy} text=${part} />`}</span>` : plain(at ? part.slice(ends[at].length) : part)))}`;
}

/** An error with the server's remedy. */
export function Failure({ error, retry }) {
  if (!error) return null;
  return html`<div class="failure" role="alert"><p><strong><${Said} text=${error.detail ?? error.message} bare /></strong></p>${error.remedy && html`<p><${Said} text=${error.remedy} /></p>`}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}</div>`;
}

export const Loading = ({ what = "" }) => html`<p class="loading soft" role="status" aria-live="polite">Reading${what ? ` ${what}` : ""} …</p>`;

export const isGone = (error) => error?.status === 404 || error?.status === 410;

/** Something that is not there: what was looked for, and `others`: [address, words] of the list that it would be in. */
export const Missing = ({ error, others, children }) => html`<${Empty} title=${error.detail} action=${html`<a class="button" href=${others[0]}>${others[1]}</a>`}>${children}<//>`;

/** Shows data when it is there, an error beside old data, and says that it reads while there is none. */
export function Ready({ of: { data, error, reload }, what, others, children }) {
  if (data === undefined && others && isGone(error)) return html`<${Missing} error=${error} others=${others} />`;
  if (data === undefined) return error ? html`<${Failure} error=${error} retry=${reload} />` : html`<${Loading} what=${what} />`;
  return html`${error && error.status !== 0 && html`<${Failure} error=${error} retry=${reload} />`}${children(data)}`;
}

export function Progress({ value, message }) {
  if (value === null || value === undefined) return null;
  const share = Math.max(0, Math.min(100, value));
  return html`<span class="progress" title=${message ?? ""}><progress max="100" value=${share} aria-label="progress">${share}%</progress><span class="soft small">${Math.round(share)}%${message ? ` ${message}` : ""}</span></span>`;
}

/** Tabs that live in the address: ?tab=. */
export function Tabs({ tabs, name = "tab" }) {
  const chosen = route.value.query[name] ?? tabs[0].id;
  const list = useRef(null);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    setQuery({ [name]: next.id });
    list.current.querySelector(`#tab-${next.id}`)?.focus();
    event.preventDefault();
  };
  const tab = tabs.find((one) => one.id === chosen) ?? tabs[0];
  return html`<div class="tabs" role="tablist" ref=${list} onKeyDown=${move}>${tabs.map((one) => html`<button key=${one.id} type="button" role="tab" id="tab-${one.id}" aria-selected=${one === tab ? "true" : "false"} aria-controls="panel-${one.id}" tabindex=${one === tab ? 0 : -1} onClick=${() => setQuery({ [name]: one.id })}>${one.title}${one.count !== undefined && html` <span class="count">${one.count}</span>`}</button>`)}</div>
  <div role="tabpanel" id="panel-${tab.id}" aria-labelledby="tab-${tab.id}">${tab.show()}</div>`;
}

/** Filters as chips, in the address: each {name, label, options: [[value, word]]}. */
export function Chips({ filters }) {
  return html`<div class="chips">${filters.filter(Boolean).map((one) => html`<${Chip} key=${one.name} ...${one} />`)}</div>`;
}

function Chip({ name, label, options, all = "all" }) {
  const value = route.value.query[name] ?? "";
  const id = `chip-${name}`;
  return html`<span class="chip ${value ? "chosen" : ""}"><label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => setQuery({ [name]: event.target.value || null })}>
      <option value="">${all}</option>${options.map(([key, word]) => html`<option key=${key} value=${key} selected=${key === value}>${word ?? key}</option>`)}
      ${value && !options.some(([key]) => key === value) && html`<option value=${value} selected>${value}</option>`}
    </select>
    ${value && html`<button type="button" class="link" aria-label="any ${label}" onClick=${() => setQuery({ [name]: null })}>×</button>`}</span>`;
}

/** A search that lives in the address and is reached with "/". */
export function SearchBox({ name = "search", label = "Search", placeholder = "" }) {
  const value = route.value.query[name] ?? "";
  const [text, setText] = useState(value);
  const box = useRef(null);
  const timer = useRef(null);
  useEffect(() => { if (document.activeElement !== box.current) setText(value); }, [value]);
  useKeys({ "/": () => { box.current?.focus(); box.current?.select(); } });
  const typed = (event) => {
    const next = event.target.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [name]: next || null }, { replace: true }), 250);
  };
  const leave = (event) => { if (event.key === "Escape") box.current.blur(); };
  return html`<input ref=${box} class="search" type="search" aria-label=${label} placeholder="${placeholder || label} ( / )" value=${text} onInput=${typed} onKeyDown=${leave} maxlength="200" />`;
}

/** Any JSON value, readable and copied whole. */
export function Json({ value, empty = "nothing" }) {
  if (value === null || value === undefined) return html`<span class="soft">${empty}</span>`;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<div class="json"><${Copy} text=${text} /><pre tabindex="0">${text}</pre></div>`;
}

/** Names and values, one pair per line; pairs without a value are left out. */
export const Facts = ({ facts }) =>
  html`<dl class="facts">${facts.filter((one) => one && one[1] !== null && one[1] !== undefined && one[1] !== "").map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export const Tags = ({ tags }) => {
  const given = Array.isArray(tags) ? tags.map((one) => [one, ""]) : Object.entries(tags ?? {});
  return html`<span class="tags">${given.map(([name, value]) => html`<span class="tag" key=${name}>${name}${value !== "" && value !== true ? `=${value}` : ""}</span>`)}</span>`;
};
