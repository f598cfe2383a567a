// Filters that are typed, as chips; like all filters they live in the address.

import { html, useEffect, useId, useState } from "../core/html.js";
import { get } from "../core/api.js";
import { now } from "../core/clock.js";
import { route, setQuery } from "../core/route.js";

/** A chip with a text in it. It is taken when the field is left or Enter is pressed: half a name names nothing. */
export function TextChip({ name, label, placeholder = "any", suggest }) {
  const value = route.value.query[name] ?? "";
  const [text, setText] = useState(value);
  const [known, setKnown] = useState([]);
  const id = useId();
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (!suggest || !text || text === value) return undefined;
    const timer = setTimeout(() => suggest(text).then(setKnown, () => {}), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<span class="chip ${value ? "chosen" : ""}"><label for=${id}>${label}</label>
    <input id=${id} class="chip-text" size=${Math.max(6, Math.min(24, (text || placeholder).length))} maxlength="200" placeholder=${placeholder} list=${suggest ? `${id}-known` : null} value=${text}
      onInput=${(event) => setText(event.target.value)} onChange=${(event) => setQuery({ [name]: event.target.value.trim() || null })} />
    ${suggest && html`<datalist id="${id}-known">${known.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>`}
    ${value && html`<button type="button" class="link" aria-label="any ${label}" onClick=${() => setQuery({ [name]: null })}>×</button>`}</span>`;
}

/** Names of jobs that have a text in them. */
export const jobNames = async (text) => (await get("/jobs", { search: text, limit: 20, owned: true })).items.map((job) => job.name);

const SPANS = { "15m": 900, "1h": 3600, "6h": 21600, "1d": 86400, "7d": 604800 };
const WORDS = { "15m": "15 minutes", "1h": "hour", "6h": "6 hours", "1d": "day", "7d": "7 days" };

/** The instant that a word of the address means, e.g. "1h" or an instant itself. */
export const instantOf = (text, at = now()) => (Object.hasOwn(SPANS, text) ? new Date(at - SPANS[text] * 1000).toISOString() : text || null);

const local = (iso) => {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
};
const typed = (text) => (Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString());

/** A span of time: the last hour, the last day, or between two instants. ?since= and ?until=. */
export function SpanChip() {
  const { since = "", until = "" } = route.value.query;
  const own = Boolean(until || (since && !Object.hasOwn(SPANS, since)));
  const choose = (value) => setQuery(value === "own" ? { since: instantOf(since || "1h"), until: new Date(now()).toISOString() } : { since: value || null, until: null });
  return html`<span class="chip ${since || until ? "chosen" : ""}"><label for="chip-since">when</label>
    <select id="chip-since" value=${own ? "own" : since} onChange=${(event) => choose(event.target.value)}>
      <option value="">ever</option>${Object.keys(SPANS).map((one) => html`<option key=${one} value=${one} selected=${one === since}>the last ${WORDS[one]}</option>`)}<option value="own" selected=${own}>between …</option></select>
    ${own && html`<input type="datetime-local" aria-label="from" value=${local(since)} onChange=${(event) => setQuery({ since: typed(event.target.value) })} /> – <input type="datetime-local" aria-label="until" value=${local(until)} onChange=${(event) => setQuery({ until: typed(event.target.value) })} />`}
    ${(since || until) && html`<button type="button" class="link" aria-label="at any time" onClick=${() => setQuery({ since: null, until: null })}>×</button>`}</span>`;
}
