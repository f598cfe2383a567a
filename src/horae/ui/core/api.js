// The API as the page uses it: nothing that a script could not do. Problems become errors with the server's remedy.

import { signal, computed } from "./html.js";
import { route } from "./route.js";

export const API = "/api/v1";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `The server answered ${status}.`);
    Object.assign(this, { status, title: body.title, detail: this.message, remedy: body.remedy ?? "", body });
  }
}

export const me = signal(undefined); // undefined: not asked yet, null: nobody is signed in
export const online = signal(true); // whether the server answers

const ROLES = ["viewer", "operator", "editor", "admin"];
/** Whether whoever is signed in may do what this role may. */
export const can = (role) => ROLES.indexOf(me.value?.role) >= ROLES.indexOf(role);
export const namespace = computed(() => route.value.query.ns ?? me.value?.namespace ?? "default");

const path = (given, params) => {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of [value].flat()) kept.append(name, one);
  }
  const text = kept.toString();
  return `${given.startsWith("/") ? "" : "/"}${given}${text ? `${given.includes("?") ? "&" : "?"}${text}` : ""}`;
};

export const address = (given, params) => (given.startsWith(API) ? "" : API) + path(given, params);

export function headers(more = {}) {
  const own = { accept: "application/json", ...more };
  if (route.value.query.ns) own["horae-namespace"] = route.value.query.ns;
  return own;
}

async function call(method, given, { params, body, headers: more, signal: abort } = {}) {
  const own = headers(more);
  if (body !== undefined) own["content-type"] ??= "application/json";
  if (method !== "GET" && me.value?.csrf) own["x-csrf-token"] = me.value.csrf;
  if (method === "POST") own["idempotency-key"] ??= crypto.randomUUID?.() ?? String(Math.random());
  let response;
  try {
    response = await fetch(address(given, params), { method, headers: own, body: body === undefined ? undefined : JSON.stringify(body), signal: abort });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    online.value = false;
    throw new Problem(0, { detail: "The server does not answer.", remedy: "What is shown stays; it is tried again by itself." });
  }
  online.value = true;
  if (response.status === 401 && me.value) me.value = null;
  const kind = response.headers.get("content-type") ?? "";
  const said = response.status === 204 ? null : kind.includes("json") ? await response.json() : await response.text();
  if (!response.ok) throw new Problem(response.status, typeof said === "string" ? { detail: said } : said ?? {});
  Object.defineProperty(said ?? {}, "etag", { value: response.headers.get("etag"), enumerable: false });
  return said;
}

export const get = (given, params, options) => call("GET", given, { params, ...options });
export const post = (given, body, options) => call("POST", given, { body, ...options });
export const put = (given, body, options) => call("PUT", given, { body, ...options });
export const patch = (given, body, options) => call("PATCH", given, { body, ...options });
export const del = (given, options) => call("DELETE", given, options);
export const send = call;

/** Ask who is signed in. */
export async function askWho() {
  try { me.value = await get("/me"); } catch (error) { if (error.status === 401 || error.status === 403) me.value = null; else throw error; }
  return me.value;
}

const quoted = (text) => (/^[\w./:@=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The curl command that does the same; the key stays the reader's own. */
export function curl(method, given, body, params) {
  const words = ["curl", "-X", method, quoted(location.origin + address(given, params)), "-H", '"Authorization: Bearer $HORAE_KEY"'];
  if (route.value.query.ns) words.push("-H", quoted(`Horae-Namespace: ${route.value.query.ns}`));
  if (body !== undefined) words.push("-H", "'Content-Type: application/json'", "-d", quoted(JSON.stringify(body)));
  return words.filter((word, at) => !(method === "GET" && (at === 1 || at === 2))).join(" ");
}

export const shell = (words) => words.map((word) => quoted(String(word))).join(" ");
