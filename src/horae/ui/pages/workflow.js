// A workflow under way: its graph and its course share a selection; a chosen step is told beside, its state is in the address.

import { html, useMemo, useState } from "../core/html.js";
import { link, route, setQuery } from "../core/route.js";
import { duration, plural } from "../core/format.js";
import { look, State } from "../core/states.js";
import { Panel, Time } from "../parts/basics.js";
import { Gantt } from "../parts/gantt.js";
import { StepGraph, stepState } from "../parts/graph.js";
import { About, Artifacts, Values } from "./execution-side.js";
import { hasEnded } from "./execution-words.js";
import { Answer } from "./workflow-answer.js";
import { StepPanel } from "./workflow-step.js";
import { why } from "./workflow-words.js";

const NONE = "-"; // chosen by hand: no step
const NARROW = 1100; // px, as in the styles

export function Workflow({ execution, job, graph, reload }) {
  const { step, critical, open: openText } = route.value.query;
  const opened = useMemo(() => new Set((openText ?? "").split(",").filter(Boolean)), [openText]);
  const chosen = step ?? first(graph);
  const select = (next) => {
    setQuery({ step: next === chosen ? NONE : next, item: null, grep: null, level: null, try: null });
    if (innerWidth <= NARROW) requestAnimationFrame(() => document.querySelector(".execution-side")?.scrollIntoView({ block: "nearest" })); // it is told below
  };
  const asks = graph.nodes.filter((node) => node.kind === "approval" && node.status === "waiting" && node.step !== chosen); // the chosen one asks beside the graph
  const members = chosen?.startsWith("group:") ? chosen : null;
  const node = graph.nodes.find((one) => one.step === chosen);
  const path = Boolean(critical);
  const tools = html`<span class="soft">${summary(graph)}</span>
    <label class="tick-word small"><input type="checkbox" checked=${path} onChange=${() => setQuery({ critical: path ? null : "1" }, { replace: true })} />critical path${path && graph.criticalPath.length ? html` <span class="soft">${duration(spent(graph))} in ${plural(graph.criticalPath.length, "step")}</span>` : null}</label>
    ${opened.size > 0 && html`<button type="button" class="link small" onClick=${() => setQuery({ open: null })}>group alike steps again</button>`}`;
  return html`${graph.paused && html`<p class="notice" role="status">It is paused: no step starts until it is resumed; what runs goes on.</p>`}
    ${asks.map((one) => html`<${Answer} key=${one.step} id=${execution.executionId} node=${one} reload=${reload} />`)}
    <div class="workflow ${node || members ? "with-step" : ""}"><div class="execution-main">
      <section class="panel" aria-label="Graph"><${StepGraph} nodes=${graph.nodes} edges=${graph.edges} selected=${chosen} onSelect=${select} critical=${path} opened=${opened} label="The steps of ${graph.job}; arrow keys move, with Shift the view, plus and minus zoom, Enter opens one" tools=${tools} /></section>
      <${Course} graph=${graph} chosen=${chosen} select=${select} path=${path} live=${!hasEnded(execution)} />
      <${List} graph=${graph} chosen=${chosen} />
    </div><aside class="execution-side" aria-label=${node ? `The step ${node.step}` : "About it"}>
      ${node || members ? html`<${StepPanel} key=${chosen} execution=${execution} graph=${graph} node=${node} group=${members} opened=${opened} close=${() => setQuery({ step: NONE, item: null })} reload=${reload} />` : html`<${About} execution=${execution} job=${job} /><${Values} execution=${execution} job=${job} /><${Artifacts} execution=${execution} />`}
    </aside></div>`;
}

// A failed one opens on what failed.
const first = (graph) => (graph.status === "failed" ? graph.nodes.find((node) => node.status === "failed")?.step : undefined);

const spent = (graph) => graph.nodes.filter((node) => node.critical).reduce((sum, node) => sum + (node.seconds ?? 0), 0);

function summary(graph) {
  const counts = new Map();
  for (const node of graph.nodes) counts.set(stepState(node), (counts.get(stepState(node)) ?? 0) + 1);
  return `${plural(graph.nodes.length, "step")}: ${[...counts].map(([state, count]) => `${count} ${look(state).word}`).join(", ")}`;
}

/** The steps along the time, those that have begun. */
function Course({ graph, chosen, select, path, live }) {
  const begun = graph.nodes.filter((node) => node.startedAt);
  const rows = begun.sort((a, b) => (a.startedAt < b.startedAt ? -1 : a.startedAt > b.startedAt ? 1 : 0)).map((node) => ({
    key: node.step, label: node.step, state: stepState(node), critical: path && node.critical, note: node.error?.type,
    spans: [{ from: node.startedAt, to: node.endedAt, state: stepState(node), words: look(stepState(node)).word }],
  }));
  if (!rows.length) return null;
  return html`<${Panel} title="Course" actions=${graph.nodes.length > rows.length && html`<span class="soft small">${plural(graph.nodes.length - rows.length, "step")} did not begin</span>`}><${Gantt} rows=${rows} selected=${chosen} onSelect=${select} label="The steps along the time" live=${live} /><//>`;
}

/** The same as text, for who reads or hears rather than looks. */
function List({ graph, chosen }) {
  const [open, setOpen] = useState(false);
  const columns = ["step", "state", "what", "began", "took", "why"];
  return html`<details class="steps" open=${open} onToggle=${(event) => setOpen(event.target.open)}><summary>The steps as a list</summary>
    ${open && html`<div class="table-wrap" tabindex="0" role="region" aria-label="Steps"><table><thead><tr>${columns.map((one) => html`<th key=${one} scope="col">${one}</th>`)}</tr></thead><tbody>${graph.nodes.map((node) => html`<tr key=${node.step} aria-current=${node.step === chosen ? "true" : null}>
      <td><a href=${link(route.value.path, { ...route.value.query, step: node.step })}>${node.step}</a></td><td><${State} of=${stepState(node)} /></td><td>${node.kind}${node.items ? `, ${node.items.success + node.items.failed} of ${node.items.total}` : ""}</td><td>${node.startedAt && html`<${Time} at=${node.startedAt} />`}</td><td class="number">${node.seconds === null ? "" : duration(node.seconds)}</td><td>${why(node)}</td></tr>`)}</tbody></table></div>`}</details>`;
}
