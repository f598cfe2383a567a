// What pages are made of: Preact, its hooks, signals and templates without a build step.

import { h, render, Fragment, Component, createContext, options } from "../vendor/preact.js";
import htm from "../vendor/htm.js";
import { showControls } from "./glyphs.js";

export { h, render, Fragment, Component, createContext };
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext, useId } from "../vendor/hooks.js";
export { signal, computed, effect, batch, useSignal, useComputed } from "../vendor/signals.js";
export const html = htm.bind(h);

showControls(options);
