// Which module shows which path; each is brought when it is first looked at.

import { has } from "./who.js";

const PAGES = [
  { page: "overview", path: "/", title: "Overview", icon: "M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12M8 2v2M8 8l2.5-3" },
  { page: "jobs", path: "/jobs", title: "Jobs", icon: "M3 4h10M3 8h10M3 12h6" },
  { page: "executions", path: "/executions", title: "Executions", icon: "M4 3l8 5l-8 5z" },
  { page: "schedule", path: "/schedule", title: "Schedule", icon: "M3 4h10v9H3zM3 7h10M6 2v3M10 2v3" },
  { page: "events", feature: "events", path: "/events", title: "Events", icon: "M9 2l-5 7h4l-1 5l5-7h-4z" },
  { page: "queues", path: "/queues", title: "Queues", icon: "M3 4h3v8H3zM7.5 6h2v6h-2zM11 8h2v4h-2z" },
  { page: "workers", path: "/workers", title: "Workers", icon: "M3 3h10v4H3zM3 9h10v4H3zM5 5h1M5 11h1" },
  { page: "dead-letters", feature: "dead_letters", path: "/dead-letters", title: "Dead letters", icon: "M2.5 4h11v8h-11zM2.5 4l5.5 4.5l5.5-4.5" },
  { page: "alerts", feature: "alerts", path: "/alerts", title: "Alerts", icon: "M8 2.5c-3 0-4 2-4 4.5c0 3-1.5 3.5-1.5 4.5h11c0-1-1.5-1.5-1.5-4.5c0-2.5-1-4.5-4-4.5M6.5 13.5h3" },
  { page: "audit", path: "/audit", title: "Audit log", icon: "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2" },
  { page: "settings", path: "/settings", title: "Settings", icon: "M8 5.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2" },
];

/** The pages that the server has. */
export const pages = () => PAGES.filter((one) => has(one.feature));
/** The feature that a page needs, if the server has switched it off. */
export const lacking = (name) => PAGES.find((one) => one.page === name && !has(one.feature))?.feature;

const LOAD = {
  overview: () => import("../pages/overview.js"),
  jobs: () => import("../pages/jobs.js"),
  job: () => import("../pages/job.js"),
  "job-edit": () => import("../pages/job-edit.js"),
  executions: () => import("../pages/executions.js"),
  execution: () => import("../pages/execution.js"),
  schedule: () => import("../pages/schedule.js"),
  events: () => import("../pages/events.js"),
  queues: () => import("../pages/queues.js"),
  queue: () => import("../pages/queue.js"),
  workers: () => import("../pages/workers.js"),
  worker: () => import("../pages/worker.js"),
  "dead-letters": () => import("../pages/dead-letters.js"),
  alerts: () => import("../pages/alerts.js"),
  audit: () => import("../pages/audit.js"),
  settings: () => import("../pages/settings.js"),
};
// An id is part of the paths that the page asks for: what is none could lead to another route, such as a job's own file.
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ONE = { jobs: "job", executions: "execution", queues: "queue", workers: "worker" };

/** The module's name and the props for where one is. */
export function chosen({ page, rest }) {
  if (page === "jobs" && (rest[0] === "new" && rest.length === 1 || rest[1] === "edit")) return ["job-edit", { name: rest[1] === "edit" ? rest[0] : null }];
  if (rest.length && page === "executions" && !ID.test(rest[0])) return [null, { rest }];
  if (rest.length && Object.hasOwn(ONE, page)) return [ONE[page], { id: rest[0], rest: rest.slice(1) }];
  return [Object.hasOwn(LOAD, page) ? page : null, { rest }];
}

const modules = new Map();
export const load = async (name) => {
  if (!modules.has(name)) modules.set(name, (await LOAD[name]()).default);
  return modules.get(name);
};
