// Control characters in texts of others are shown, not obeyed: those that change the direction of text make a line read differently from what it says.

const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const READ_ALOUD = ["title", "aria-label", "alt", "placeholder", "label"];

const glyph = (character) => {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
};

/** A text with its control characters as glyphs; tabs and line breaks stay. */
export const shown = (text) => text.replace(CONTROLS, glyph);

/** Have every text that a page renders shown so, and the attributes that people read. */
export function showControls(options) {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (vnode.type === null && typeof vnode.props === "string") vnode.props = shown(vnode.props);
    else if (typeof vnode.type === "string") for (const name of READ_ALOUD) if (typeof vnode.props[name] === "string") vnode.props[name] = shown(vnode.props[name]);
    before?.(vnode);
  };
}
