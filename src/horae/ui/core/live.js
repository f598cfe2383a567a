// One stream of events per tab. Events are hints: whoever listens reads again, at most once in a while.

import { signal, useEffect, useRef } from "./html.js";
import { address, headers, online, whenSignedIn } from "./api.js";
import { ended, has, me } from "./who.js";

// What happens is counted by the server; the execution that is followed is told of event by event.
const EVERY = "500ms";
const TOPICS = ["executions", "steps", "jobs", "workers", "holds", "circuits"];
const topics = () => [...TOPICS, ...["rollouts", "alerts"].filter(has)].join();
const listeners = new Set();
const followed = []; // executions whose log and steps are followed; the last one that asked counts
let stream = null;
let again = null;
let pause = 1000;

export const connected = signal(false);

function tell(event) {
  for (const listener of listeners) listener(event);
}

async function read(abort) {
  const execution = followed.at(-1);
  const response = await fetch(address("/stream", { topics: topics(), every: EVERY, execution }), { headers: headers({ accept: "text/event-stream" }), signal: abort.signal });
  online.value = true;
  if (response.status === 401) ended.value = true;
  if (!response.ok) throw new Error(`the stream answered ${response.status}`);
  if (!connected.value) tell({ kind: "missed" });
  connected.value = true;
  pause = 1000;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const kind = /^event: (.*)$/m.exec(block)?.[1];
      if (!kind) continue;
      const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "{}");
      if (kind === "changes") data.changes.forEach(tell);
      else tell({ ...data, kind });
    }
  }
}

async function follow() {
  clearTimeout(again);
  stream?.abort();
  stream = null;
  if (!listeners.size || document.hidden || !me.value || ended.value) return;
  const abort = (stream = new AbortController());
  let gone = false;
  try { await read(abort); } catch (error) { gone = error.name === "TypeError"; /* it cannot be reached; tried again below */ }
  if (stream !== abort) return;
  if (gone) online.value = false;
  connected.value = false;
  pause = Math.min(pause * 1.7, 15000);
  again = setTimeout(follow, pause * (0.7 + Math.random() * 0.6));
}

let planned = false;
function restart() {
  if (planned) return;
  planned = true;
  queueMicrotask(() => { planned = false; follow(); });
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) { connected.value = false; restart(); } else follow(); });
/** Begin anew, e.g. for another namespace: whatever happened meanwhile was missed. */
export const reconnect = () => { connected.value = false; restart(); };
whenSignedIn(reconnect);

/** Hear of each change of things of these kinds; `only` may look at the event. */
export function useEvents(kinds, callback, only) {
  const latest = useRef(null);
  latest.current = (event) => { if (event.kind === "missed" || !only || only(event)) callback(event); };
  const key = kinds?.join();
  useEffect(() => {
    if (!key) return undefined;
    const wanted = new Set([...key.split(","), "missed"]);
    const seen = (event) => { if (wanted.has(event.kind)) latest.current(event); };
    listeners.add(seen);
    if (!stream) restart();
    return () => { listeners.delete(seen); };
  }, [key]);
}

/** Call back, at most once in `wait` ms, when a thing of these kinds changed. */
export function useLive(kinds, callback, { wait = 1000, only } = {}) {
  const timer = useRef(null);
  const last = useRef(-Infinity);
  const latest = useRef(callback);
  latest.current = callback;
  useEvents(kinds, (event) => {
    timer.current ??= setTimeout(() => { timer.current = null; last.current = performance.now(); latest.current(event); }, Math.max(0, last.current + wait - performance.now()));
  }, only);
  useEffect(() => () => { clearTimeout(timer.current); timer.current = null; }, [kinds?.join(), wait]);
}

/** Follow one execution with its steps and its log while the component is shown. */
export function useExecution(id, callback, options) {
  useEffect(() => {
    if (!id) return undefined;
    followed.push(id);
    restart();
    return () => { followed.splice(followed.lastIndexOf(id), 1); restart(); };
  }, [id]);
  useLive(["execution", "step", "log"], callback, options);
}
