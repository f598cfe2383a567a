// A list that is being read does not move: what came meanwhile waits behind "12 new".

import { useRef } from "../core/html.js";
import { plural } from "../core/format.js";

// Somebody reads who has scrolled, points at a row, or has moved to one.
const isRead = () => scrollY > 80 || document.querySelector(".table-wrap:hover tbody, tbody tr.at") !== null;

/**
 * What useList gives, with its rows held still while they are read: they change in place, new ones are counted.
 * `key` names what is listed: another one begins anew. `held` is whether they must stay, e.g. because some are chosen.
 */
export function useSteady(list, key, { keyOf, held = false, what = "new one" }) {
  const kept = useRef({ key: null, rows: new Map() });
  if (!list.items || list.loading) { kept.current = { key: null, rows: new Map() }; return list; }
  const known = kept.current.key === key ? kept.current.rows : new Map();
  const first = list.items.findIndex((one) => known.has(keyOf(one)));
  const fresh = known.size === 0 ? 0 : first < 0 ? list.items.length : first;
  if (!fresh || !(held || isRead())) {
    kept.current = { key, rows: new Map(list.items.map((one) => [keyOf(one), one])) };
    return list;
  }
  for (const one of list.items.slice(fresh)) known.set(keyOf(one), one);
  const top = () => { kept.current = { key: null, rows: new Map() }; scrollTo(0, 0); list.top(); };
  return { ...list, items: [...known.values()], fresh, said: `${plural(fresh, what)}: show`, top };
}
