// The API as the page uses it: nothing that a script could not do. Problems become errors with the server's remedy.

import { signal } from "./html.js";
import { address } from "./address.js";
import { heardAt } from "./clock.js";
import { route } from "./route.js";
import { ended, isSame, me, somebody, taken } from "./who.js";
import { confirm } from "../parts/dialog.js";

export { API, address } from "./address.js";
export { can, has, may, me, namespace, needs } from "./who.js";
export { curl, paramsWord, shell } from "./script.js";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `The server answered ${status}.`);
    Object.assign(this, { status, title: body.title, detail: this.message, remedy: body.remedy ?? "", body });
  }
}

export const online = signal(true); // whether the server answers

/** The namespace that is looked at, as a header; null if it is one's own. */
export const chosenNamespace = () => route.value.query.ns ?? null;

export function headers(more = {}, ns = chosenNamespace()) {
  const own = { accept: "application/json", ...more };
  if (ns) own["horae-namespace"] = ns;
  return own;
}

async function ask(method, given, { params, body, headers: more, signal: abort, ns }) {
  const own = headers(more, ns);
  if (body !== undefined) own["content-type"] ??= "application/json";
  if (method !== "GET" && me.value?.csrf) own["x-csrf-token"] = me.value.csrf;
  let response;
  try {
    response = await fetch(address(given, params), { method, headers: own, body: body === undefined ? undefined : JSON.stringify(body), signal: abort });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    online.value = false;
    throw new Problem(0, { detail: "The server does not answer.", remedy: "What is shown stays; it is tried again by itself." });
  }
  online.value = true;
  heardAt(response.headers.get("date"));
  return response;
}

async function read(response) {
  const kind = response.headers.get("content-type") ?? "";
  const said = response.status === 204 ? null : kind.includes("json") ? await response.json() : await response.text();
  if (!response.ok) throw new Problem(response.status, typeof said === "string" ? { detail: said } : said ?? {});
  Object.defineProperty(said ?? {}, "etag", { value: response.headers.get("etag"), enumerable: false });
  return said;
}

const STRANGERS = ["/me", "/sign-in", "/sign-in/password", "/sign-out"]; // what nobody needs to be signed in for

/** Whether a write that was refused is sent again: if somebody signed in meanwhile, and who is another one says so. */
async function again(response, asker) {
  if (response.status === 401) { if (!(await somebody())) throw new Problem(401, { detail: "Nobody is signed in any more: it was not done.", remedy: "Sign in, and do it again." }); }
  else if (response.status !== 403 || !(await askWho()) || me.value.csrf === asker.csrf) return false; // else another tab signed in
  if (isSame(asker, me.value)) return true;
  const body = `${asker.name} began it, and by now ${me.value.name} is signed in. It would be done in the name of ${me.value.name}.`;
  if (await confirm({ title: `Do it as ${me.value.name}?`, body, action: `Do it as ${me.value.name}` })) return true;
  throw new Problem(401, { detail: "It was not done.", remedy: `Do it again if ${me.value.name} is to do it.` });
}

/** What stores nothing: no answer of it need be kept for a repetition. */
const isQuestion = (given, { params, body }) => Boolean(params?.dryRun || body?.dryRun) || given === "/yaml" || given === "/triggers/preview";

/** Ask the API. A write is for the namespace that was looked at when it was begun (`ns`), and is sent once under one key. */
export async function send(method, given, options = {}) {
  const asker = me.value;
  const whole = { ns: chosenNamespace(), ...options, headers: { ...options.headers } };
  const isWrite = method !== "GET" && !isQuestion(given, options);
  if (method === "POST" && isWrite) whole.headers["idempotency-key"] ??= crypto.randomUUID?.() ?? String(Math.random());
  let response = await ask(method, given, whole);
  if (!asker || STRANGERS.includes(given)) return read(response);
  if (isWrite && (response.status === 401 || response.status === 403) && (await again(response, asker))) response = await ask(method, given, whole);
  if (response.status === 401) ended.value = true;
  return read(response);
}

export const get = (given, params, options) => send("GET", given, { params, ...options });
export const post = (given, body, options) => send("POST", given, { body, ...options });

const listeners = new Set(); // told when somebody signed in (again)
export const whenSignedIn = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };

/** Ask who is signed in, and what they may in the namespace that is looked at. */
export async function askWho() {
  const asked = chosenNamespace();
  const before = me.value;
  const wasEnded = ended.value;
  let found = null;
  try { found = await get("/me"); } catch (error) { if (error.status !== 401 && error.status !== 403) throw error; }
  if (asked !== chosenNamespace()) return me.value; // asked for again since
  if (!found && before) { ended.value = true; return null; } // what is shown stays
  const other = taken(found, asked);
  if (found && (other || wasEnded || before === null)) for (const listener of listeners) listener({ other });
  return me.value;
}
