// The beginning: who is there? Then the frame, or the way in.

import { html, render, useEffect, useState } from "./html.js";
import { askWho, me } from "./api.js";
import "./prefs.js";
import { Frame } from "../parts/frame.js";
import { Failure, Page } from "../parts/basics.js";
import { Guard } from "../parts/guard.js";
import { SignIn, signInByLink } from "../pages/sign-in.js";
import { go } from "./route.js";

function App({ problem }) {
  const [trouble, setTrouble] = useState(null);
  const ask = () => askWho().then(() => setTrouble(null), setTrouble);
  useEffect(() => { ask(); }, []);
  useEffect(() => {
    if (!trouble) return undefined;
    const timer = setInterval(ask, 2000);
    return () => clearInterval(timer);
  }, [trouble]);
  if (trouble && me.value === undefined) return html`<main class="sign-in" id="content"><${Page} title=${trouble.status === 404 ? "No such namespace" : "Not loaded"}><${Failure} error=${trouble} retry=${ask} />${trouble.status === 404 && html`<p><button type="button" class="link" onClick=${() => { go("/", { ns: null }); ask(); }}>Go to your own namespace</button></p>`}<//></main>`;
  if (me.value === undefined) return null;
  return me.value === null ? html`<${SignIn} problem=${problem} />` : html`<${Frame} />`;
}

const problem = await signInByLink();
addEventListener("hashchange", () => { if (/[#&]code=/.test(location.hash)) location.reload(); });
// Somebody may have signed in or out in another tab meanwhile.
document.addEventListener("visibilitychange", () => { if (!document.hidden && me.value) askWho().catch(() => {}); });
const place = document.getElementById("app");
place.replaceChildren(); // what was shown while this was read
render(html`<${Guard}><${App} problem=${problem} /><//>`, place);
