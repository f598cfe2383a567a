// What a script would do instead of the page: curl and the command line. Neither ever holds what is secret.

import { address } from "./address.js";
import { route } from "./route.js";

const quoted = (text) => (/^[\w./:@=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const SECRET = /passw|passphrase|secret|token|authori[sz]ation|credential|cookie|api-?key/i;
const HIDDEN = "\u0000";

const isNothing = (value) => value === null || value === undefined || value === "" || (typeof value === "string" && value.startsWith("secret://"));

/** A value without what is secret: by its name, or because the action names it. References to secrets are none. */
function covered(value, name, hide) {
  if (hide.includes(name) && !isNothing(value)) return HIDDEN + name + HIDDEN;
  if (typeof value === "string") return SECRET.test(name) && !isNothing(value) ? HIDDEN + name + HIDDEN : value;
  if (Array.isArray(value)) return value.map((one) => covered(one, name, hide));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, covered(one, key, hide)]));
  return value;
}

// The reader's shell puts its own value in: '{"password":"'"$PASSWORD"'"}'.
const variable = (name) => name.replace(/([a-z])([A-Z])/g, "$1_$2").replace(/\W/g, "_").toUpperCase();
const body = (given, hide) => quoted(JSON.stringify(covered(given, "", hide))).replace(/\\u0000(.*?)\\u0000/g, (_, name) => `'"$${variable(name)}"'`);

/** The curl command that does the same; the key and what is secret in the body (`hide` names more of it) stay the reader's own. */
export function curl(method, given, content, params, hide = []) {
  const words = ["curl", ...(method === "GET" ? [] : ["-X", method]), quoted(location.origin + address(given, params)), "-H", '"Authorization: Bearer $HORAE_KEY"'];
  if (route.value.query.ns) words.push("-H", quoted(`Horae-Namespace: ${route.value.query.ns}`));
  if (content !== undefined) words.push("-H", "'Content-Type: application/json'", "-d", body(content, hide));
  return words.join(" ");
}

/** Params as a word of a command line; those that hold something secret are read from a file of the reader's own. */
export const paramsWord = (params, hide) => { const text = JSON.stringify(params); return JSON.stringify(covered(params, "", hide)) === text ? text : "@params.json"; };

/** A word of a command line that is secret: the reader's shell puts its own value in. */
export const ownValue = (name) => ({ variable: variable(name) });

/** A command line; one of ours names the namespace that is looked at. */
export function shell(words) {
  const all = words.map((word) => (word?.variable ? word : String(word)));
  const { ns } = route.value.query;
  if (all[0] === "horae" && ns && !all.includes("--namespace")) all.splice(all.includes("--") ? all.indexOf("--") : all.length, 0, "--namespace", ns);
  return all.map((word) => (word.variable ? `"$${word.variable}"` : quoted(word))).join(" ");
}
