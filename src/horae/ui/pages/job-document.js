// A job's definition as its owner would write it: without what the server tells of it, and without what is the default.

import { FIELDS } from "../core/job-fields.js";

export const TASKS = ["command", "python", "http", "workflow"];

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The document of a job, or of a version of it. */
export function written(job) {
  if (job.template) return { name: job.name, template: job.template, with: job.with, ...job.overrides };
  const kept = FIELDS.filter(({ name, default: usual }) => job[name] !== undefined && job[name] !== null && !same(job[name], usual));
  return Object.fromEntries(kept.map(({ name }) => [name, job[name]]));
}

export const kindOf = (job) => TASKS.find((task) => job[task] !== undefined && job[task] !== null) ?? "command";

/** Whether a task says nothing yet. */
export const isBlank = (task) => task === undefined || task === null || task === "" || (typeof task === "object" && !Object.values(task).flat().some((one) => one !== ""));
