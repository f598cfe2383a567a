// The steps of a workflow's execution.

import { html } from "../core/html.js";
import { Panel } from "../parts/basics.js";
import { State } from "../core/states.js";

export function Workflow({ graph }) {
  return html`<${Panel} title="Steps"><ol>${graph.nodes.map((node) => html`<li key=${node.step}>${node.step} <${State} of=${node.status} /></li>`)}</ol><//>`;
}
