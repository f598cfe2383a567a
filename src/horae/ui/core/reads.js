// Reads that views share: one for each question, however many look at its answer. A read that has begun is let finish:
// what changed meanwhile is read once more, after a pause that grows with how much changes and how long an answer takes.

import { whenSignedIn } from "./api.js";
import { ended } from "./who.js";

export const NOTHING = Object.freeze({ data: undefined, error: null, loading: true });

const CALM = 50; // changes a second up to which every one is followed as soon as its view likes it
const MOST = 10000; // ms that a busy view lags behind, unless it likes more
const MEMORY = 5000; // ms over which changes are counted
const SHARE = 4; // pauses are so many times as long as answers take

const reads = new Map(); // by what they ask

class Read {
  constructor(key, ask) {
    Object.assign(this, { key, ask, state: NOTHING, listeners: new Set(), text: null, busy: null, next: null, abort: null, timer: null, wanted: null, last: -Infinity, took: 0, heat: 0, heated: 0 });
  }

  show(state) {
    this.state = state;
    for (const listener of this.listeners) listener(state);
  }

  /** Read it: the promise is kept when what is true now is shown. */
  load() {
    if (!this.busy) return this.begin();
    this.next ??= this.busy.then(() => { this.next = null; return this.begin(); });
    return this.next;
  }

  /** It has changed, so many times: it is read when `wait` ms are over since the last time, later where much changes. */
  changed(wait, count = 1) {
    const now = performance.now();
    this.heat = this.heat * Math.exp((this.heated - now) / MEMORY) + count;
    this.heated = now;
    this.wanted = Math.min(this.wanted ?? Infinity, wait);
    this.plan();
  }

  /** It is read every so many ms, however many wish so. */
  aged(every) {
    if (!this.busy && !ended.value && performance.now() - this.last > every / 2) this.load();
  }

  pause(wait) {
    const busy = this.heat / (MEMORY / 1000) / CALM;
    return Math.max(Math.min(wait * Math.max(1, busy), Math.max(wait, MOST)), SHARE * this.took);
  }

  plan() {
    if (this.wanted === null || this.busy || this.timer || !this.listeners.size) return;
    this.timer = setTimeout(() => { this.timer = null; this.load(); }, Math.max(0, this.last + this.pause(this.wanted) - performance.now()));
  }

  begin() {
    clearTimeout(this.timer);
    Object.assign(this, { timer: null, wanted: null, abort: new AbortController() });
    this.busy = this.read(this.abort.signal, performance.now()).finally(() => { this.busy = null; if (!this.next) this.plan(); });
    return this.busy;
  }

  async read(signal, began) {
    try {
      const data = await this.ask(signal);
      if (signal.aborted) return;
      const text = JSON.stringify(data);
      const same = text === this.text && !this.state.error && !this.state.loading; // then nothing is drawn again
      this.text = text;
      if (!same) this.show({ data, error: null, loading: false });
    } catch (error) {
      if (!signal.aborted && error.status !== 401) this.show({ data: this.state.data, error, loading: false });
    } finally {
      this.last = performance.now();
      this.took = this.last - began;
    }
  }

  leave(listener) {
    this.listeners.delete(listener);
    if (this.listeners.size) return;
    clearTimeout(this.timer);
    this.abort?.abort();
    if (reads.get(this.key) === this) reads.delete(this.key);
  }
}

/** Look at the answer to a question: the listener is told its state whenever that changes. */
export function look(key, ask, listener) {
  let read = reads.get(key);
  if (!read) reads.set(key, (read = new Read(key, ask)));
  read.listeners.add(listener);
  listener(read.state);
  if (read.state === NOTHING && !read.busy) read.load();
  return read;
}

// Who signed in again sees how it is by now; somebody else sees nothing of what was read before.
whenSignedIn(({ other }) => {
  for (const read of reads.values()) {
    if (other) { read.text = null; read.show({ ...NOTHING }); } // not as for one who only asks anew: nothing of it stays
    read.load();
  }
});
