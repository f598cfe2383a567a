// What a JSON schema says about one value, for forms: how it is asked for, what it begins as, and what is wrong with it.
// The server looks again, at everything; this only spares one the way there.

const DEEPEST = 20; // references to references
const LONG = 200; // characters that want more than one line

const unescaped = (name) => { try { return decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"); } catch { return name; } };

/** A schema with its reference followed and its "or null" told as `nullable`; `root` holds the $defs. */
export function resolved(given, root, deep = 0) {
  let schema = given && typeof given === "object" ? given : {}; // true, and false: the server refuses what is not allowed
  if (schema.$ref?.startsWith("#") && deep < DEEPEST) {
    const { $ref, ...beside } = schema;
    const found = $ref.slice(1).split("/").filter(Boolean).reduce((part, name) => part?.[unescaped(name)], root);
    return resolved({ ...found, ...beside }, root, deep + 1);
  }
  const { anyOf, oneOf, allOf, ...beside } = schema;
  if (allOf?.length === 1 && deep < DEEPEST) return resolved({ ...allOf[0], ...beside, ...(anyOf && { anyOf }), ...(oneOf && { oneOf }) }, root, deep + 1);
  const choices = (anyOf ?? oneOf ?? []).map((one) => resolved(one, root, deep + 1));
  const real = choices.filter((one) => one.type !== "null");
  const nullable = choices.length > real.length || [schema.type].flat().includes("null") || schema.nullable === true;
  if (real.length === 1 && !allOf) schema = { ...real[0], ...beside };
  else if (real.length && !allOf && real.every((one) => "const" in one || one.enum)) schema = { ...beside, enum: real.flatMap((one) => one.enum ?? [one.const]), words: real.flatMap((one) => (one.enum ? one.enum.map(() => null) : [one.title])) };
  return nullable ? { ...schema, nullable } : schema;
}

const typesOf = (schema) => [schema.type].flat().filter((one) => one && one !== "null");

/** How a value is asked for: choice, tick, number, text, lines (a list, one on each), group (its own fields) or json. */
export function kindOf(schema, root) {
  if (schema.enum || "const" in schema) return "choice";
  const types = typesOf(schema);
  if (types.length !== 1 || schema.anyOf || schema.oneOf || schema.allOf) return "json";
  if (types[0] === "array") {
    const item = resolved(schema.items, root);
    return !item.enum && typesOf(item).length === 1 && ["string", "number", "integer"].includes(item.type) && !item.nullable ? "lines" : "json";
  }
  if (types[0] === "object") return Object.keys(schema.properties ?? {}).length && !(typeof schema.additionalProperties === "object") ? "group" : "json";
  return { string: "text", integer: "number", number: "number", boolean: "tick" }[types[0]] ?? "json";
}

export const options = (schema) => schema.enum ?? [schema.const];

const INPUTS = { date: "date", time: "time", "date-time": "datetime-local", email: "email", uri: "url", password: "password" };
export const isSecret = (schema) => schema?.writeOnly === true || schema?.format === "password";
/** The names of fields, also within groups, that are secret. */
export const secretNames = (schema, root = schema) => Object.entries(schema?.properties ?? {}).flatMap(([name, given]) => {
  const one = resolved(given, root);
  return isSecret(one) ? [name] : kindOf(one, root) === "group" ? secretNames(one, root) : [];
});
/** The browser's own kind of field for a text; null where it wants more than one line. */
export function inputOf(schema) {
  if (isSecret(schema)) return "password";
  return INPUTS[schema.format] ?? (schema.maxLength > LONG || schema.contentMediaType ? null : "text");
}

/** What a form shows before anybody typed, which is what it sends: what is there, else the default, else what alone is possible. */
export function initial(schema, own, root = schema) {
  const value = { ...own };
  for (const [name, given] of Object.entries(schema?.properties ?? {})) {
    if (value[name] !== undefined) continue;
    const one = resolved(given, root);
    const needed = (schema.required ?? []).includes(name);
    if (one.default !== undefined && one.default !== null) value[name] = one.default;
    else if (needed && "const" in one) value[name] = one.const;
    else if (needed && kindOf(one, root) === "tick" && !one.nullable) value[name] = false;
    else if (needed && kindOf(one, root) === "group") value[name] = initial(one, {}, root);
  }
  return value;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const FITS = { string: (v) => typeof v === "string", integer: Number.isInteger, number: (v) => typeof v === "number", boolean: (v) => typeof v === "boolean", array: Array.isArray, object: isObject };
const WORDS = { string: "a text", integer: "a whole number", number: "a number", boolean: "true or false", array: "a list: [ … ]", object: "an object: { … }" };

function ofNumber(schema, value) {
  if (Number.isNaN(value)) return "not a number";
  if (schema.type !== "number" && !Number.isInteger(value)) return "not a whole number";
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return "too large to be kept exactly here; use the command line";
  if (schema.minimum !== undefined && value < schema.minimum) return `at least ${schema.minimum}`;
  if (schema.maximum !== undefined && value > schema.maximum) return `at most ${schema.maximum}`;
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum) return `more than ${schema.exclusiveMinimum}`;
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum) return `less than ${schema.exclusiveMaximum}`;
  const times = schema.multipleOf ? value / schema.multipleOf : 0;
  return Math.abs(times - Math.round(times)) > 1e-9 ? `a multiple of ${schema.multipleOf}` : null;
}

function ofText(schema, value) {
  const long = [...value].length;
  if (schema.minLength && long < schema.minLength) return `at least ${schema.minLength} characters`;
  if (schema.maxLength !== undefined && long > schema.maxLength) return `at most ${schema.maxLength} characters`;
  if (schema.pattern) { try { if (!new RegExp(schema.pattern, "u").test(value)) return `must match ${schema.pattern}`; } catch { /* the server knows */ } }
  return null;
}

function ofList(schema, value, root) {
  if (schema.minItems && value.length < schema.minItems) return `at least ${schema.minItems} of them`;
  if (schema.maxItems !== undefined && value.length > schema.maxItems) return `at most ${schema.maxItems} of them`;
  if (schema.uniqueItems && new Set(value.map((one) => JSON.stringify(one))).size < value.length) return "each only once";
  const item = resolved(schema.items, root);
  const wrong = value.map((one) => complaint(item, one, true, root)).findIndex(Boolean);
  return wrong < 0 ? null : `number ${wrong + 1}: ${complaint(item, value[wrong], true, root)}`;
}

/** What is wrong with one value, in words; null if nothing that can be seen here. Fields of a group speak for themselves. */
export function complaint(schema, value, needed, root) {
  if (value === undefined) return needed ? "needed" : null;
  if (value === null && schema.nullable) return null;
  const types = typesOf(schema);
  if (schema.enum || "const" in schema) return options(schema).some((one) => JSON.stringify(one) === JSON.stringify(value)) ? null : "not one of these";
  if (typeof value === "number" && types.some((one) => one === "integer" || one === "number")) return ofNumber(types.includes("number") ? { ...schema, type: "number" } : schema, value);
  if (types.length && !types.some((one) => FITS[one]?.(value))) return `must be ${types.map((one) => WORDS[one] ?? one).join(" or ")}`;
  if (typeof value === "string") return ofText(schema, value);
  return Array.isArray(value) ? ofList(schema, value, root) : null;
}

/** How many fields are wrong, within groups too, also those that nobody touched. */
export function complaints(schema, value, root = schema) {
  let count = 0;
  for (const [name, given] of Object.entries(schema?.properties ?? {})) {
    const one = resolved(given, root);
    if (complaint(one, value[name], (schema.required ?? []).includes(name), root)) count += 1;
    else if (isObject(value[name]) && kindOf(one, root) === "group") count += complaints(one, value[name], root);
  }
  return count;
}
