// The placeholder page: how the server is, and how much work there is once somebody has signed in.

const EVERY = 5000;
const byId = (id) => document.getElementById(id);
let csrf = null;

function say(id, text) {
  const element = byId(id);
  if (element.textContent !== String(text)) element.textContent = text;
}

async function ask(path, options = {}) {
  const response = await fetch(path, { headers: { accept: "application/json", ...options.headers }, ...options });
  const body = response.status === 204 ? null : await response.json();
  return { ok: response.ok, status: response.status, body };
}

async function showServer() {
  const state = byId("state");
  let answer;
  try {
    answer = await ask("/readyz");
  } catch {
    state.dataset.state = "failed";
    say("state", "the server does not answer");
    byId("remedy").hidden = true;
    return false;
  }
  state.dataset.state = answer.ok ? "success" : "failed";
  say("state", answer.ok ? "ready" : answer.body.detail);
  byId("remedy").hidden = answer.ok;
  if (!answer.ok) say("remedy", answer.body.remedy);
  if (answer.body.version) say("version", answer.body.version);
  return answer.ok;
}

const post = (path, body) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

// The code of a sign-in link works once, so it leaves the address bar and the history before it is used.
async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  const trouble = given.get("problem");
  if (!code && !trouble) return;
  history.replaceState(null, "", location.pathname);
  if (trouble) return say("sign-in", trouble);
  const answer = await post("/api/v1/sign-in", { code });
  if (!answer.ok) say("sign-in", `${answer.body.detail} ${answer.body.remedy}`);
}

async function signInWithPassword(event) {
  event.preventDefault();
  const form = event.target;
  const answer = await post("/api/v1/sign-in/password", { name: form.name.value, password: form.password.value });
  form.password.value = "";
  if (!answer.ok) return say("sign-in", `${answer.body.detail} ${answer.body.remedy}`);
  await show();
}

async function showWays() {
  const answer = await ask("/api/v1/sign-in");
  byId("provider").hidden = !answer.body?.oidc;
  if (answer.body?.oidc) say("provider-name", answer.body.oidc);
}

async function signOut() {
  await ask("/api/v1/sign-out", { method: "POST", headers: { "x-csrf-token": csrf ?? "" } });
  csrf = null;
  say("sign-in", "Signed out. A new link is made by: horae sign-in");
  showSignedIn(false);
}

function showSignedIn(yes) {
  byId("counts").hidden = !yes;
  byId("signed-in").hidden = !yes;
  byId("signing-in").hidden = yes;
}

async function showWork() {
  const me = await ask("/api/v1/me");
  showSignedIn(me.ok);
  if (!me.ok) return;
  csrf = me.body.csrf;
  say("who", `Signed in as ${me.body.name} (${me.body.role}).`);
  const [jobs, counts] = await Promise.all([ask("/api/v1/jobs?limit=1000"), ask("/api/v1/executions/counts")]);
  if (jobs.ok) say("jobs", jobs.body.items.length + (jobs.body.nextCursor ? "+" : ""));
  if (!counts.ok) return;
  for (const state of ["running", "queued", "waiting", "success", "failed"]) say(state, counts.body[state].toLocaleString());
}

async function show() {
  if (await showServer()) await showWork();
}

byId("sign-out").addEventListener("click", signOut);
byId("password-form").addEventListener("submit", signInWithPassword);
document.addEventListener("visibilitychange", () => document.hidden || show());
await signIn();
await showWays();
await show();
setInterval(() => document.hidden || show(), EVERY);
