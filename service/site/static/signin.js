// Signing in with an API key, which is sent once and not stored, or at the provider of the organisation. The service sets a session cookie.

import { ask, Problem, read } from "./api.js";
import { problemBox, submitting, workButton } from "./components.js";
import { fill, freshId, h } from "./elements.js";

/** Shows the page on which a person signs in; `refusal` is the error of an attempt at the provider. */
export function showSignIn(error, signedIn, refusal) {
  const isOver = error.document?.detail?.startsWith("this session has ended");
  const again = isOver ? "Your session has ended. " : "";
  const hasProvider = Boolean(error.document?.sign_on);
  return h("div.narrow.card.stack", {},
    h("h1", {}, "Sign in"),
    refusal ? problemBox(refusal) : null,
    hasProvider ? providerButton(error.document.sign_on, again) : h("p.soft", {}, again || "This service requires an API key. Each key gives access to one workspace."),
    hasProvider ? h("details", {}, h("summary", {}, "Use an API key instead"), keyForm(signedIn)) : keyForm(signedIn));
}

function keyForm(signedIn) {
  const told = h("div");
  const id = freshId("key");
  const input = h("input", { id, type: "password", autocomplete: "off", required: true, placeholder: "gcv_…", spellcheck: "false", "aria-describedby": `${id}-hint` });
  const button = h("button.main", {}, "Sign in");
  const onsubmit = submitting(button, told, async () => {
    await open(input.value.trim());
    input.value = "";
    signedIn();
  });
  return h("div.stack", {},
    h("form.stack", { onsubmit },
      h("label.field", { for: id }, "API key", input),
      h("div.row", {}, button), told),
    h("p.tiny.soft", { id: `${id}-hint` }, "The operator of the service creates keys with ", h("code", {}, "gcvae keys create --workspace NAME"),
      ". The browser does not store the key: a session cookie replaces it until you sign out or the session expires."));
}

/** Returns the button that leads to the provider, which leads back to /sign-in. */
function providerButton(path, again) {
  const told = h("div");
  const button = workButton("button.main", "Sign in with your organisation", told, async () => {
    const return_to = location.pathname === "/sign-in" ? "/" : location.pathname + location.search;
    const { url } = await read(path, { method: "POST", json: { return_to } });
    location.assign(url);
  });
  return h("div.stack", {},
    h("p.soft", {}, again, "Your groups determine the workspace and what you may do."),
    h("div.row", {}, button), told);
}

/** Completes a sign-in if the provider has led back to this page; returns the path of the page to show, or null. */
export async function finishSignOn() {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  if (location.pathname !== "/sign-in" || given.state === undefined) return null;
  history.replaceState(null, "", "/sign-in");  // the code is used once
  const { state, code, error, iss } = given;
  return (await read("/v1/sign-on/answer", { method: "POST", json: { state, code, error, iss } })).return_to;
}

/** Sends the API key to open a session. */
async function open(key) {
  if (!/^[\x21-\x7e]+$/.test(key)) throw noKey("A key begins with gcv_ and contains only letters, digits, - and _.");
  try {
    await ask("/v1/session", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
  } catch (error) {
    if (error.status !== 401) throw error;
    throw noKey(`${error.message}. Paste the whole key. If you have lost it, ask the operator for a new one.`);
  }
}

function noKey(detail) {
  return new Problem({ title: "This key is not valid", detail, status: 0 });
}

/** Shows at the top of every page who is signed in. */
export function showWho(session, signedOut) {
  const place = document.getElementById("who");
  const docs = h("a.wide-only", { href: "/docs" }, "REST API");
  if (!session?.expires_at) return fill(place, docs);
  const leave = async () => {
    await ask("/v1/session", { method: "DELETE" });
    if (session.sign_out_url) location.assign(session.sign_out_url);
    else signedOut();
  };
  const who = session.person ?? `Key “${session.key_name || session.key_id}”`;
  return fill(place, docs,
    h("span.wide-only", { title: `${who}: ${session.scopes.join(", ")}` }, session.person ? `${session.workspace} · ${session.person}` : session.workspace),
    h("button.small", { type: "button", onclick: leave }, "Sign out"));
}
