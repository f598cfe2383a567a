// Signing in: by a link's code, with a password, or at an identity provider; and over what is shown when a sign-in has ended.

import { html, useEffect, useState } from "../core/html.js";
import { askWho, get, me, post } from "../core/api.js";
import { Said } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";

/** The code of a sign-in link works once, so it leaves the address and the history before it is used. */
export async function signInByLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  const problem = given.get("problem");
  if (!code && !problem) return null;
  history.replaceState(null, "", location.pathname + location.search);
  if (problem) return problem;
  try { await post("/sign-in", { code }); return null; } catch (error) { return `${error.detail} ${error.remedy}`; }
}

/** The ways in. `over` is whether something is shown that must not be left: then other ways open beside it. */
function Ways({ problem, over = false, name = "" }) {
  const [ways, setWays] = useState({});
  const [trouble, setTrouble] = useState(problem);
  const [busy, setBusy] = useState(false);
  useEffect(() => { get("/sign-in").then(setWays, () => {}); }, []);
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    setBusy(true);
    try { await post("/sign-in/password", { name: form.name.value, password: form.password.value }); setTrouble(null); await askWho(); } catch (error) { setTrouble(`${error.detail} ${error.remedy}`); form.password.value = ""; form.password.focus(); } finally { setBusy(false); }
  };
  return html`<form onSubmit=${submit}>
      <label for="name">Name</label><input id="name" name="name" autocomplete="username" required maxlength="128" defaultValue=${name} />
      <label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" autofocus=${Boolean(name)} required maxlength="1024" />
      <button type="submit" class="primary" disabled=${busy}>Sign in</button>
    </form>
    ${ways.oidc && html`<p><a href="/api/v1/sign-in/oidc" target=${over ? "_blank" : null}>Sign in at ${ways.oidc}${over ? " (in another tab)" : ""}</a></p>`}
    <p id="sign-in" role="status" class=${trouble ? "complaint" : "soft"}>${trouble ? html`<${Said} text=${trouble} />` : html`On this machine <code>horae sign-in</code> prints a link that signs one browser in${over ? " (open it in another tab, then come back)" : ""}; <code>horae users create</code> lets somebody in.`}</p>`;
}

export function SignIn({ problem }) {
  useEffect(() => { document.title = "Sign in · Horae"; }, []);
  return html`<main class="sign-in" id="content"><img src="/ui/mark.svg" alt="" width="40" height="40" /><h1>Horae</h1><p class="soft">Cron at scale, a durable job queue and a workflow engine in one system.</p>
    <${Ways} problem=${problem} /></main>`;
}

/** A sign-in that ended while one worked: what was typed stays behind it, and what was asked for goes on after it. */
export function SignInAgain({ onClose }) {
  const person = me.value.keyId.startsWith("user:");
  useEffect(() => {
    const look = () => { askWho().catch(() => {}); }; // somebody may have signed in in another tab
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, []);
  return html`<${Dialog} title="Sign in again" onClose=${onClose}><p>The sign-in of ${me.value.name} has ended. What you see and what you typed stays; what waits is done once you are back.</p>
    <div class="sign-in-again"><${Ways} over name=${person ? me.value.name : ""} /></div><//>`;
}
