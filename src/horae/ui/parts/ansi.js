// Colours that programs write for terminals, as names of classes; what else they tell a terminal is left out.

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const RGB = { black: [0, 0, 0], red: [205, 49, 49], green: [13, 188, 121], yellow: [229, 229, 16], blue: [36, 114, 200], magenta: [188, 63, 188], cyan: [17, 168, 205], white: [229, 229, 229] };
const CODES = /\u001b\[([0-9;:]*)m|\u001b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])|[\u0000-\u0008\u000b-\u001a\u001c-\u001f]/g;

const nearest = (r, g, b) => NAMES.reduce((best, name) => (away(RGB[name], r, g, b) < away(RGB[best], r, g, b) ? name : best), "white");
const away = ([x, y, z], r, g, b) => (x - r) ** 2 + (y - g) ** 2 + (z - b) ** 2;

/** The name of one of 256 colours. */
function named(n) {
  if (n < 16) return NAMES[n % 8];
  if (n >= 232) return n > 243 ? "white" : "black";
  const level = (value) => (value ? 55 + value * 40 : 0);
  return nearest(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6));
}

function applied(look, codes) {
  const next = { ...look };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) Object.keys(next).forEach((key) => delete next[key]);
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) { delete next.bold; delete next.dim; } else if (code === 23) delete next.italic;
    else if (code === 24) delete next.underline;
    else if (code === 27) delete next.inverse;
    else if (code === 39) delete next.color;
    else if (code === 49) delete next.back;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) next.color = NAMES[code % 10];
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) next.back = NAMES[code % 10];
    else if (code === 38 || code === 48) {
      const plain = codes[at + 1] === 5;
      next[code === 38 ? "color" : "back"] = plain ? named(codes[at + 2] ?? 0) : nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0);
      at += plain ? 2 : 4;
    }
  }
  return next;
}

const classOf = ({ inverse, ...plain }) => {
  const look = inverse ? { ...plain, color: plain.back, back: plain.color ?? "white" } : plain;
  return [look.color && `ansi-${look.color}`, look.back && `ansi-on ansi-back-${look.back}`, look.bold && "ansi-bold", look.dim && "ansi-dim", look.italic && "ansi-italic", look.underline && "ansi-underline"].filter(Boolean).join(" ");
};

/** A line as a terminal leaves it that goes back to its beginning, e.g. for a bar that grows: what was written last, and how often it was. */
export function settled(line) {
  if (!line.includes("\r")) return { text: line, written: 1 };
  const parts = line.split("\r").filter((part) => plain(part).trim());
  const before = parts.slice(0, -1).join("").match(/\u001b\[[0-9;:]*m/g) ?? []; // colours last
  return { text: before.join("") + (parts.at(-1) ?? ""), written: Math.max(1, parts.length) };
}

/** Parts of a line, each a text with the names of its classes. */
export function painted(line) {
  if (!/[\u0000-\u0008\u000b-\u001f]/.test(line)) return [{ text: line, look: "" }];
  const parts = [];
  let look = {};
  let from = 0;
  const take = (to) => { if (to > from) parts.push({ text: line.slice(from, to), look: classOf(look) }); };
  for (const found of line.matchAll(CODES)) {
    take(found.index);
    from = found.index + found[0].length;
    if (found[1] !== undefined) look = applied(look, found[1].split(/[;:]/).map(Number));
  }
  take(line.length);
  return parts;
}

/** The text alone; what was written over each other stands one below the other. */
export const plain = (line) => line.replace(/\r+$/, "").replace(/\r+/g, "\n").replace(CODES, "");
