// Functions for worker.mjs. A job {"python": "add"} runs the function of that name, whatever language it is written in.
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export default {
  add: (ctx, { a, b }) => a + b,

  // Fails once; a job with retries tries it again.
  flaky: (ctx) => {
    if (ctx.failures === 0) throw new Error("the first try fails");
    return { attempt: ctx.attempt };
  },

  // Waits for a file, telling how often it has looked; its signal ends the wait when the execution must stop.
  "await-file": async (ctx, { path }) => {
    ctx.log(`waiting for ${path}`);
    for (let looks = 0; !existsSync(path); looks++) {
      ctx.progress(Math.min(99, looks), `looked ${looks} times`);
      await sleep(100, null, { signal: ctx.signal });
    }
    return { attempt: ctx.attempt };
  },
};
