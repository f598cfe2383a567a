// Replays: dead letters that the servers run again at a pace, and how far each is.

import { html } from "../core/html.js";
import { useList } from "../core/data.js";
import { number } from "../core/format.js";
import { ActionButton } from "../core/act.js";
import { Panel, Progress, Time } from "../parts/basics.js";
import { Table } from "../parts/table.js";

const VERBS = { pause: "Pause", resume: "Resume", cancel: "Cancel" };

const told = (one) => `${number(one.retried)} run again${one.skipped ? `, ${number(one.skipped)} left out` : ""}`;

export function Replays() {
  const list = useList("/dlq/replays", { limit: 20 }, { poll: 3000 });
  const change = (one, verb) => ({ title: VERBS[verb], path: `/dlq/replays/${one.replayId}/${verb}`, cli: ["dlq", "replays", verb, one.replayId], done: `The replay was told to ${verb}.`, after: list.reload });
  const columns = [
    { title: "since", cell: (one) => html`<${Time} at=${one.createdAt} ago />` },
    { title: "state", cell: (one) => one.state },
    { title: "pace", cell: (one) => one.rate ?? "as fast as it goes" },
    { title: "done", className: "wide", cell: (one) => (one.total ? html`<${Progress} value=${(100 * one.matched) / one.total} message=${told(one)} />` : told(one)) }, // there may be too many to count
    { title: "", key: "actions", cell: (one) => {
      const other = one.state === "paused" ? "resume" : "pause";
      return ["running", "paused"].includes(one.state) && html`<span class="actions nowrap"><${ActionButton} key=${other} action=${change(one, other)} /><${ActionButton} action=${change(one, "cancel")} /></span>`;
    } },
  ];
  return html`<${Panel}><${Table} what="replays" columns=${columns} rows=${list.items} list=${list} keyOf=${(one) => one.replayId} empty=${html`<p class="soft">Nothing is being run again.</p>`} /><//>`;
}
