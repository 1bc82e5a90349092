// Signing in with an API key, which is sent once and not stored: the service sets a session cookie.

import { ask, Problem } from "./api.js";
import { pressed } from "./components.js";
import { fill, freshId, h } from "./elements.js";

/** Shows the page that asks for an API key. */
export function showSignIn(error, signedIn) {
  const told = h("div");
  const id = freshId("key");
  const input = h("input", { id, type: "password", autocomplete: "off", required: true, placeholder: "gcv_…", spellcheck: "false", "aria-describedby": `${id}-hint` });
  const button = h("button.main", {}, "Sign in");
  const submit = (event) => {
    event.preventDefault();
    pressed(button, told, async () => {
      await open(input.value.trim());
      input.value = "";
      signedIn();
    });
  };
  const isOver = error.document?.detail?.startsWith("this session has ended");
  return h("div.narrow.card.stack", {},
    h("h1", {}, "Sign in"),
    h("p.soft", {}, isOver ? "Your session has ended. Sign in again with your API key." : "This service requires an API key. Each key gives access to one workspace."),
    h("form.stack", { onsubmit: submit },
      h("label.field", { for: id }, "API key", input),
      h("div.row", {}, button), told),
    h("p.tiny.soft", { id: `${id}-hint` }, "The operator of the service creates keys with ", h("code", {}, "gcvae keys create --workspace NAME"),
      ". The browser does not store the key: a session cookie replaces it until you sign out or the session expires."));
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
  if (!session?.key_id || !session.expires_at) return fill(place, docs);
  const leave = async () => {
    await ask("/v1/session", { method: "DELETE" });
    signedOut();
  };
  return fill(place, docs,
    h("span.wide-only", { title: `Key “${session.key_name || session.key_id}”: ${session.scopes.join(", ")}` }, session.workspace),
    h("button.small", { type: "button", onclick: leave }, "Sign out"));
}
