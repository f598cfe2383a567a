// What the palette finds: pages, jobs by name, executions by id, and what can be done from anywhere.

import { get, can } from "./api.js";
import { theme } from "./prefs.js";
import { PAGES } from "./pages.js";
import { link, jobPath, executionPath } from "./route.js";

const ID = /^[0-9a-f]{8}-?[0-9a-f-]{24,28}$/i;

const everywhere = () => [
  ...PAGES.map(({ title, path }) => ({ title, hint: "page", to: link(path) })),
  can("editor") && { title: "New job", hint: "create", to: link("/jobs/new") },
  { title: "Dark theme", hint: "look", run: () => { theme.value = "dark"; } },
  { title: "Light theme", hint: "look", run: () => { theme.value = "light"; } },
  { title: "The system's theme", hint: "look", run: () => { theme.value = "system"; } },
].filter(Boolean);

/** Items {title, hint, to | run} for what was typed. */
export async function found(text) {
  const own = everywhere().filter((one) => one.title.toLowerCase().includes(text.toLowerCase()));
  if (!text) return own;
  if (ID.test(text)) return [{ title: `Execution ${text}`, hint: "execution", to: link(executionPath(text)) }, ...own];
  try {
    const jobs = await get("/jobs", { search: text, limit: 8 });
    return [...own, ...jobs.items.map((job) => ({ title: job.name, hint: job.workflow ? "workflow" : "job", to: link(jobPath(job.name)) }))];
  } catch { return own; }
}
