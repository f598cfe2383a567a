// A Horae worker in JavaScript: Node 20 or newer, no dependencies. docs/worker-protocol.md says why it does what.
//     HORAE_URL=http://127.0.0.1:8420 HORAE_KEY_FILE=worker.key node worker.mjs functions.mjs
// The key is read from that file, again when the server refuses it, or from HORAE_KEY.
// It runs functions. It has no steps, signals, children, files or secrets.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const { default: functions } = await import(new URL(process.argv[2], `file://${process.cwd()}/`));
const { HORAE_KEY, HORAE_KEY_FILE, HORAE_URL, HORAE_QUEUES, HORAE_CONCURRENCY } = process.env;
const { HORAE_DRAIN_GRACE, HORAE_WORKER_NAME } = process.env;
const named = (HORAE_URL || "http://127.0.0.1:8420").split(",");
let [servers, homeAt] = [[...named], Infinity]; // the present one first; when those that were named are tried again
const [slots, drainSeconds] = [Number(HORAE_CONCURRENCY || 10), parseFloat(HORAE_DRAIN_GRACE || "30")];
const [POLL, TELL, SECOND_POLL] = [0, 1, 2]; // the channels
const [MAX_LINE, LINE_COST, MAX_SEALED, MAX_RESULT, MAX_TOLD] = [16_384, 24, 65_536, 1_048_576, 524_288]; // bytes
let [draining, session, installation] = [false, null, ""]; // the installation of the first server that answered
let key = HORAE_KEY_FILE ? readFileSync(HORAE_KEY_FILE, "utf8").trim() : HORAE_KEY;
const ELSEWHERE = [405, 408, 421, 431]; // another server, or something between, answers: not what was asked
// Lone surrogates and NUL, which a store's texts cannot hold, become replacement characters.
const unfit = /\\(\\|u0000|ud[89a-f]..)/g;
const encode = (body) => JSON.stringify(body).replace(unfit, (all, found) => (found === "\\" ? all : "\ufffd"));
// Timers hold up to 24 days; what is longer, or not given, never fires.
const after = (micros, act) => (micros / 1000 < 2 ** 31 ? setTimeout(act, Math.max(0, micros / 1000)) : undefined);

function hasNewKey() { // somebody may have put another key into the file
  const old = key;
  try {
    key = (HORAE_KEY_FILE && readFileSync(HORAE_KEY_FILE, "utf8").trim()) || key;
  } catch {} // the file is being replaced
  return key !== old;
}
// Send the same bytes to one server after the other until one answers; a refusal is thrown with its status and type.
async function request(method, path, body, timeout, isOver) {
  for (let wait = 50; !isOver(); wait = Math.min(1000, wait * 2)) {
    const [sentKey, headers] = [key, { authorization: `Bearer ${key}`, "content-type": "application/json" }];
    if (installation) headers["horae-installation"] = installation;
    if (performance.now() > homeAt) [servers, homeAt] = [[...new Set([...named, ...servers])], Infinity];
    const [server, sent] = [servers[0], { at: performance.now(), wall: Date.now() }];
    const options = { method, headers, body, signal: AbortSignal.timeout(timeout), redirect: "error" };
    const reply = await fetch(`${server}/api/v1/sessions${path}`, options)
      .then(async (got) => [got, got.status === 204 ? null : JSON.parse(await got.text())])
      .then(([got, answer]) => [got.status, answer, parseInt(got.headers.get("retry-after")) || 0])
      .catch(() => [599]); // no answer, or none that can be read
    const [status, answer, later] = reply;
    if (status < 300) return { answer, sent };
    if ([401, 403].includes(status) && (key !== sentKey || hasNewKey())) continue;
    if (status < 500 && ![...ELSEWHERE, 429].includes(status))
      throw Object.assign(new Error(answer?.detail ?? status), { status, ...answer });
    if (status === 429) console.error("too much for now:", answer?.detail);
    else if (servers[0] === server) servers.push(servers.shift());
    if (!named.includes(servers[0])) homeAt = Math.min(homeAt, performance.now() + 60_000);
    await sleep(Math.max(wait * (0.5 + Math.random() / 2), Math.min(60, later ?? 0) * 1000));
  }
}
const keyOf = ({ parcel, item, attempt }) => `${parcel} ${item} ${attempt}`;
const failed = (type, message, more) => ({ outcome: "failed", error: { type, message, ...more } });
// What becomes of an attempt that was told to stop: it was late, or goes back and is charged nothing.
const late = (type) => failed(type, "longer than the job's timeout", { kind: "timeout" });
const stopped = {
  cancel: { outcome: "cancelled" },
  timeout: late("RunTimeout"), heartbeatTimeout: late("HeartbeatTimeout"), totalTimeout: late("TotalTimeout"),
};
const requests = [...Object.keys(stopped), "preempt"]; // what has begun is not too late to begin: no startTimeout
const interrupted = failed("Interrupted", "its worker left, and the job may begin only once", { permanent: true });
const handedBack = ({ delivery }) => (delivery === "at-most-once" ? interrupted : { outcome: "released" });

// The end of a function that ends by itself.
async function outcomeOf(work, ctx, params, most) {
  let result;
  try {
    result = (await work(ctx, params)) ?? null;
  } catch (error) {
    return failureOf(error);
  }
  try {
    const text = JSON.stringify(result) ?? "null";
    if (Buffer.byteLength(text) <= most) return { outcome: "success", results: [JSON.parse(text)] };
    return failed("ResultTooLarge", "keep it elsewhere and return a reference", { permanent: true });
  } catch (error) { // it refers to itself, or holds a BigInt
    return failed("BadResult", failureOf(error).error.message, { permanent: true });
  }
}
function failureOf(error) { // whatever was thrown: null, a text, an error whose name is none
  try {
    const { name, message = String(error), stack = "" } = Object(error);
    const type = String(name || "Error").slice(0, 512);
    return failed(type, String(message).slice(0, 4096), { traceback: String(stack).slice(0, 16_384) });
  } catch {
    return failed("Error", "what was thrown cannot be shown");
  }
}
// A text as lines of at most 16 KiB, cut between characters.
function* linesOf(text) {
  for (const line of text.split("\n")) {
    let rest = Buffer.from(line);
    for (let cut = MAX_LINE; rest.length > MAX_LINE; cut = MAX_LINE) {
      while ((rest[cut] & 0xc0) === 0x80) cut--; // in the middle of a character
      yield rest.subarray(0, cut).toString();
      rest = rest.subarray(cut);
    }
    yield rest.toString();
  }
}
class Session {
  constructor({ answer, sent }) {
    Object.assign(this, { logLimit: 16_777_216, ...answer, runs: new Map(), taken: 0 });
    Object.assign(this, { n: [0, 0, 0], asked: [0, 0, 0] }); // by channel: its number, the slots it asks work for
    Object.assign(this, { logs: [], outcomes: [], started: [], progress: new Map() }); // what is to be told
    Object.assign(this, { isTelling: false, isOver: false, slotFell: () => {} });
    this.over = new Promise((end, fail) => Object.assign(this, { end, fail }));
    this.learn(answer, sent);
    installation = answer.installation ?? "";
    console.log("registered", this.sessionId);
    this.poll(POLL);
    this.poll(SECOND_POLL);
  }
  instant = () => Math.round(performance.now() * 1000) + this.offset; // by the server's clock
  free = () => (draining ? 0 : Math.max(0, slots - this.taken - this.asked.reduce((sum, one) => sum + one)));
  learn({ now, servers: others = [] }, sent) {
    this.offset = now - Math.round(performance.now() * 1000);
    const trust = (this.sessionTimeout - Math.min(3e6, this.sessionTimeout / 5)) / 1000;
    this.fence = { at: sent.at + trust, wall: sent.wall + trust };
    servers.push(...others.filter((url) => !servers.includes(url)));
  }
  // Beyond the fence the session may have expired. The monotonic clock of Node stands still while a machine sleeps.
  mayBegin = () => !draining && performance.now() < this.fence.at && Date.now() < this.fence.wall;
  async poll(channel) { // one always waits, for work or requests; a second one asks when the first has no free slot
    while (!this.isOver) {
      if (channel === SECOND_POLL && !(this.free() && !this.asked[POLL])) {
        await new Promise((wake) => (this.slotFell = wake));
        continue;
      }
      await this.exchange(channel, { free: this.free(), wait: this.heartbeat });
    }
  }
  async tell() { // what there is to tell, one exchange after the other: no outcome overtakes a log line
    if (this.isTelling || this.isOver) return;
    this.isTelling = true;
    do {
      const logs = this.logs.splice(0, 64); // few enough for the 8 MiB of an exchange
      const outcomes = this.takeOutcomes();
      const [started, progress] = [this.started.splice(0), [...this.progress.values()]];
      this.progress.clear();
      await this.exchange(TELL, { free: this.free(), logs, outcomes, started, progress });
    } while (!this.isOver && this.logs.length + this.outcomes.length + this.started.length + this.progress.size);
    this.isTelling = false;
    this.slotFell();
    if (draining && !this.runs.size) this.finish();
  }
  takeOutcomes() { // as many as an exchange should carry; none before the last log line of its attempt
    let [size, waiting] = [0, new Set(this.logs.map(keyOf))];
    const isNext = ({ lo: item, ...one }) =>
      size < MAX_TOLD && !waiting.has(keyOf({ item, ...one })) && (size += JSON.stringify(one).length);
    const next = new Set(this.outcomes.filter(isNext));
    this.outcomes = this.outcomes.filter((one) => !next.has(one));
    return [...next];
  }
  async exchange(channel, { free, ...body }) {
    const [path, timeout] = [`/${this.sessionId}/exchange`, (body.wait ?? 0) / 1000 + 3000];
    const up = { channel, n: ++this.n[channel], draining, free, ...body };
    this.asked[channel] = free;
    try {
      const { answer, sent } = await this.understood(up, path, timeout);
      this.asked[channel] = 0;
      this.learn(answer, sent);
      for (const grant of answer.slices ?? []) this.begin(grant, answer.jobs[`${grant.job}:${grant.version}`]);
      for (const { kind, ...item } of answer.requests ?? []) // a kind that is not known is ignored
        if (requests.includes(kind)) this.runs.get(keyOf(item))?.stop(kind);
      if (answer.drain) drain();
    } catch (error) {
      if (!this.isOver) this.finish(error);
    }
    this.asked[channel] = 0;
  }
  async understood(up, path, timeout) { // what the server refuses to read is sent again under its number, mended
    for (;;)
      try {
        const text = encode(up); // a second more for every 64 KiB on a slow line
        return await request("POST", path, text, timeout + Math.round(text.length / 65.536), () => this.isOver);
      } catch (error) {
        const mendable = [400, 413].includes(error.status) && error.type !== "urn:horae:exchange-number";
        if (!mendable || !this.lighten(up, error)) throw error;
      }
  }
  lighten({ outcomes = [], logs = [], started = [], progress = [] }, { index, message }) {
    const others = logs.length + started.length + progress.length;
    const refuse = (place) => {
      const { parcel, lo, hi, attempt, startedAt } = outcomes[place];
      const failure = failed("OutcomeRefused", `the server refused this outcome: ${message}`, { permanent: true });
      outcomes[place] = { parcel, lo, hi, attempt, startedAt, ...failure };
    };
    if (outcomes[index]) refuse(index); // the server names the one at fault
    else if (outcomes.length && others) this.outcomes.unshift(...outcomes.splice(0)); // later, without the rest
    else if (outcomes.length > 1) this.outcomes.unshift(...outcomes.splice(outcomes.length / 2));
    else if (outcomes[0]?.error?.type === "OutcomeRefused") outcomes.pop();
    else if (outcomes.length) refuse(0);
    else if (logs.length > 1) this.logs.unshift(...logs.splice(logs.length / 2));
    else if (logs.length && !logs[0].refused) {
      logs[0].lines = [[logs[0].lines[0][0], "log", `WARNING the server refused a line: ${message}`.slice(0, 300)]];
      Object.defineProperty(logs[0], "refused", { value: true });
    } else return Boolean(logs.splice(0).length + started.splice(0).length + progress.splice(0).length);
    return true;
  }
  begin({ parcel, lo, hi, attempt, items, ...grant }, job) { // at once: no start timeout can pass
    const place = { parcel, lo, hi, attempt };
    const end = (fate) => this.tell(this.outcomes.push({ ...place, ...fate }));
    if (grant.problem) end(failed("ParamsUnavailable", grant.problem, { kind: "platform" }));
    else if (!this.mayBegin()) end({ outcome: "released" });
    else if (!functions[job.task?.function]) end(failed("FunctionNotFound", "not here", { kind: "platform" }));
    else if (grant.dueAt + job.retry?.within <= this.instant()) end(stopped.totalTimeout);
    else items.forEach((params, i) => this.run({ parcel, item: lo + i, attempt }, grant, params, job));
  }
  async run(place, { tokenText, failures = 0, dueAt }, params, job) {
    const range = { parcel: place.parcel, lo: place.item, hi: place.item + 1, attempt: place.attempt };
    const [key, began, controller] = [keyOf(place), this.instant(), new AbortController()];
    const { heartbeat } = job.timeouts ?? {};
    const executionId = place.parcel.slice(0, -4) + place.item.toString(16).padStart(4, "0");
    const ctx = { executionId, attempt: place.attempt, token: tokenText, failures, signal: controller.signal };
    let [seq, written, leftOut, silence, heardAt, isTold] = [0, 0, [0, 0], undefined, 0, false];
    const write = (text, more) =>
      this.tell(this.logs.push({ ...place, seq: seq++, lines: [[this.instant(), "log", text]], ...more }));
    const end = (fate) => { // once; the slot stays taken until the function has ended, whatever it was told
      if (isTold) return;
      isTold = true;
      if (leftOut[0]) write(`WARNING the log is full: ${leftOut[0]} lines were left out`, { leftOut });
      [silence, ...timers].forEach(clearTimeout);
      this.runs.delete(key);
      const told = { startedAt: [began], endedAt: [this.instant()], sensitive: job.sensitive };
      this.tell(this.outcomes.push({ ...range, ...told, ...fate }));
    };
    const stop = (kind) => {
      controller.abort(kind);
      setImmediate(end, stopped[kind] ?? handedBack(job)); // a function that ends at once comes first
    };
    const timers = [
      after(1_000_000, () => this.tell(this.started.push({ ...range, at: began }))),
      after(job.timeout, () => stop("timeout")),
      after(dueAt + job.retry?.within - began, () => stop("totalTimeout")),
    ];
    const live = () => { // a sign of life; the server hears of it three times in the span
      if (!heartbeat || isTold) return;
      clearTimeout(silence);
      silence = after(heartbeat, () => stop("heartbeatTimeout"));
      if (performance.now() - heardAt < heartbeat / 3000) return;
      heardAt = performance.now();
      if (!this.progress.has(key)) this.tell(this.progress.set(key, place));
    };
    ctx.log = (text) => {
      for (const line of isTold ? [] : linesOf(`${text}`)) {
        const size = Buffer.byteLength(line) + LINE_COST;
        if (leftOut[0] || written + size > this.logLimit - 256) leftOut = [leftOut[0] + 1, leftOut[1] + size];
        else [written] = [written + size, write(line)];
      }
    };
    ctx.heartbeat = live;
    ctx.progress = (percent, message = "") => {
      if (isTold) return;
      const share = { percent: Math.min(100, Math.max(0, +percent || 0)), message: String(message).slice(0, 1000) };
      this.tell(this.progress.set(key, { ...place, ...share }));
      live();
    };
    this.runs.set(key, { stop });
    this.taken += job.slots ?? 1;
    live();
    const most = job.sensitive ? MAX_SEALED : MAX_RESULT;
    const fate = await outcomeOf(functions[job.task.function], ctx, { ...job.params, ...params }, most);
    this.taken -= job.slots ?? 1;
    if (!controller.signal.aborted || fate.outcome === "success") end(fate); // otherwise `stop` says what it is
    this.slotFell();
  }
  finish(error) { // all is told, or the server says that the session is over and its work goes on elsewhere
    this.isOver = true;
    this.slotFell();
    this.runs.forEach((one) => one.stop("lost"));
    return !error || [400, 404, 409, 413].includes(error.status) ? this.end() : this.fail(error);
  }
}

function drain() { // finish what runs within the grace, hand back the rest, leave
  if (draining) return;
  draining = true;
  setTimeout(() => session?.runs.forEach((one) => one.stop("drain")), drainSeconds * 1000);
  let idle = 0; // seconds since the last item ended: if all is not told by then, no server listens
  setInterval(() => !session?.runs.size && ++idle > 10 && process.exit(1), 1000);
  session?.tell();
}
// One function's stray promise or timer must not end the others. After a stray exception the process is replaced.
process.on("unhandledRejection", (error) => console.error("a promise of a function failed unseen:", error));
process.on("uncaughtException", (error) => drain(console.error("a function failed outside of its execution:", error)));
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => (draining ? process.exit(1) : drain()));
const presence = encode({
  protocol: 2, worker: HORAE_WORKER_NAME || `${hostname()}-${process.pid}`, host: hostname(), pid: process.pid,
  queues: (HORAE_QUEUES || "default").split(","), concurrency: slots, kinds: [], // no commands, no HTTP requests
  functions: Object.keys(functions).map((name) => ({ name })),
});
try {
  while (!draining) {
    const registered = await request("POST", "", presence, 15_000, () => draining);
    session = registered && new Session(registered);
    await session?.over;
  }
} catch (error) {
  console.error(`this worker cannot go on: ${error.message}`, error.remedy ?? "");
  process.exit(1);
}
const goodbye = () => request("DELETE", `/${session.sessionId}`, undefined, 3000, () => false);
if (session) await goodbye().catch((error) => console.log("the session is over already:", error.message));
process.exit();
