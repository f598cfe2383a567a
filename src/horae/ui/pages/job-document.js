// A job's definition as its owner would write it: without what the server tells of it, and without what is the default.

/** The fields of a definition in their order, each with what it is when nobody says so. */
const DEFAULTS = {
  name: "", description: "", command: undefined, python: undefined, http: undefined, workflow: undefined, schedule: null, triggers: [],
  params: {}, schema: null, retries: 0, retry: { delay: "1s", factor: 2, max: "5m", jitter: 0.1 }, timeout: null, timeouts: {}, pauseAfter: null, within: null,
  grace: "10s", priority: 4, queue: "default", interruptible: true, preemptible: false, preempts: false, sensitive: false, durable: false,
  needs: [], prefers: [], slots: 1, resources: {}, affinity: null, spread: false, dependencies: [], dependencyTimeout: "1d",
  onDependencyTimeout: "fail", tags: {}, env: {}, secrets: [], delivery: "at-least-once", keyFor: "1d", concurrency: null, rate: null,
  burst: null, limits: [], sequence: null, unique: null, debounce: null, batch: null, cache: null, circuit: null,
};

export const TASKS = ["command", "python", "http", "workflow"];

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The document of a job, or of a version of it. */
export function written(job) {
  if (job.template) return { name: job.name, template: job.template, with: job.with, ...job.own };
  const kept = Object.entries(DEFAULTS).filter(([name, usual]) => job[name] !== undefined && job[name] !== null && !same(job[name], usual));
  return Object.fromEntries(kept.map(([name]) => [name, job[name]]));
}

export const kindOf = (job) => TASKS.find((task) => job[task] !== undefined && job[task] !== null) ?? "command";

/** Whether a task says nothing yet. */
export const isBlank = (task) => task === undefined || task === null || task === "" || (typeof task === "object" && !Object.values(task).flat().some((one) => one !== ""));
