// Data of a view: read, kept while it is read anew, and read again when something changed.

import { useState, useEffect, useRef, useCallback } from "./html.js";
import { get } from "./api.js";
import { useLive } from "./live.js";

const NOTHING = Object.freeze({ data: undefined, error: null, loading: true });

/**
 * Read a path. `live` names kinds of events after which it is read again, `poll` ms without any.
 * A null path reads nothing. Old data stays while the new is on its way, and when it cannot be had.
 * `read(path, params, options)` reads it otherwise, for questions that are a POST.
 */
export function useData(path, params, { live, wait = 1000, poll, only, read = get } = {}) {
  const [state, setState] = useState(NOTHING);
  const current = useRef(null);
  const seen = useRef(null);
  const key = path === null ? null : path + JSON.stringify(params ?? {});
  const load = useCallback(async () => {
    if (path === null) return;
    current.current?.abort();
    const abort = (current.current = new AbortController());
    try {
      const data = await read(path, params, { signal: abort.signal });
      if (current.current !== abort) return;
      const text = key + JSON.stringify(data);
      const same = text === seen.current; // then nothing is drawn again
      seen.current = text;
      setState((old) => (same && !old.error && !old.loading ? old : { data, error: null, loading: false }));
    } catch (error) {
      if (error.name !== "AbortError" && current.current === abort) setState((old) => ({ data: old.data, error, loading: false }));
    }
  }, [key]);
  const first = useRef(key);
  useEffect(() => {
    setState((old) => (first.current === key ? old : { ...NOTHING, data: old.data }));
    first.current = key;
    load();
    return () => current.current?.abort();
  }, [load]);
  useEffect(() => {
    const every = poll ?? (state.error?.status === 0 ? 3000 : null);
    if (!every || path === null) return undefined;
    const timer = setInterval(() => document.hidden || load(), every);
    return () => clearInterval(timer);
  }, [load, poll, state.error?.status === 0]);
  useLive(path === null ? null : live, load, { wait, only });
  return { ...state, reload: load };
}

/** A list with a cursor: pages are added by `more`; live changes are counted as `fresh` while further pages are shown. */
export function useList(path, params, options = {}) {
  const [later, setLater] = useState({ items: [], cursor: undefined });
  const [fresh, setFresh] = useState(0);
  const key = path + JSON.stringify(params ?? {});
  const first = useData(path, params, { ...options, live: later.items.length ? null : options.live });
  useLive(path && later.items.length ? options.live : null, () => setFresh((n) => n + 1), { wait: options.wait });
  useEffect(() => { setLater({ items: [], cursor: undefined }); setFresh(0); }, [key]);
  const cursor = later.cursor === undefined ? first.data?.nextCursor : later.cursor;
  const more = cursor
    ? async () => {
      const page = await get(path, { ...params, cursor });
      setLater((old) => ({ items: [...old.items, ...page.items], cursor: page.nextCursor }));
    }
    : null;
  const top = () => { setLater({ items: [], cursor: undefined }); setFresh(0); first.reload(); };
  return { ...first, items: first.data ? [...first.data.items, ...later.items] : undefined, more, fresh, top };
}

const beats = new Map(); // by their length: one timer and who listens to it, so that all that ticks is drawn together

function listen(every, listener) {
  if (!beats.has(every)) {
    const listeners = new Set();
    const timer = setInterval(() => { if (!document.hidden) for (const one of listeners) one(Date.now()); }, every);
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
  const [now, setNow] = useState(Date.now());
  useEffect(() => listen(every, setNow), [every]);
  return now;
}
