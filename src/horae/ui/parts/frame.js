// The frame: the rail, the counters that live on every page, and the page itself.

import { html, useEffect, useRef, useState } from "../core/html.js";
import { askWho, has, may, me, namespace, online, post } from "../core/api.js";
import { reconnect } from "../core/live.js";
import { ended, nobody } from "../core/who.js";
import { useData, useNow } from "../core/data.js";
import { AGAIN } from "../core/bring.js";
import { chosen, lacking, load, pages } from "../core/pages.js";
import { go, link, route } from "../core/route.js";
import { theme } from "../core/prefs.js";
import { help } from "../core/commands.js";
import { useKeys } from "../core/keys.js";
import { number, shortClock, exact } from "../core/format.js";
import { Glyph } from "../core/states.js";
import { Empty, Failure, Loading, Page } from "./basics.js";
import { Dialog, Menu } from "./dialog.js";
import { Guard } from "./guard.js";
import { Palette } from "./palette.js";
import { Toasts } from "./toasts.js";
import { SignInAgain } from "../pages/sign-in.js";

const Icon = ({ path }) => html`<svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d=${path} /></svg>`;

function Rail() {
  return html`<nav class="rail" aria-label="Pages"><a class="brand" href=${link("/")} aria-label="Horae, overview"><img src="/ui/mark.svg" alt="" width="24" height="24" /><span>Horae</span></a>
    ${pages().map((one) => html`<a key=${one.page} href=${link(one.path)} aria-current=${route.value.page === one.page ? "page" : null} title=${one.title}><${Icon} path=${one.icon} /><span>${one.title}</span></a>`)}</nav>`;
}

function Namespaces() {
  const every = useData(may("installation") ? "/namespaces" : null); // who runs the installation may look into each
  const names = me.value.namespaces?.length ? me.value.namespaces : (every.data?.items ?? []).map((one) => one.name);
  const all = [...new Set([namespace.value, ...names])];
  if (all.length < 2) return html`<span class="namespace soft" title="the namespace">${namespace.value}</span>`;
  return html`<span class="namespace"><select aria-label="namespace" value=${namespace.value} onChange=${(event) => go(route.value.rest.length ? `/${route.value.page}` : route.value.path, { ns: event.target.value })}>${all.map((one) => html`<option key=${one} value=${one} selected=${one === namespace.value}>${one}</option>`)}</select></span>`;
}

// What runs, what is queued, and what failed in the last hour: red only if something did. One cheap read for all three.
function Counters() {
  const now = useData(has("statistics") ? "/overview" : null, undefined, { live: ["execution"], wait: 3000, poll: 60000 });
  if (!now.data) return html`<span class="counters"></span>`;
  const { counts, ended } = now.data;
  const one = (state, word, count, to, title) => html`<a href=${to} title=${title}><${Glyph} of=${state} /><b>${number(count)}</b> <span class="wide-only">${word}</span></a>`;
  return html`<span class="counters">${one("running", "running", counts.running, link("/executions", { status: "running" }), "running now")}
    ${one("queued", "queued", counts.queued, link("/executions", { status: "queued" }), "queued now")}
    ${one(ended.failed ? "failed" : "success", "failed", ended.failed, has("dead_letters") ? link("/dead-letters") : link("/executions", { status: "failed" }), "failed in the last hour")}</span>`;
}

function Clock() {
  const now = new Date(useNow(5000)).toISOString();
  return html`<time class="clock soft" datetime=${now} title=${exact(now)}>${shortClock(now)}</time>`;
}

function Top({ palette }) {
  const signOut = async () => { try { await post("/sign-out"); } finally { me.value = null; ended.value = false; nobody(); } };
  const look = (name) => ({ title: `${theme.value === name ? "✓ " : ""}${name === "system" ? "The system's look" : `${name[0].toUpperCase()}${name.slice(1)} look`}`, run: () => { theme.value = name; } });
  const items = [look("light"), look("dark"), look("system"), { title: "Sign out", run: signOut }];
  const label = html`<span class="unseen">signed in as </span><span class="who">${me.value.name}</span> <span class="soft wide-only">${me.value.role}</span> <span aria-hidden="true">▾</span>`;
  return html`<header class="top"><${Namespaces} /><button type="button" class="finder" onClick=${palette}>Search or command <kbd>Ctrl K</kbd></button>
    <${Counters} /><${Clock} /><${Menu} label=${label} items=${items} title="you" /></header>`;
}

const KEYS = [["Ctrl K", "go to anything"], ["/", "search this page"], ["j, k", "the next and the previous row"], ["Enter", "open the row"], ["[, ], t, 1 to 4", "on the schedule: before, after, today, another view"], ["g then o, j, e, s, v, q, w, d, a", "go to a page"], ["?", "this"]];

function Help({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}><dl class="facts">${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl><//>`;
}

const GO = { o: "/", j: "/jobs", e: "/executions", s: "/schedule", v: "/events", q: "/queues", w: "/workers", d: "/dead-letters", a: "/alerts" };

function Content() {
  const [name, props] = chosen(route.value);
  const [shown, setShown] = useState({});
  const [asked, setAsked] = useState(0); // how often somebody asked for it again
  useEffect(() => {
    let current = true;
    let timer = null;
    const bring = () => load(name).then((View) => current && setShown({ name, View }), (error) => {
      if (!current) return;
      setShown({ name, error });
      timer = setTimeout(bring, AGAIN);
    });
    if (name) bring();
    return () => { current = false; clearTimeout(timer); };
  }, [name, asked]);
  const before = useRef(route.value.path);
  useEffect(() => {
    const content = document.getElementById("content");
    if (before.current !== route.value.path && document.activeElement === document.body) content.focus({ preventScroll: true });
    if (document.activeElement === content) content.querySelector("[autofocus]")?.focus({ preventScroll: true });
    before.current = route.value.path;
  }, [route.value.path, shown]);
  if (!name) return html`<${Page} title="No such page"><${Empty} title="There is no such page.">Begin at the <a href=${link("/")}>overview</a>.<//><//>`;
  const off = lacking(name);
  if (off) return html`<${Page} title="Switched off"><${Empty} title=${`The feature ${off} is switched off on this server.`}>Remove <code>"-${off}"</code> from its setting <code>features</code>, and start it again.<//><//>`;
  if (shown.name !== name) return html`<${Loading} what="the page" />`;
  if (shown.error) return html`<${Page} title="Not loaded"><${Failure} error=${{ detail: "This page could not be loaded.", remedy: "It is tried again by itself until the server answers." }} retry=${() => setAsked(asked + 1)} /><//>`;
  return html`<${Guard} of=${location.href}><${shown.View} key=${name + route.value.path + (route.value.query.ns ?? "")} ...${props} /><//>`;
}

/** Rights and events are those of the namespace that is looked at, however one came there. */
function useNamespace() {
  const ns = route.value.query.ns ?? null;
  const [trouble, setTrouble] = useState(null);
  useEffect(() => {
    if (me.value.asked === ns) { setTrouble(null); return undefined; }
    reconnect();
    let timer = null;
    const ask = () => askWho().then(() => setTrouble(null), (error) => { if (error.status === 404) setTrouble(error); else timer = setTimeout(ask, 2000); });
    ask();
    return () => clearTimeout(timer);
  }, [ns]);
  return trouble;
}

export function Frame() {
  const [open, setOpen] = useState(null);
  const going = useRef(-Infinity); // when "g" was pressed
  const to = (path) => () => {
    if (performance.now() - going.current > 1200) return false;
    going.current = -Infinity;
    if (lacking(path.slice(1))) return false;
    return go(link(path));
  };
  useKeys({
    "ctrl-k": () => setOpen("palette"),
    "?": () => setOpen("help"),
    g: () => { going.current = performance.now(); },
    ...Object.fromEntries(Object.entries(GO).map(([key, path]) => [key, to(path)])),
  }, { first: true });
  const stranger = useNamespace();
  useEffect(() => { if (help.value) setOpen("help"); }, [help.value]);
  useEffect(() => { if (!ended.value && open === "stay") setOpen(null); }, [ended.value]);
  const close = () => setOpen(null);
  return html`<a class="skip" href="#content">To the content</a><${Rail} /><div class="body"><${Top} palette=${() => setOpen("palette")} />
    ${!online.value && html`<p class="offline" role="status">The server does not answer. What is shown is what was last known; it is tried again by itself.</p>`}
    ${ended.value && html`<p class="offline" role="status">Your sign-in has ended. What is shown stays. <button type="button" class="link" onClick=${() => setOpen("sign-in")}>Sign in</button></p>`}
    <main id="content" tabindex="-1">${stranger ? html`<${Page} title="No such namespace"><${Failure} error=${stranger} /><p><a href="/">Your own namespace</a></p><//>` : html`<${Content} />`}</main></div><${Toasts} />
    ${ended.value && open !== "stay" && html`<${SignInAgain} onClose=${() => { nobody(); setOpen("stay"); }} />`}
    ${open === "palette" && html`<${Palette} onClose=${close} />`}${open === "help" && html`<${Help} onClose=${close} />`}`;
}
