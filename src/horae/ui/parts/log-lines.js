// The lines of a log as they are needed: all of them by number, or those that were found. Both tell when they know more.

import { get } from "../core/api.js";

const WINDOW = 500; // lines that are read at once
const TAIL = 200;
const MOST_KEPT = 60000; // lines that are remembered; others are read again
const MOST_FOUND = 20000; // lines of a search that is followed; earlier ones are read again
const MOST_ROUNDS = 8; // pages of a search that are asked for without being scrolled to

class Lines {
  constructor(execution, changed) {
    Object.assign(this, { path: `/executions/${execution}/logs`, changed, error: null, lines: 0, truncated: null, ended: false, read: false, busy: null, missed: false, follows: true });
    this.abort = new AbortController();
  }

  async ask(params) {
    try {
      const page = await get(this.path, params, { signal: this.abort.signal });
      Object.assign(this, { lines: page.totalLines, truncated: page.truncated, ended: page.ended, error: null, read: true });
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
      if (this.missed) this.grown();
    });
    return this.busy;
  }

  /** Something was written: read the newest, when what is being read is there. */
  grow() {
    this.missed = this.busy !== null;
    return this.busy ?? this.once(() => this.newest());
  }

  /** The log grew: read on, unless the question itself was refused, for it would be refused again. */
  grown() { if (this.error?.status !== 400) this.grow(); }

  /** Whether somebody looks at the end: then what comes is read at once. */
  follow(follows) {
    const again = follows && !this.follows && !this.ended;
    this.follows = follows;
    if (again) this.grow();
  }

  close() { this.abort.abort(); }
}

/** All lines: `count` of them, the one at a place from 0 on if it is known. */
export class AllLines extends Lines {
  known = new Map(); // by number
  open = []; // lines that have no end yet, as they stand
  fast = false; // whether more came last time than is read at once

  get count() { return this.lines; }

  row(at) { return this.known.get(at + 1); }

  keep(page) {
    if (this.known.size > MOST_KEPT) this.known.clear();
    for (const line of page?.items ?? []) this.known.set(line.number, line);
  }

  /** What came since, or of much that came the last: how many there are is known then. Of what comes fast nothing else is asked for. */
  async newest() {
    const before = this.lines;
    if (this.read && !this.follows) { this.open = (await this.ask({ after: before, limit: 1 }))?.unfinishedLines ?? []; return; }
    const since = this.read && !this.fast ? await this.ask({ after: before, limit: TAIL }) : null;
    this.keep(since);
    const last = !since || since.more ? await this.ask({ tail: TAIL }) : since;
    this.keep(last);
    this.open = last?.unfinishedLines ?? [];
    this.fast = before > 0 && this.lines > before + TAIL;
  }

  /** Read what is missing between two places; answers whether something was. */
  need(from, to) {
    let first = from;
    while (first <= to && this.known.has(first + 1)) first += 1;
    if (first > to || this.busy || this.error) return false;
    this.once(async () => {
      const page = await this.ask({ after: Math.max(0, first - (first > WINDOW / 4 ? WINDOW / 4 : 0)), limit: WINDOW });
      this.keep(page);
      for (let at = first; page && at < Math.min(to + 1, page.to); at += 1) if (!this.known.has(at + 1)) this.known.set(at + 1, { number: at + 1, text: "", level: "info" });
    });
    return true;
  }
}

/** Lines that match, from the beginning or, of a log that is followed, from the end; others when they are scrolled to. */
export class FoundLines extends Lines {
  items = [];
  low = 0; // numbers of the first and the last line that were looked at
  high = 0;
  more = true; // whether there is something behind the last
  before = 0; // lines that were put before the others since somebody asked

  constructor(execution, changed, filter, fromEnd) {
    super(execution, changed);
    Object.assign(this, { filter, fromEnd });
  }

  get count() { return this.items.length; }

  get isPart() { return this.fromEnd ? this.low > 1 : this.more; }

  row(at) { return this.items[at]; }

  /** What matches of that which was written since. Where nobody looks at the end, only how many lines there are. */
  async newest() {
    if (!this.read) await (this.fromEnd ? this.backward() : this.forward());
    else if (this.fromEnd ? !this.follows : this.more) await this.ask({ after: this.lines, limit: 1 });
    else await this.forward();
  }

  async forward() {
    await this.pages(() => ({ after: this.high }), (page) => {
      this.items.push(...page.items);
      this.high = Math.max(this.high, page.to);
      this.more = page.more;
    });
    if (this.fromEnd && (this.more || this.count > MOST_FOUND)) { // too much to follow line by line
      Object.assign(this, { items: [], low: 0, before: 0 });
      await this.backward();
    }
  }

  async backward() {
    await this.pages(() => (this.low ? { before: this.low } : { tail: WINDOW }), (page) => {
      if (!this.low) Object.assign(this, { high: page.to, more: false });
      this.items.unshift(...page.items);
      this.before += page.items.length;
      this.low = page.more ? page.from : 1;
    });
  }

  // A page may have little or nothing in it although there is more to look at.
  async pages(where, take) {
    for (let round = 0, found = 0; round < MOST_ROUNDS && found < WINDOW / 2; round += 1) {
      const page = await this.ask({ ...this.filter, ...where(), limit: WINDOW });
      if (page) take(page);
      if (!page?.more) return;
      found += page.items.length;
    }
  }

  need(from, to) {
    if (this.busy || this.error || !this.isPart || (this.fromEnd ? from > 0 : to < this.count - 1)) return false;
    this.once(() => (this.fromEnd ? this.backward() : this.forward()));
    return true;
  }

  /** How many lines were put before those that were seen. */
  moved() {
    const { before } = this;
    this.before = 0;
    return before;
  }
}
