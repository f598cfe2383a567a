// A Horae worker in JavaScript: Node 20 or newer, no dependencies. docs/worker-protocol.md says why it does what.
//     HORAE_URL=http://127.0.0.1:8420 HORAE_KEY=hk_... node worker.mjs functions.mjs
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const { default: functions } = await import(new URL(process.argv[2], `file://${process.cwd()}/`));
const { HORAE_KEY, HORAE_URL, HORAE_QUEUES, HORAE_CONCURRENCY, HORAE_DRAIN_GRACE, HORAE_WORKER_NAME } = process.env;
const servers = (HORAE_URL || "http://127.0.0.1:8420").split(","); // the present one first
const [slots, drainSeconds] = [Number(HORAE_CONCURRENCY || 10), parseFloat(HORAE_DRAIN_GRACE || "30")];
let [draining, session] = [false, null];
// Lone surrogates and NUL, which a store's texts cannot hold, become replacement characters.
const unfit = /\\(\\|u0000|ud[89a-f]..)/g;
const encode = (body) => JSON.stringify(body).replace(unfit, (all, found) => (found === "\\" ? all : "\ufffd"));

// Send the same bytes to one server after the other until one answers; a refusal is thrown with its status.
async function request(method, path, body, timeout, isOver) {
  const headers = { authorization: `Bearer ${HORAE_KEY}`, "content-type": "application/json" };
  for (let wait = 50; !isOver(); wait = Math.min(1000, wait * 2)) {
    const [server, sentAt] = [servers[0], performance.now()];
    const options = { method, headers, body, signal: AbortSignal.timeout(timeout) };
    const reply = await fetch(`${server}/api/v1/sessions${path}`, options)
      .then(async (response) => ({ status: response.status, answer: JSON.parse((await response.text()) || "null") }))
      .catch(() => ({ status: 599 })); // no answer, or none that can be read
    if (reply.status < 300) return { answer: reply.answer, sentAt };
    if (reply.status < 500) throw Object.assign(new Error(reply.answer.detail), { status: reply.status });
    if (servers[0] === server) servers.push(servers.shift());
    await sleep(wait * (0.5 + Math.random() / 2));
  }
}
const keyOf = ({ parcel, item, attempt }) => `${parcel} ${item} ${attempt}`;
const failed = (type, message, more) => ({ outcome: "failed", error: { type, message, ...more } });
// What becomes of an attempt that was told to stop: it was late, or goes back and is charged nothing.
const late = (type) => failed(type, "longer than the job's timeout", { kind: "timeout" });
const stopped = { cancel: { outcome: "cancelled" }, timeout: late("RunTimeout"), totalTimeout: late("TotalTimeout") };
const interrupted = failed("Interrupted", "its worker left, and the job may begin only once", { permanent: true });
const handedBack = ({ delivery }) => (delivery === "at-most-once" ? interrupted : { outcome: "released" });

// Run a function to its end, or until it is told to stop: it hears of that by its signal, and is not waited for.
async function outcomeOf(work, ctx, params, job) {
  try {
    const stop = new Promise((_, reject) => ctx.signal.addEventListener("abort", reject));
    const text = JSON.stringify((await Promise.race([work(ctx, params), stop])) ?? null);
    if (Buffer.byteLength(text) <= 1024 * 1024) return { outcome: "success", results: [JSON.parse(text)] };
    return failed("ResultTooLarge", "keep it elsewhere and return a reference", { permanent: true });
  } catch (error) {
    if (ctx.signal.aborted) return stopped[ctx.signal.reason] ?? handedBack(job);
    const { name = "Error", message = String(error), stack = "" } = Object(error);
    return failed(name, message.slice(0, 4096), { traceback: stack.slice(0, 16_384) });
  }
}
class Session {
  constructor({ answer, sentAt }) {
    Object.assign(this, answer, { n: [0, 0], asked: 0, runs: new Map(), isTelling: false, isOver: false });
    Object.assign(this, { logs: [], outcomes: [], started: [], progress: new Map() }); // what is to be told
    this.over = new Promise((end, fail) => Object.assign(this, { end, fail }));
    this.learn(answer, sentAt);
    console.log("registered", this.sessionId);
    this.poll();
  }
  instant = () => Math.round(performance.now() * 1000) + this.offset; // by the server's clock
  free = () => (draining ? 0 : Math.max(0, slots - this.runs.size - this.asked));
  learn({ now, servers: others = [] }, sentAt) {
    this.offset = now - Math.round(performance.now() * 1000);
    this.fence = sentAt + (this.sessionTimeout - Math.min(3e6, this.sessionTimeout / 5)) / 1000;
    servers.push(...others.filter((url) => !servers.includes(url)));
  }
  async poll() { // channel 0 waits for work and requests; without a free slot it looks for requests now and then
    for (; !this.isOver; this.asked = 0) {
      this.asked = this.free();
      await this.exchange(0, { free: this.asked, wait: this.asked ? this.heartbeat : 0 });
      if (!this.asked) await sleep(this.heartbeat / 10_000);
    }
  }
  async tell() { // channel 1 tells what there is to tell, and fills the slots that became free
    if (this.isTelling || this.isOver) return;
    this.isTelling = true;
    do {
      const logs = this.logs.splice(0, 64); // few enough for the 8 MiB of an exchange
      const outcomes = this.logs.length ? [] : this.outcomes.splice(0, 4); // none before its last log line
      const [started, progress] = [this.started.splice(0), [...this.progress.values()]];
      this.progress.clear();
      await this.exchange(1, { free: this.free(), logs, outcomes, started, progress });
    } while (!this.isOver && this.logs.length + this.outcomes.length + this.started.length + this.progress.size);
    this.isTelling = false;
    if (draining && !this.runs.size) this.finish();
  }
  async exchange(channel, body) {
    const [path, timeout] = [`/${this.sessionId}/exchange`, (body.wait ?? 0) / 1000 + 3000];
    try {
      const up = encode({ channel, n: ++this.n[channel], draining, ...body });
      const { answer, sentAt } = await request("POST", path, up, timeout, () => this.isOver);
      this.learn(answer, sentAt);
      for (const grant of answer.slices ?? []) this.begin(grant, answer.jobs[`${grant.job}:${grant.version}`]);
      for (const { kind, ...item } of answer.requests ?? []) // what it was granted has begun
        if (kind !== "startTimeout") this.runs.get(keyOf(item))?.abort(kind === "heartbeatTimeout" ? "timeout" : kind);
      if (answer.drain) drain();
    } catch (error) {
      if (!this.isOver) this.finish(error);
    }
  }
  begin({ parcel, lo, hi, attempt, items, ...grant }, job) {
    const mayBegin = !draining && performance.now() < this.fence; // beyond it the session may have expired
    if (mayBegin) items.forEach((params, i) => this.run({ parcel, item: lo + i, attempt }, grant, params, job));
    else this.tell(this.outcomes.push({ parcel, lo, hi, attempt, outcome: "released" }));
  }
  async run(place, { token, failures = 0 }, params, job) {
    const range = { parcel: place.parcel, lo: place.item, hi: place.item + 1, attempt: place.attempt };
    let [key, began, controller, seq] = [keyOf(place), this.instant(), new AbortController(), 0];
    const timers = [setTimeout(() => this.tell(this.started.push({ ...range, at: began })), this.heartbeat / 1000)];
    if (job.timeout / 1000 < 2 ** 31) timers.push(setTimeout(() => controller.abort("timeout"), job.timeout / 1000));
    const executionId = place.parcel.slice(0, -4) + place.item.toString(16).padStart(4, "0");
    const ctx = { executionId, attempt: place.attempt, token, failures, signal: controller.signal };
    const lines = (text) => [[this.instant(), "log", `${text}`.slice(0, 16_384)]];
    ctx.log = (text) => this.tell(this.logs.push({ ...place, seq: seq++, lines: lines(text) }));
    const share = (p, text = "") => ({ ...place, percent: Math.min(100, Math.max(0, +p || 0)), message: `${text}` });
    ctx.progress = (...told) => this.tell(this.progress.set(key, share(...told)));
    this.runs.set(key, controller);
    const fate = await outcomeOf(functions[job.task.function], ctx, { ...job.params, ...params }, job);
    timers.forEach(clearTimeout);
    this.runs.delete(key);
    this.tell(this.outcomes.push({ ...range, startedAt: [began], endedAt: [this.instant()], ...fate }));
  }
  finish(error) { // all is told, or the server says that the session is over and its work goes on elsewhere
    this.isOver = true;
    this.runs.forEach((controller) => controller.abort("lost"));
    return !error || [400, 404, 409, 413].includes(error.status) ? this.end() : this.fail(error);
  }
}

function drain() { // finish what runs within the grace, hand back the rest, leave
  if (draining) return;
  draining = true;
  setTimeout(() => session?.runs.forEach((controller) => controller.abort("drain")), drainSeconds * 1000);
  setTimeout(() => process.exit(1), drainSeconds * 1000 + 10_000); // no server listens
  session?.tell();
}
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => (draining ? process.exit(1) : drain()));
const presence = encode({
  protocol: 1, worker: HORAE_WORKER_NAME || `${hostname()}-${process.pid}`, host: hostname(), pid: process.pid,
  queues: (HORAE_QUEUES || "default").split(","), concurrency: slots, kinds: [], // no commands, no HTTP requests
  functions: Object.keys(functions).map((name) => ({ name })),
});
while (!draining) {
  const registered = await request("POST", "", presence, 15_000, () => draining);
  session = registered && new Session(registered);
  await session?.over;
}
if (session) await request("DELETE", `/${session.sessionId}`, undefined, 3000, () => false);
process.exit();
