// The time of now is the server's: a browser's own clock may be a day off, and everything here happens on servers.

const TRUSTED = 3000; // ms: closer than that the browser's clock is taken as it is, since the server says whole seconds
let ahead = 0;
const listeners = new Set();

/** Be told when it turns out that the time was a wrong one. */
export const whenCorrected = (listener) => { listeners.add(listener); };

/** Learn from an answer's header what time it is. */
export function heardAt(date) {
  const said = Date.parse(date ?? "");
  if (Number.isNaN(said)) return;
  const off = said + 500 - Date.now();
  if (Math.abs(off - ahead) <= TRUSTED) return;
  ahead = Math.abs(off) > TRUSTED ? off : 0;
  for (const listener of listeners) listener();
}

/** Now, in ms as Date.now() tells it. */
export const now = () => Date.now() + ahead;
