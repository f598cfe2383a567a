// Signing in: by a link's code, with a password, or at an identity provider.

import { html, useEffect, useState } from "../core/html.js";
import { askWho, get, post } from "../core/api.js";

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

export function SignIn({ problem }) {
  const [ways, setWays] = useState({});
  const [trouble, setTrouble] = useState(problem);
  const [busy, setBusy] = useState(false);
  useEffect(() => { document.title = "Sign in · Horae"; get("/sign-in").then(setWays, () => {}); }, []);
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    setBusy(true);
    try { await post("/sign-in/password", { name: form.name.value, password: form.password.value }); setTrouble(null); await askWho(); } catch (error) { setTrouble(`${error.detail} ${error.remedy}`); form.password.value = ""; form.password.focus(); } finally { setBusy(false); }
  };
  return html`<main class="sign-in" id="content"><img src="/ui/mark.svg" alt="" width="40" height="40" /><h1>Horae</h1><p class="soft">Cron at scale, a durable job queue and a workflow engine in one system.</p>
    <form onSubmit=${submit}>
      <label for="name">Name</label><input id="name" name="name" autocomplete="username" required maxlength="128" />
      <label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required maxlength="1024" />
      <button type="submit" class="primary" disabled=${busy}>Sign in</button>
    </form>
    ${ways.oidc && html`<p><a href="/api/v1/sign-in/oidc">Sign in at ${ways.oidc}</a></p>`}
    <p id="sign-in" role="status" class=${trouble ? "complaint" : "soft"}>${trouble ?? html`On this machine <code>horae sign-in</code> prints a link that signs one browser in; <code>horae users create</code> lets somebody in.`}</p></main>`;
}
