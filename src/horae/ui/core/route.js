// Where one is: every view's state is in the address, so that back, reload and a link sent to a colleague work.

import { signal } from "./html.js";

const ROOT = "/ui";

// Half an escape is taken as it stands: it names nothing, and the page says so.
const plain = (part) => { try { return decodeURIComponent(part); } catch { return part; } };

function read() {
  const path = location.pathname.replace(/\/+$/, "");
  const query = Object.fromEntries(new URLSearchParams(location.search));
  const inside = path === ROOT || path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length) : path;
  const [page = "", ...rest] = inside.split("/").filter(Boolean).map(plain);
  return { path: inside || "/", page: page || "overview", rest, query, hash: location.hash.slice(1) };
}

export const route = signal(read());

function address(path, query = {}) {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined && value !== "" && value !== false) kept.set(name, value);
  const text = kept.toString();
  return `${path === "/" ? "/" : ROOT + path}${text ? `?${text}` : ""}`;
}

/** The address of a view, e.g. link("/jobs/nightly", {tab: "schedule"}); the namespace goes along. */
export const link = (path, query = {}) => address(path, { ns: route.value.query.ns, ...query });

export const jobPath = (name, more = "") => `/jobs/${encodeURIComponent(name)}${more}`;
export const executionPath = (id) => `/executions/${id}`;

function move(to, replace) {
  if (to === location.pathname + location.search + location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  route.value = read();
}

/** Show another view. */
export function go(path, query, { replace = false } = {}) {
  move(path.startsWith(ROOT) || query === undefined && path.includes("?") ? path : link(path, query), replace);
  if (!replace) scrollTo(0, 0);
}

/** Change some of the view's state; null takes a part away. What is typed replaces, what is chosen can be gone back from. */
export function setQuery({ hash = "", ...patch }, { replace = false } = {}) {
  move(address(route.value.path, { ...route.value.query, ...patch }) + hash, replace);
}

addEventListener("popstate", () => { route.value = read(); });
addEventListener("hashchange", () => { route.value = read(); });

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || anchor.target || anchor.hasAttribute("download")) return;
  const to = new URL(anchor.href, location.href);
  if (to.origin !== location.origin || !(to.pathname === "/" || to.pathname.startsWith(`${ROOT}/`))) return;
  event.preventDefault();
  const samePage = to.pathname === location.pathname;
  move(to.pathname + to.search + to.hash, false);
  if (!samePage) { scrollTo(0, 0); document.getElementById("content")?.focus({ preventScroll: true }); }
});
