// Data of a view: read, kept while it is read anew, and read again when something changed.

import { useState, useEffect, useRef } from "./html.js";
import { chosenNamespace, get } from "./api.js";
import { now, whenCorrected } from "./clock.js";
import { useEvents, useLive } from "./live.js";
import { person } from "./who.js";
import { look, NOTHING } from "./reads.js";

const GONE = 3000; // ms after which a server that does not answer is asked again
const AWAY = 10000; // the same, of one that answers that it cannot
let count = 0;

/**
 * Read a path. `live` names kinds of events after which it is read again, `poll` ms without any.
 * A null path reads nothing. Old data stays while the new is on its way, and when it cannot be had.
 * `read(path, params, options)` reads it otherwise, for questions that are a POST.
 */
export function useData(path, params, { live, wait = 1000, poll, only, read = get } = {}) {
  const [state, setState] = useState(NOTHING);
  const own = useRef(null);
  const shared = useRef(null);
  if (read !== get) own.current ??= ++count; // asked in a way of its own, it is shared with nobody
  const key = path === null ? null : `${chosenNamespace() ?? ""} ${own.current ?? ""} ${path} ${JSON.stringify(params ?? {})}`;
  useEffect(() => {
    if (key === null) return undefined;
    const tell = (next) => setState((old) => (next === NOTHING && old !== NOTHING ? { ...NOTHING, data: old.data } : next));
    const one = (shared.current = look(key, (signal) => read(path, params, { signal }), tell));
    return () => { one.leave(tell); shared.current = null; };
  }, [key]);
  const status = state.error?.status;
  const again = status === 0 ? GONE : status === 429 || status >= 500 ? AWAY : null;
  useEffect(() => {
    const every = Math.min(again ?? Infinity, poll ?? Infinity);
    if (every === Infinity || key === null) return undefined;
    const timer = setInterval(() => document.hidden || shared.current?.aged(every), every);
    return () => clearInterval(timer);
  }, [key, poll, again]);
  useEvents(path === null ? null : live, (event) => shared.current?.changed(wait, event.count ?? 1), only);
  const reload = useRef(() => shared.current?.load());
  return { ...state, reload: reload.current };
}

/** A list with a cursor: pages are added by `more`; live changes are counted as `fresh` while further pages are shown. */
export function useList(path, params, options = {}) {
  const [later, setLater] = useState({ items: [], cursor: undefined });
  const [fresh, setFresh] = useState(0);
  const key = path + JSON.stringify(params ?? {});
  const current = useRef(key);
  current.current = key;
  // While further pages are shown the first one stays as it is: rows that slip from one page to the next would be lost.
  const still = later.items.length > 0;
  const first = useData(path, params, still ? { ...options, live: null, poll: null } : options);
  useLive(path && still ? options.live : null, () => setFresh((n) => n + 1), { wait: options.wait });
  useEffect(() => { setLater({ items: [], cursor: undefined }); setFresh(0); }, [key, person.value]);
  const cursor = later.cursor === undefined ? first.data?.nextCursor : later.cursor;
  const more = cursor
    ? async () => {
      const page = await get(path, { ...params, cursor });
      if (current.current === key) setLater((old) => ({ items: [...old.items, ...page.items], cursor: page.nextCursor }));
    }
    : null;
  const top = () => { setLater({ items: [], cursor: undefined }); setFresh(0); first.reload(); };
  return { ...first, items: first.data ? [...first.data.items, ...later.items] : undefined, more, fresh, top };
}

const beats = new Map(); // by their length: one timer and who listens to it, so that all that ticks is drawn together

// Windows of time are asked for anew as soon as the right time is known.
whenCorrected(() => { for (const { listeners } of beats.values()) for (const one of listeners) one(now()); });

function listen(every, listener) {
  if (!beats.has(every)) {
    const listeners = new Set();
    const timer = setInterval(() => { if (!document.hidden) for (const one of listeners) one(now()); }, every);
    beats.set(every, { listeners, timer });
  }
  const { listeners, timer } = beats.get(every);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) { clearInterval(timer); beats.delete(every); }
  };
}

/** The time of now, ticking every `every` ms while the page is seen. */
export function useNow(every = 1000) {
  const [at, setAt] = useState(now());
  useEffect(() => listen(every, setAt), [every]);
  return at;
}
