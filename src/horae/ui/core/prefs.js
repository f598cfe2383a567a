// What the viewer prefers, kept in this browser: the theme. A link decides everything else.

import { signal, effect } from "./html.js";

const KEY = "horae.theme";
const kept = () => { try { return localStorage.getItem(KEY); } catch { return null; } };

export const theme = signal(kept() ?? "system"); // system, light or dark

effect(() => {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme.value;
  try { localStorage.setItem(KEY, theme.value); } catch { /* a browser that keeps nothing */ }
});

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = signal(false);
const look = () => { isDark.value = theme.value === "dark" || (theme.value === "system" && dark.matches); };
effect(look);
dark.addEventListener("change", look);

export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
// What runs beats slowly. An animation would be drawn anew with every frame, which costs more than all that a page does besides.
if (!reducedMotion) setInterval(() => { if (!document.hidden) document.documentElement.toggleAttribute("data-beat"); }, 1200);

/** A colour of the styles, for canvases: color("success"). Read it again when isDark changes. */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
