// Elements that several pages use.

import { ask, tableType, upload } from "./api.js";
import { fill, freshId, h, say } from "./elements.js";
import { ago, exactTime, percent, sentence, spoken } from "./words.js";

const STATUS = {
  queued: "", running: "busy", training: "busy", succeeded: "good", ready: "good", failed: "bad", cancelled: "",
};

/** Returns the status of a job or model: a word beside a coloured dot. */
export function status(word) {
  const kind = STATUS[word] ?? "";
  return h(kind ? `span.status.${kind}` : "span.status", {}, spoken(word));
}

const VERDICTS = { green: "✓", amber: "!", red: "✕", not_measured: "–", shown: "·" };

export function verdict(word) {
  return h(`span.badge.${word}`, {}, `${VERDICTS[word]} ${word === "shown" ? "Not judged" : spoken(word)}`);
}

/** Returns how long ago a time was; the tooltip shows the exact time. */
export function when(text) {
  return h("time", { datetime: text, title: exactTime(text) }, ago(text));
}

/** Returns the head of a page: links to parent pages, title, facts and action buttons. */
export function head({ crumbs = [], title, facts = [], actions = [] }) {
  const trail = crumbs.flatMap(([text, path]) => [h("a", { href: path }, text)]);
  return h("div.head", {},
    h("div", {},
      crumbs.length ? h("nav.crumbs", { "aria-label": "Breadcrumb" }, trail) : null,
      h("h1", {}, title),
      facts.length ? h("div.facts", {}, facts.map((fact) => h("span", {}, fact))) : null),
    h("div.row", {}, actions));
}

/** Returns a box that shows all of an error: what is wrong, where, and what is expected. It scrolls into view. */
export function problemBox(error, retry) {
  const told = error.document ?? { title: "This page could not be shown", detail: String(error?.message ?? error) };
  const lines = told.errors ?? [];
  say(`${told.title}: ${told.detail}`);
  const box = h("div.problem", { role: "alert" },
    h("h3", {}, told.title),
    lines.length === 1 && told.detail?.includes(told.errors[0].message) ? null : h("p", {}, sentence(told.detail)),
    lines.length ? findingList(lines) : null,
    told.setting ? h("p.tiny", {}, `The limit is ${told.limit}. The operator can change it with ${told.setting}.`) : null,
    told.status === 413 ? h("p", {}, "Send a smaller file.") : null,
    told.status === 429 ? h("p", {}, "Try again later.") : null,
    told.status === 401 ? h("p", {}, h("a", { href: "/sign-in" }, "Sign in again")) : null,
    told.type === "urn:gcvae:problem:missing-scope" ? h("p", {}, sentence(told.advice)) : null,
    told.job_id ? h("p", {}, h("a", { href: `/jobs/${told.job_id}` }, "View the job")) : null,
    h("div.row", {},
      told.request_id ? h("span.tiny.soft", {}, "Request ID ", h("code", {}, told.request_id)) : null,
      retry ? h("button.small", { type: "button", onclick: retry }, "Try again") : null));
  requestAnimationFrame(() => box.scrollIntoView({ block: "nearest" }));  // in the next frame, when the box is on the page
  return box;
}

/** Returns the list of an error's problems, which can be scrolled by keyboard. */
export function findingList(findings) {
  return h("ul", { tabindex: findings.length > 1 ? 0 : null }, findings.map((found) => h("li", {}, errorLine(found))));
}

function errorLine(found) {
  const place = [
    found.column ? `column “${found.column}”` : null,
    found.line ? `line ${found.line}` : null,
    (found.row ?? null) !== null ? `row ${found.row}` : null,
    found.pointer && !found.column && !found.pointer.startsWith("/rules/") ? found.pointer : null,
    found.parameter ?? null,
  ].filter(Boolean).join(", ");
  const meant = found.suggestion ? ` Did you mean “${found.suggestion}”?` : "";
  const right = found.expected ? ` Expected: ${found.expected}.` : "";
  return `${place ? `${place}: ` : ""}${found.message}.${meant}${right}`;
}

export function empty(title, text, ...actions) {
  return h("div.empty", {}, h("h2", {}, title), h("p", {}, text), actions.length ? h("div.row", {}, actions) : null);
}

/** Returns a progress bar: [element, set(fraction)]. A null fraction means that the progress is unknown. */
export function meter(label, tall = false) {
  const inner = h("div");
  const bar = h(tall ? "div.meter.tall" : "div.meter", { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, inner);
  const set = (fraction) => {
    inner.style.width = `${100 * (fraction ?? 0)}%`;
    if (fraction === null || fraction === undefined) bar.removeAttribute("aria-valuenow");
    else bar.setAttribute("aria-valuenow", Math.floor(100 * fraction));
  };
  set(0);
  return [bar, set];
}

/** Returns an area to drop or choose a file. Calls `take(file)`, or, if `many` files are allowed, `take(files)`. */
export function dropPlace({ title, hint, take, extra = [], small = false, many = false }) {
  const input = h("input.hidden-words", { type: "file", id: freshId("file"), tabindex: -1, "aria-label": title,
    multiple: many, accept: `.csv,.gz,.tsv,.txt,.parquet${many ? ",.zip" : ""}`, onchange: () => taken(input.files) });
  const taken = (files) => files.length && take(many ? [...files] : files[0]);
  const place = h(small ? "div.drop.small" : "div.drop", {},
    h("h3", {}, title), h("p.soft", {}, hint),
    h("div.row", {}, writing(h("button.main", { type: "button", onclick: () => input.click() }, many ? "Choose files" : "Choose a file")), extra), input);
  const over = (event) => {
    event.preventDefault();
    place.classList.toggle("over", event.type === "dragover");
  };
  place.addEventListener("dragover", over);
  place.addEventListener("dragleave", over);
  place.addEventListener("drop", (event) => {
    over(event);
    taken(event.dataTransfer.files);
  });
  return place;
}

/** Returns the field for the text encoding of CSV files: its element, and the query parameter that it stands for. */
export function encodingField() {
  const list = freshId("encodings");
  const input = h("input", { list, placeholder: "UTF-8", size: 14 });
  const names = ["cp1252", "iso-8859-1", "iso-8859-15", "cp1250", "cp1251", "utf-16", "shift_jis", "gb18030"];
  const element = h("label.row.soft", {}, "Text encoding of CSV files", input, h("datalist", { id: list }, names.map((value) => h("option", { value }))));
  return { element, query: () => (input.value.trim() ? { encoding: input.value.trim() } : {}), clear: () => { input.value = ""; } };
}

/** Uploads one or several tables and shows the progress in `place`; resolves to the response, or to null after showing the error. */
export async function uploadInto(place, path, files, again, fields = {}) {
  const [first, ...others] = [files].flat();
  const name = others.length ? `${first.name} and ${others.length} more` : first.name;
  const form = new FormData();
  for (const file of others.length ? [first, ...others] : []) form.append("file", file, file.name);
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  const [bar, set] = meter(`Upload of ${name}`);
  const words = h("p.soft", { role: "status" }, `Uploading ${name} …`);
  fill(place, words, bar);
  const onProgress = (fraction) => {
    set(fraction);
    fill(words, fraction < 1 ? `Uploading ${name}: ${percent(fraction)}` : `Reading all rows of ${name} …`);
  };
  const ask = (event) => event.preventDefault();
  window.addEventListener("beforeunload", ask);  // because closing the page would end the upload
  try {
    const body = others.length ? [form, {}] : [first, { "Content-Type": tableType(first.name) }];
    return await upload(path, ...body, onProgress);
  } catch (error) {
    fill(place, problemBox(error), again(error));
    return null;
  } finally {
    window.removeEventListener("beforeunload", ask);
  }
}

/** Asks the user to confirm an action that cannot be undone; resolves to whether it is confirmed. */
export function confirmed(title, text, action) {
  return new Promise((resolve) => {
    const id = freshId("title");
    const done = (answer) => () => dialog.close(answer);
    const dialog = h("dialog", { "aria-labelledby": id, onclose: () => { resolve(dialog.returnValue === "yes"); dialog.remove(); } },
      h("div.stack", {}, h("h2", { id }, title), h("p.soft", {}, text),
        h("div.row", {},
          h("button.danger", { type: "button", onclick: done("yes") }, action),
          h("button", { type: "button", autofocus: true, onclick: done("no") }, "Cancel"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Returns a button that asks for a new name, and renames the resource at this path of the API. */
export function renameButton(path, name, told, done) {
  const button = h("button", { type: "button", onclick: () => {
    const input = h("input", { value: name, maxlength: 200, required: true });
    const save = h("button.main", { type: "submit" }, "Save name");
    const onsubmit = submitting(save, told, async () => {
      await ask(path, { method: "PATCH", json: { name: input.value }, headers: { "Content-Type": "application/json" } });
      done();
    });
    fill(told, h("form.row", { onsubmit }, h("label.field", {}, "Name", input), save));
    input.select();
  } }, "Rename");
  return writing(button);
}

/** Returns a button that deletes the resource at this path of the API, after the user has confirmed the question. */
export function deleteButton(path, told, question, text, action, done) {
  const remove = async ({ target }) => {
    if (!await confirmed(question, text, action)) return;
    await pressed(target, told, async () => {
      await ask(path, { method: "DELETE" });
      await done();
    });
  };
  return writing(h("button.danger", { type: "button", onclick: remove }, "Delete"));
}

/** Returns an HTML table. Cells are text or elements; a column head is text or [text, class]. */
export function dataTable(label, heads, rows, kind = "table.cards") {
  const names = heads.map((head) => (Array.isArray(head) ? head : [head, null]));
  const line = (cells) => h("tr", {}, cells.map((cell, i) => h("td", { class: names[i][1], "data-label": names[i][0] }, cell)));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": label },
    h(kind, {},
      h("thead", {}, h("tr", {}, names.map(([text, css]) => h("th", { class: css, scope: "col" }, text)))),
      h("tbody", {}, rows.map(line))));
}

let held = new Set();

/** Notes the scopes (permissions) of the signed-in key or person. */
export function holdScopes(scopes) {
  held = new Set(scopes);
}

/** Disables a button that changes or generates something if the scope `write` is missing; its tooltip says so. */
export function writing(button) {
  if (held.has("write")) return button;
  button.disabled = true;
  button.title = "This requires the scope (permission) “write”, which your API key or group does not have.";
  return button;
}

/** Runs `work` while the button is disabled; `place` shows that it is running, and its error. */
export async function pressed(button, place, work) {
  const busy = h("p.soft", { role: "status" }, "Working …");
  button.disabled = true;
  fill(place, busy);
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") fill(place, problemBox(error));
    return undefined;
  } finally {
    busy.remove();
    button.disabled = false;
  }
}

/** Returns a button that runs `work` as `pressed` does. */
export function workButton(kind, text, place, work) {
  return h(kind, { type: "button", onclick: (event) => pressed(event.target, place, work) }, text);
}

/** Returns a form's listener that runs `work` as `pressed` does. */
export function submitting(button, place, work) {
  return (event) => {
    event.preventDefault();
    pressed(button, place, work);
  };
}

/** Returns a row of buttons of which one is chosen. */
export function segments(label, options, chosen, onChoice) {
  const name = freshId("choice");
  return h("span.segments", { role: "radiogroup", "aria-label": label },
    options.map(([value, text]) => h("label", {},
      h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onChoice(value) }), text)));
}
