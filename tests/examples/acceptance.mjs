// The functions of tests/acceptance/jobs.py in JavaScript, so that both workers pass the same tests.
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

// Say in a file that it began, and wait for another.
async function seen(ctx, { path }) {
  writeFileSync(`${path}.${process.pid}.began`, "");
  while (!existsSync(path)) await sleep(20, null, { signal: ctx.signal });
  return "seen";
}

export default {
  add: (ctx, { a, b }) => a + b,
  fails: (ctx, { message = "no" }) => {
    throw new Error(message);
  },
  deep: () => JSON.parse("[".repeat(3000) + "]".repeat(3000)),
  unfit: (ctx) => {
    ctx.log("a lone \ud800, a \0, a \\ud800 and a \u{1f600}");
    ctx.progress(Number.NaN, "half a \ud83d");
    if (ctx.failures === 0) throw "a text with \0, not an error";
    return { "\udfff": "\ud800" };
  },
  waits_for: seen,
  waits_once: seen,
};
