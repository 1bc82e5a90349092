// The router, which shows the page for the path. It handles links between pages, so that scripts are not loaded again.

import { read } from "./api.js";
import { empty, holdScopes, problemBox } from "./components.js";
import { fill, h, say } from "./elements.js";
import { finishSignOn, showSignIn, showWho } from "./signin.js";
import { sentence } from "./words.js";

const PAGES = [
  [/^\/$/, () => import("./home.js")],
  [/^\/(sign-in)$/, () => import("./home.js")],
  [/^\/(datasets|models|jobs)\/?$/, () => import("./lists.js")],
  [/^\/datasets\/([^/]+)\/?$/, () => import("./dataset.js")],
  [/^\/work\/?$/, () => import("./work.js")],
  [/^\/connections\/?$/, () => import("./connections.js")],
  [/^\/schedules\/?$/, () => import("./schedules.js")],
  [/^\/webhooks\/?$/, () => import("./webhooks.js")],
  [/^\/jobs\/([^/]+)\/?$/, () => import("./job.js")],
  [/^\/models\/([^/]+)(?:\/([a-z]+))?\/?$/, () => import("./model.js")],
];

const main = document.getElementById("main");
let leaving = new AbortController();
let session = null;
let sessionReadAt = 0;
let refusal = null;
let shown = null;

/** Shows the page of another path. */
function go(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  show(true);
}

async function show(moved) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const path = location.pathname;
  shown = path;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (path.startsWith(link.getAttribute("href"))) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div.page");
  try {
    if (await isLedBack()) return;
    await readSession(signal);
    showWho(session, signedOut);
    const [pattern, load] = PAGES.find(([page]) => page.test(path)) ?? [];
    if (path.startsWith("/guide")) throw new NoPage("The guide has not been built. Run “make docs” in the folder from which the service runs.");
    if (!load) throw new NoPage(`${path} does not exist.`);
    const page = await load();
    if (signal.aborted) return;
    await page.show({ place, words: path.match(pattern).slice(1), signal, go, session, reveal: () => reveal(place, moved, signal) });
    reveal(place, moved, signal);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(place, refused(error));
    reveal(place, moved, signal);
  }
}

/** Completes a sign-in at the provider and shows the page where it began; a refusal is shown by the sign-in page. */
async function isLedBack() {
  refusal = null;
  try {
    const path = await finishSignOn();
    if (path === null) return false;
    session = null;
    go(path, { replace: true });
    return true;
  } catch (error) {
    refusal = error;
    return false;
  }
}

/** Reads who is signed in, at most every five minutes; replaces the token of the session if it is due. */
async function readSession(signal) {
  if (session && Date.now() - sessionReadAt < 300_000) return;
  session = await read("/v1/session", { signal });
  if (session.is_due) session = await read("/v1/session", { method: "PATCH", signal });
  holdScopes(session.scopes);
  sessionReadAt = Date.now();
}

class NoPage extends Error {}

function refused(error) {
  if (error.status === 401) return showSignIn(error, signedIn, refusal);
  if (error instanceof NoPage) return empty("Page not found", error.message, homeLink());
  if (error.status === 404) return empty("Not found", `${sentence(error.message)} It may have been deleted, or it belongs to another workspace.`, homeLink());
  return problemBox(error, () => show(false));
}

function homeLink() {
  return h("a.button", { href: "/" }, "Go to the home page");
}

/** Replaces the previous page by this one; a second call has no effect. */
function reveal(place, moved, signal) {
  if (signal.aborted || place.isConnected) return;
  fill(main, place);
  const title = place.querySelector("h1, h2")?.textContent;
  document.title = title && location.pathname !== "/" ? `${title} · gcvae` : "gcvae";
  if (!moved) return;
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
  say(document.title);
}

function signedIn() {
  session = null;
  if (location.pathname === "/sign-in") go("/", { replace: true });
  else show(true);
}

function signedOut() {
  session = null;
  showWho(null);
  go("/sign-in");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const path = link.getAttribute("href");
  if (link.target || link.hasAttribute("download") || !PAGES.some(([page]) => page.test(path.split("?")[0]))) return;
  event.preventDefault();
  go(path);
});
window.addEventListener("popstate", () => location.pathname !== shown && show(true));  // not for links to a #fragment of the same page
show(false);
