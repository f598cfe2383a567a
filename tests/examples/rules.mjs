// Functions that try the rules of the worker protocol.
import { setTimeout as sleep } from "node:timers/promises";

const released = {};
export default {
  echo: (ctx) => ({ token: ctx.token, attempt: ctx.attempt }),
  nap: (ctx) => sleep(600_000, null, { signal: ctx.signal }),
  brief: () => sleep(1500),
  deaf: () => sleep(600_000),
  "deaf-a-while": async (ctx) => {
    await new Promise((wake) => ctx.signal.addEventListener("abort", () => setTimeout(wake, 400)));
    released.deaf = true;
    return 1;
  },
  "is-released": () => released.deaf ?? false,
  large: () => "x".repeat(70_000),
  cyclic: () => {
    const result = {};
    return Object.assign(result, { result });
  },
  silent: () => sleep(600_000),
  lively: async (ctx) => {
    for (let i = 0; i < 12; i++) [await sleep(100), ctx.heartbeat()];
    return "alive";
  },
  writes: (ctx) => ["one", "two", "three", "four"].forEach((line) => ctx.log(line)),
  floods: (ctx) => {
    for (let i = 0; i < 200; i++) ctx.log("0123456789");
  },
  "throws-strange": () => {
    throw Object.assign(new Error("strange"), { name: Symbol("none") });
  },
  "throws-hidden": () => {
    throw new Proxy({}, { get: () => { throw new Error("hidden"); } });
  },
  "throws-long": () => {
    throw Object.assign(new Error("long"), { name: "N".repeat(2000) });
  },
  "stray-promise": async () => {
    Promise.reject(new Error("stray"));
    await sleep(50);
    return "stayed";
  },
  "stray-timer": async () => {
    setTimeout(() => { throw new Error("stray"); }, 0);
    await sleep(50);
    return "stayed";
  },
  "long-progress": (ctx) => ctx.progress(10, "p".repeat(5000)),
  wide: (ctx) => ctx.log("\u20ac".repeat(10_000)),
};
