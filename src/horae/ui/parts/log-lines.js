// The lines of a log as they are needed: all of them by number, or those that were found. Both tell when they know more.

import { get } from "../core/api.js";

const WINDOW = 500; // lines that are read at once
const TAIL = 200;
const MOST_KEPT = 60000; // lines that are remembered; others are read again
const MOST_ROUNDS = 8; // pages of a search that are asked for without being scrolled to

class Lines {
  constructor(execution, changed) {
    Object.assign(this, { path: `/executions/${execution}/logs`, changed, error: null, lines: 0, truncated: null, ended: false, read: false, busy: null, missed: false });
    this.abort = new AbortController();
  }

  async ask(params) {
    try {
      const page = await get(this.path, params, { signal: this.abort.signal });
      Object.assign(this, { lines: page.lines, truncated: page.truncated, ended: page.ended, error: null, read: true });
      return page;
    } catch (error) {
      if (error.name !== "AbortError") { this.error = error; this.changed(); }
      return null;
    }
  }

  /** One after another: what is asked for meanwhile is looked at when this is done. */
  once(work) {
    this.busy ??= work().finally(() => {
      this.busy = null;
      if (this.abort.signal.aborted) return;
      this.changed();
      if (this.missed) this.grow();
    });
    return this.busy;
  }

  /** Something was written: read the newest, when what is being read is there. */
  grow() {
    this.missed = this.busy !== null;
    return this.busy ?? this.once(() => this.newest());
  }

  close() { this.abort.abort(); }
}

/** All lines: `count` of them, the one at a place from 0 on if it is known. */
export class AllLines extends Lines {
  known = new Map(); // by number

  get count() { return this.lines; }

  row(at) { return this.known.get(at + 1); }

  keep(page) {
    if (this.known.size > MOST_KEPT) this.known.clear();
    for (const line of page?.items ?? []) this.known.set(line.number, line);
  }

  /** What came since, or of much that came the last: how many there are is known then. */
  async newest() {
    const since = this.read && this.lines ? await this.ask({ after: this.lines, limit: WINDOW }) : null;
    this.keep(since);
    if (!since || since.more) this.keep(await this.ask({ tail: TAIL }));
  }

  /** Read what is missing between two places; answers whether something was. */
  need(from, to) {
    let first = from;
    while (first <= to && this.known.has(first + 1)) first += 1;
    if (first > to || this.busy || this.error) return false;
    this.once(async () => {
      const page = await this.ask({ after: Math.max(0, first - (first > WINDOW / 4 ? WINDOW / 4 : 0)), limit: WINDOW });
      this.keep(page);
      for (let at = first; page && at <= Math.min(to, this.lines - 1); at += 1) if (!this.known.has(at + 1)) this.known.set(at + 1, { number: at + 1, text: "", level: "info" });
    });
    return true;
  }
}

/** Lines that match: found one after another, further ones when they are scrolled to. */
export class FoundLines extends Lines {
  items = [];
  more = true;
  looked = 0;

  constructor(execution, changed, filter) {
    super(execution, changed);
    this.filter = filter;
  }

  get count() { return this.items.length; }

  row(at) { return this.items[at]; }

  async newest() {
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const page = await this.ask({ ...this.filter, after: this.looked, limit: WINDOW });
      if (!page) return;
      this.items = [...this.items, ...page.items];
      this.looked = Math.max(this.looked, page.to);
      this.more = page.more;
      if (!page.more || page.items.length) return;
    }
  }

  need(_from, to) {
    if (!this.more || this.busy || this.error || to < this.items.length - 1) return false;
    this.once(() => this.newest());
    return true;
  }
}
