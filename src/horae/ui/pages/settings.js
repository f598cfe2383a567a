// Settings: keys, people, secrets, namespaces, servers. Alert rules live with the alerts.

import { html } from "../core/html.js";
import { can, has, may } from "../core/api.js";
import { link } from "../core/route.js";
import { Page, Tabs } from "../parts/basics.js";
import { Keys } from "./settings-keys.js";
import { People } from "./settings-users.js";
import { Secrets, Servers } from "./settings-more.js";
import { Namespaces } from "./settings-namespaces.js";

export default function Settings() {
  const tabs = [
    can("admin") && { id: "keys", title: "Keys", show: () => html`<${Keys} />` },
    can("admin") && { id: "people", title: "People", show: () => html`<${People} />` },
    can("editor") && { id: "secrets", title: "Secrets", show: () => html`<${Secrets} />` },
    { id: "namespaces", title: "Namespaces", show: () => html`<${Namespaces} />` },
    may("installation") && { id: "servers", title: "Servers", show: () => html`<${Servers} />` },
  ].filter(Boolean);
  return html`<${Page} title="Settings" lead=${html`Who may do what, and what holds.${has("alerts") && html` Alert rules are <a href=${link("/alerts", { tab: "rules" })}>with the alerts</a>.`}`}><${Tabs} tabs=${tabs} /><//>`;
}
