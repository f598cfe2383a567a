// The overview: is everything all right, what needs me, what comes next.

import { html } from "../core/html.js";
import { useData } from "../core/data.js";
import { number } from "../core/format.js";
import { State } from "../core/states.js";
import { Page, Panel, Ready, Facts } from "../parts/basics.js";

export default function Overview() {
  const counts = useData("/executions/counts", undefined, { live: ["execution"], wait: 2000 });
  return html`<${Page} title="Overview"><${Panel} title="Executions"><${Ready} of=${counts}>${(data) => html`<${Facts} facts=${Object.entries(data).map(([state, count]) => [html`<${State} of=${state} />`, number(count)])} />`}<//><//><//>`;
}
