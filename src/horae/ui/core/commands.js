// What the palette finds: pages, jobs, queues and workers by name, executions by id, and what can be done from anywhere.

import { signal } from "./html.js";
import { act } from "./act.js";
import { get, can } from "./api.js";
import { shortId } from "./format.js";
import { theme } from "./prefs.js";
import { pages } from "./pages.js";
import { go, link, jobPath, executionPath } from "./route.js";
import { look, shown } from "./states.js";

const ID = /^[0-9a-f]{8}-?[0-9a-f-]{24,28}$/i;
const PART = /^…?[0-9a-f-]{4,}$/i; // of an id, e.g. the end that is shown
const VERB = /^(trigger|run|pause|resume)\s+(\S.*)$/i;
const MOST = 8;

/** Counts how often the keys were asked for; the frame shows them. */
export const help = signal(0);

const everywhere = () => [
  ...pages().map(({ title, path }) => ({ title, hint: "page", to: link(path) })),
  can("editor") && { title: "New job", hint: "create", to: link("/jobs/new") },
  { title: "Help: keys", hint: "help", run: () => { help.value += 1; } },
  { title: "Help: the API's description", hint: "help", run: () => open("/openapi.json", "_blank", "noopener") },
  { title: "Dark theme", hint: "look", run: () => { theme.value = "dark"; } },
  { title: "Light theme", hint: "look", run: () => { theme.value = "light"; } },
  { title: "The system's theme", hint: "look", run: () => { theme.value = "system"; } },
].filter(Boolean);

// Lists that are short or asked for at every letter are kept for a few seconds.
const kept = new Map();
async function soon(path, params) {
  const key = link(path, params);
  const known = kept.get(key);
  if (known && Date.now() - known.at < 5000) return known.items;
  const { items } = await get(path, params);
  kept.set(key, { at: Date.now(), items });
  return items;
}

const calm = async (asked) => { try { return await asked; } catch { return []; } };
const has = (name, text) => name.toLowerCase().includes(text.toLowerCase());
const first = (items, text, name) => [...items].sort((a, b) => (name(b) === text) - (name(a) === text) || name(b).startsWith(text) - name(a).startsWith(text)).slice(0, MOST);

const jobAction = (job, verb) => {
  const word = { trigger: "Trigger", pause: "Pause", resume: "Resume" }[verb];
  return {
    title: `${word} ${job.name}`, hint: job.workflow ? "workflow" : "job",
    run: () => act({
      title: `${word} ${job.name}`, path: `/jobs/${encodeURIComponent(job.name)}/${verb}`, body: verb === "trigger" ? {} : undefined, cli: ["jobs", verb, job.name],
      done: verb === "trigger" ? `${job.name} was triggered.` : `${job.name} is ${verb === "pause" ? "paused" : "active again"}.`,
      undo: verb === "trigger" ? undefined : { title: "Undo", path: `/jobs/${encodeURIComponent(job.name)}/${verb === "pause" ? "resume" : "pause"}`, cli: ["jobs", verb === "pause" ? "resume" : "pause", job.name], done: `${job.name} is as it was.` },
      after: verb === "trigger" ? (answer) => go(link(executionPath(answer.executionId))) : undefined,
    }),
  };
};

const verbsOf = (job) => (can("operator") ? ["trigger", job.state === "paused" ? "resume" : "pause"] : []);

const jobItem = (job) => ({ title: job.name, hint: job.workflow ? "workflow" : "job", to: link(jobPath(job.name)) });

async function jobsOf(text) {
  const { items } = await get("/jobs", { search: text, limit: MOST });
  return first(items, text, (one) => one.name);
}

async function executionsOf(text) {
  const end = text.replace("…", "").toLowerCase();
  const items = await soon("/executions", { limit: 200 });
  return items.filter((one) => one.executionId.includes(end)).slice(0, MOST).map((one) => ({ title: `${one.jobName} ${shortId(one.executionId)}`, hint: look(shown(one)).word, to: link(executionPath(one.executionId)) }));
}

const placesOf = async (path, name, word, text) =>
  first((await soon(path)).filter((one) => has(one[name], text)), text, (one) => one[name]).map((one) => ({ title: one[name], hint: word, to: link(`${path}/${encodeURIComponent(one[name])}`) }));

/** Items {title, hint, to | run} for what was typed. */
export async function found(text) {
  const own = everywhere().filter((one) => has(one.title, text));
  if (!text) return own;
  if (ID.test(text)) return [{ title: `Execution ${text}`, hint: "execution", to: link(executionPath(text)) }, ...own];
  const [, verb, rest] = VERB.exec(text) ?? [];
  const jobs = await calm(jobsOf(rest ?? text));
  if (verb) {
    const wanted = { run: "trigger" }[verb.toLowerCase()] ?? verb.toLowerCase();
    return [...jobs.filter((job) => verbsOf(job).includes(wanted)).map((job) => jobAction(job, wanted)), ...own];
  }
  const [executions, queues, workers] = await Promise.all([
    PART.test(text) ? calm(executionsOf(text)) : [], calm(placesOf("/queues", "name", "queue", text)), calm(placesOf("/workers", "workerId", "worker", text)),
  ]);
  const actions = jobs.length === 1 || jobs[0]?.name === text ? verbsOf(jobs[0]).map((one) => jobAction(jobs[0], one)) : [];
  return unique([...own, ...jobs.map(jobItem), ...actions, ...executions, ...queues, ...workers]);
}

const unique = (items) => [...new Map(items.map((one) => [one.to ?? one.title, one])).values()];
