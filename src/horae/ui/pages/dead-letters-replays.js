// Replays: dead letters that the servers run again at a pace, and how far each is.

import { html } from "../core/html.js";
import { useList } from "../core/data.js";
import { number } from "../core/format.js";
import { act } from "../core/act.js";
import { can } from "../core/api.js";
import { Panel, Progress, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";

export function Replays() {
  const list = useList("/dlq/replays", { limit: 20 }, { poll: 3000 });
  const change = (one, verb) => act({ title: verb, path: `/dlq/replays/${one.replayId}/${verb}`, cli: ["dlq", "replays", verb, one.replayId], done: `The replay was told to ${verb}.`, after: list.reload });
  const columns = [
    { title: "since", cell: (one) => html`<${Time} at=${one.createdAt} ago />` },
    { title: "state", cell: (one) => one.state },
    { title: "pace", cell: (one) => one.rate ?? "as fast as it goes" },
    { title: "done", className: "wide", cell: (one) => html`<${Progress} value=${one.total ? (100 * one.matched) / one.total : null} message="${number(one.retried)} run again${one.skipped ? `, ${number(one.skipped)} left out` : ""}" />` },
    { title: "", key: "actions", cell: (one) => (["running", "paused"].includes(one.state) ? html`<span class="actions nowrap"><button type="button" disabled=${!can("operator")} onClick=${() => change(one, one.state === "paused" ? "resume" : "pause")}>${one.state === "paused" ? "Resume" : "Pause"}</button><button type="button" disabled=${!can("operator")} onClick=${() => change(one, "cancel")}>Cancel</button></span>` : null) },
  ];
  return html`<${Panel}><${Table} what="replays" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.replayId} empty=${html`<p class="soft">Nothing is being run again.</p>`} /><//>`;
}
