// Modules that are brought when they are first needed. One that cannot be had is tried again until the server answers.

export const AGAIN = 2000; // ms until what could not be loaded is tried again

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN));

/** Bring a module once, however many ask for it: `load` imports it. */
export function once(load) {
  let loading = null;
  const attempt = () => load().catch(() => pause().then(attempt));
  return () => (loading ??= attempt());
}
