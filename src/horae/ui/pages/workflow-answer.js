// A step that asks somebody: what is asked, a comment, yes or no.

import { html, useId, useState } from "../core/html.js";
import { ActionButton } from "../core/act.js";
import { State } from "../core/states.js";
import { Time } from "../parts/basics.js";

const RANK = ["viewer", "operator", "editor", "admin"];
// Whoever is of a role that it names, or of one above; without any, whoever operates.
const roleFor = (roles) => (roles ?? []).filter((role) => RANK.includes(role)).sort((a, b) => RANK.indexOf(a) - RANK.indexOf(b))[0] ?? "operator";

export function Answer({ id, node, reload }) {
  const [comment, setComment] = useState("");
  const field = useId();
  const body = { step: node.step, comment };
  const cli = (verb) => ["executions", verb, id, node.step, ...(comment ? ["--comment", comment] : [])];
  const role = roleFor(node.waitsFor?.roles);
  const action = (verb, done) => ({ title: verb === "approve" ? "Approve" : "Reject", path: `/executions/${id}/${verb}`, body, cli: cli(verb), done, after: reload });
  return html`<section class="answer" aria-label="Waits for approval: ${node.step}">
    <p><${State} of="approval"><strong>${node.step}</strong> waits for a word<//> <span class="soft"><${Time} at=${node.startedAt} ago=${true} />${node.waitsFor?.roles?.length ? `, asked of ${node.waitsFor.roles.join(", ")}` : ""}${node.wakeAt ? html`, until <${Time} at=${node.wakeAt} />` : ""}</span></p>
    ${node.waitsFor?.message && html`<p class="pre asked">${node.waitsFor.message}</p>`}
    <div class="actions"><label for=${field} class="unseen">Comment on ${node.step}</label><input id=${field} class="comment" maxlength="2000" placeholder="why (kept with the step)" value=${comment} onInput=${(event) => setComment(event.target.value)} />
      <${ActionButton} role=${role} kind="primary" action=${action("approve", `${node.step} is approved.`)} />
      <${ActionButton} role=${role} action=${{ ...action("reject", `${node.step} is rejected.`), confirm: { title: `Reject ${node.step}?`, body: "The step fails, and with it what needs its success.", danger: true } }} /></div></section>`;
}
