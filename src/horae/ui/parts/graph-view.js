// Moving over a drawing: dragged, wheeled, pinched or by keys. It moves one element and draws nothing anew.

import { useEffect, useRef } from "../core/html.js";

const [LEAST, MOST] = [0.02, 2.5];
const READABLE = 0.6; // smaller than this, a whole graph tells nothing: a part of it is shown instead
const FAR = 0.3; // from where words cannot be read, only colours
const MARGIN = 16;

/** `size`: of what is drawn; `centre`: what to show when it is too large for one look. */
export function useView(size, centre) {
  const frame = useRef(null);
  const layer = useRef(null);
  const view = useRef({ x: MARGIN, y: MARGIN, k: 1 });
  const moved = useRef(false);

  const apply = () => {
    layer.current?.setAttribute("transform", `translate(${view.current.x} ${view.current.y}) scale(${view.current.k})`);
    frame.current?.classList.toggle("far", view.current.k < FAR);
  };
  const zoom = (by, at) => {
    const { x, y, k } = view.current;
    const next = Math.max(LEAST, Math.min(MOST, k * by));
    const box = frame.current.getBoundingClientRect();
    const [px, py] = at ? [at.x - box.left, at.y - box.top] : [box.width / 2, box.height / 2];
    view.current = { k: next, x: px - ((px - x) * next) / k, y: py - ((py - y) * next) / k };
    apply();
  };
  const pan = (dx, dy) => { view.current.x += dx; view.current.y += dy; apply(); };
  const show = (place, k = view.current.k) => {
    const { clientWidth, clientHeight } = frame.current;
    view.current = { k, x: clientWidth / 2 - place.x * k, y: clientHeight / 2 - place.y * k };
    apply();
  };
  const fit = (whole = true) => {
    const { clientWidth, clientHeight } = frame.current;
    const k = Math.min(1, (clientWidth - 2 * MARGIN) / size.width, (clientHeight - 2 * MARGIN) / size.height);
    if (!whole && k < READABLE && centre) { show(centre, Math.max(0.8, Math.min(1, (clientHeight - 2 * MARGIN) / size.height))); return; }
    view.current = { k, x: (clientWidth - size.width * k) / 2, y: (clientHeight - size.height * k) / 2 };
    apply();
  };
  /** Bring a place into sight if it is out of it. */
  const reveal = (place) => {
    const { x, y, k } = view.current;
    const { clientWidth, clientHeight } = frame.current;
    const [px, py] = [place.x * k + x, place.y * k + y];
    if (px < 100 * k || py < 30 * k || px > clientWidth - 100 * k || py > clientHeight - 30 * k) show(place);
  };

  useEffect(() => { if (size) fit(false); }, [size]);
  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const fingers = new Map();
    const down = (event) => { if (event.button === 0) { fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, began: [event.clientX, event.clientY] }); moved.current = false; } };
    const move = (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      if (!moved.current && Math.hypot(event.clientX - last.began[0], event.clientY - last.began[1]) < 4) return;
      if (!moved.current) { moved.current = true; element.setPointerCapture(event.pointerId); }
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const before = Math.hypot(last.x - other.x, last.y - other.y);
        zoom(Math.hypot(event.clientX - other.x, event.clientY - other.y) / Math.max(before, 1), { x: (event.clientX + other.x) / 2, y: (event.clientY + other.y) / 2 });
      } else pan(event.clientX - last.x, event.clientY - last.y);
      Object.assign(last, { x: event.clientX, y: event.clientY });
    };
    const up = (event) => fingers.delete(event.pointerId);
    const wheel = (event) => {
      if (!(event.ctrlKey || event.metaKey || element.contains(document.activeElement))) return; // the page scrolls
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), { x: event.clientX, y: event.clientY });
    };
    const heard = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, wheel };
    for (const [name, run] of Object.entries(heard)) element.addEventListener(name, run, { passive: false });
    return () => { for (const [name, run] of Object.entries(heard)) element.removeEventListener(name, run); };
  }, []);
  return { frame, layer, moved, zoom, pan, fit, reveal };
}
