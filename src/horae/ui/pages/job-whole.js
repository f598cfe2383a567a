// The whole definition as a text, YAML or JSON: everything that the form has no field for. YAML is read by the server,
// as `horae apply` reads it; what is wrong is told with its line.

import { html, useEffect, useId, useRef, useState } from "../core/html.js";
import { post } from "../core/api.js";
import { Copy, Panel, Said } from "../parts/basics.js";
import { Editor, goTo } from "../parts/editor.js";
import { toYaml } from "../parts/yaml.js";

const WAIT = 300;
const WORDS = { yaml: "YAML, as `horae apply` reads it", json: "JSON, as `horae apply` and the API take it" };
const OBJECT = { yaml: "A definition has names and values, such as “name: hello”.", json: "A definition is an object: { … }." };
const BLANK = `name: ""
command: ""

# What else it may say, for example:
# schedule: {cron: 0 9 * * MON-FRI, timezone: Europe/Paris}
# retries: 3
# timeout: 10m
# params: {day: yesterday}
`;
const said = { yaml: toYaml, json: (value) => JSON.stringify(value, null, 2) };

/** Where a JSON reader stopped, as browsers say it. */
function placeIn(text, message) {
  const position = /position (\d+)/.exec(message);
  if (!position) return { line: 1, column: 1 };
  const before = text.slice(0, Number(position[1])).split("\n");
  return { line: before.length, column: before.at(-1).length + 1 };
}

async function read(as, text, options) {
  if (as === "yaml") return post("/yaml", { text }, options);
  try { return { value: JSON.parse(text), positions: {} }; } catch (error) { throw Object.assign(new Error(`This is not JSON: ${error.message}`), { body: placeIn(text, error.message) }); }
}

/** The nearest place that is known of a field such as `workflow.steps[1].job`. */
function placeOf(field, positions) {
  for (let path = field ?? ""; path; path = path.replace(/(\.[^.[\]]*|\[[^\]]*\]|^[^.[]*)$/, "")) if (positions[path]) return { line: positions[path][0], column: positions[path][1] };
  return null;
}

/** onChange(value, wrong): the definition, or why it cannot be read (yet). `problem` is what the server has against it. */
export function Whole({ as, value, onChange, problem }) {
  const id = useId();
  const [text, setText] = useState(() => (as === "yaml" && !value.name && !value.command && Object.keys(value).length === 2 ? BLANK : said[as](value)));
  const [state, setState] = useState({ positions: null });
  const latest = useRef(onChange);
  const first = useRef(true);
  latest.current = onChange;
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const found = await read(as, text, { signal: abort.signal });
        const bad = found.value === null || typeof found.value !== "object" || Array.isArray(found.value) ? OBJECT[as] : null;
        setState({ positions: found.positions, wrong: bad && { detail: bad } });
        if (!first.current) latest.current(bad ? undefined : found.value, bad);
        first.current = false;
      } catch (error) {
        if (error.name === "AbortError") return;
        const detail = error.detail ?? error.message;
        setState({ positions: {}, wrong: { detail, remedy: error.remedy, line: error.body?.line, column: error.body?.column } });
        latest.current(undefined, detail);
      }
    }, first.current || as === "json" ? 0 : WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [text, as]);
  const typed = (next) => { first.current = false; setText(next); if (as === "yaml") onChange(undefined, "Reading …"); };
  const place = problem && !state.wrong ? placeOf(problem.body?.field, state.positions ?? {}) : null;
  const mark = state.wrong?.line ? state.wrong : place;
  const detail = state.wrong?.detail ?? (place ? `Line ${place.line}: ${problem.detail}` : null);
  const show = () => goTo(document.getElementById(id), text, mark);
  return html`<${Panel} title="The whole definition" actions=${html`<${Copy} text=${text} />`}><div class="field"><label for=${id}>${WORDS[as]}</label>
    <${Editor} id=${id} text=${text} onText=${typed} mark=${mark} aria-invalid=${detail ? "true" : null} aria-describedby="${id}-hint" />
    <p id="${id}-hint" class=${detail ? "complaint" : "soft small"}>${detail ? html`<${Said} text=${`${detail} ${state.wrong?.remedy ?? ""}`} bare /> ${mark && html`<button type="button" class="link" onClick=${show}>Go there</button>`}` : `/openapi.json lists all fields (JobBody); what is left out is the default.${as === "yaml" ? " Comments are not kept." : ""}`}</p></div><//>`;
}
