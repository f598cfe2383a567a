// A value as YAML, for reading and for files that `horae apply` takes. It is only written here, never read.

const PLAIN = /^[A-Za-z_/$][\w ./$@%+=~^()-]*$/;
const UNFIT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/u; // for a text that stands as it is
const WORDS = new Set(["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"]);

// What YAML reads as the end of a line, or not at all, is written as an escape.
const ODD = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;
const quoted = (text) => JSON.stringify(text).replace(ODD, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

function scalar(value) {
  if (typeof value === "number") return JSON.stringify(value).replace(/^(-?\d+)e/, "$1.0e"); // 1e-7 would be read as a text
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !value.endsWith(" ") && !WORDS.has(value.toLowerCase()) ? value : quoted(value);
}

function isEmpty(value) {
  return value === null || typeof value !== "object" || (Array.isArray(value) ? !value.length : !Object.keys(value).length);
}

function lines(value, indent) {
  const pad = "  ".repeat(indent);
  if (Array.isArray(value)) return value.flatMap((one) => (isEmpty(one) ? [`${pad}- ${inline(one, indent)}`] : [`${pad}- ${lines(one, indent + 1).join("\n").trimStart()}`]));
  return Object.entries(value).flatMap(([name, one]) => (isEmpty(one) ? [`${pad}${scalar(name)}: ${inline(one, indent)}`] : [`${pad}${scalar(name)}:`, ...lines(one, indent + 1)]));
}

function inline(value, indent) {
  if (value !== null && typeof value === "object") return Array.isArray(value) ? "[]" : "{}";
  if (typeof value === "string" && value.includes("\n") && /^[^\s].*[^\n]$/s.test(value) && !UNFIT.test(value)) return `|-\n${value.split("\n").map((line) => (line ? "  ".repeat(indent + 1) + line : "")).join("\n")}`;
  return scalar(value);
}

export const toYaml = (value) => `${isEmpty(value) ? inline(value, 0) : lines(value, 0).join("\n")}\n`;
