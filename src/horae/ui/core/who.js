// Who is signed in, and what they may in the namespace that is looked at.

import { computed, signal } from "./html.js";
import { route } from "./route.js";

export const me = signal(undefined); // undefined: not asked yet, null: nobody is signed in
export const ended = signal(false); // the sign-in has ended while something is shown: it stays, and one signs in over it

export const person = signal(0); // counts up when somebody else signs in: nothing of what was shown before stays

const chosen = computed(() => route.value.query.ns ?? null);
const ROLES = ["viewer", "operator", "editor", "admin"];

/** Whether rights are known: another namespace has others. */
export const isKnown = computed(() => Boolean(me.value) && me.value.asked === chosen.value);
/** Whether whoever is signed in may do what this role may, here. */
export const can = (role) => isKnown.value && ROLES.indexOf(me.value.role) >= ROLES.indexOf(role);
/** Why a button is disabled, for its title. */
export const needs = (role) => (can(role) ? "" : `This needs the role ${role}.`);
export const may = (permission) => isKnown.value && me.value.permissions.includes(permission);
/** Whether the server has a feature. Links to one that is switched off are left out, and its routes are not asked. */
export const has = (feature) => !feature || (me.value?.features ?? []).includes(feature);
export const namespace = computed(() => chosen.value ?? (me.value?.asked === null ? me.value.namespace : null) ?? "default");

const waiting = []; // writes that were refused because nobody is signed in any more

/** Wait until somebody signs in again; answers who, or null if nobody did. */
export function somebody() {
  ended.value = true;
  return new Promise((resolve) => waiting.push(resolve));
}

const settle = (who) => { for (const resolve of waiting.splice(0)) resolve(who); };

/** Nobody signed in after all: what waited is not done. */
export const nobody = () => settle(null);

export const isSame = (one, other) => one?.keyId === other?.keyId && one?.name === other?.name;

/** Take what the server says of who is there, asked for a namespace; answers whether it is somebody else than before. */
export function taken(answer, asked) {
  const before = me.value;
  me.value = answer && { ...answer, asked };
  if (answer) { ended.value = false; settle(me.value); }
  const isOther = Boolean(before && answer) && !isSame(before, answer);
  if (isOther) person.value += 1;
  return isOther;
}
