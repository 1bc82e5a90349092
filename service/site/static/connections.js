// The page of connections: databases, buckets and web servers from which tables are read; and the form that reads one.

import { ask, read, resultOf } from "./api.js";
import { deleteButton, head, submitting, when, workButton, writing } from "./components.js";
import { fill, h } from "./elements.js";
import { many } from "./words.js";

const FORMS = "postgresql://USER@HOST/DATABASE, mysql://…, s3://ACCESS_KEY@BUCKET/PREFIX?region=…, https://HOST/PREFIX or sqlite:///FILE";

export async function show({ place, signal, session }) {
  const told = h("div");
  const list = h("div.stack");
  const isAdmin = session.scopes.includes("admin");
  const draw = async () => {
    const { items } = await read("/v1/connections?limit=100", { signal });
    fill(list, items.length ? items.map((one) => card(one, draw, isAdmin)) : h("p.soft", {}, "There are no connections."));
  };
  fill(place,
    head({ crumbs: [["Datasets", "/datasets"]], title: "Connections", facts: ["Databases, buckets and web servers from which tables are read and to which synthetic rows are written"] }),
    isAdmin ? form(told, draw) : null, told, list);
  await draw();
}

function form(told, draw) {
  const name = h("input", { required: true, maxlength: 100, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*", title: "Letters, digits, and . _ -" });
  const url = h("input", { required: true, maxlength: 2000, size: 50, autocomplete: "off", spellcheck: false });
  const password = h("input", { type: "password", maxlength: 4000, autocomplete: "new-password" });
  const button = h("button.main", { type: "submit" }, "Add connection");
  const onsubmit = submitting(button, told, async () => {
    const json = { name: name.value.trim(), url: url.value.trim(), ...(password.value ? { password: password.value } : {}) };
    await ask("/v1/connections", { method: "POST", json });
    for (const input of [name, url, password]) input.value = "";
    await draw();
  });
  return h("form.card.stack", { onsubmit },
    h("div.row", {}, h("label.field", {}, "Name", name), h("label.field", {}, "URL", url), h("label.field", {}, "Password", password)),
    h("p.tiny.soft", {}, `URL: ${FORMS}.`),
    h("p.tiny.soft", {}, "The password of the database user, the secret key of the bucket, or the bearer token of the web server. It is stored encrypted and never shown again."),
    h("div.row", {}, button));
}

function card(one, draw, isAdmin) {
  const path = `/v1/connections/${one.id}`;
  const told = h("div");
  const test = async () => {
    const { tables } = await read(`${path}/test`, { method: "POST" });
    const found = tables ? `It has ${many(tables.length, "table")}${tables.length ? `: ${tables.slice(0, 20).join(", ")}${tables.length > 20 ? ", …" : ""}` : ""}.` : "";
    fill(told, h("p.note.calm", { role: "status" }, `The connection works. ${found}`));
  };
  const text = "Its password is deleted, too. Datasets that were read from it are kept.";
  const remove = deleteButton(path, told, `Delete the connection ${one.name}?`, text, "Delete", draw);
  return h("section.card.stack", { "aria-label": one.name },
    h("h2", {}, one.name), h("p.tiny", {}, h("code", {}, one.url)),
    h("p.soft", {}, one.has_password ? "With a password" : "Without a password", ", added ", when(one.created_at)),
    h("div.row", {}, writing(workButton("button", "Test", told, test)), isAdmin ? remove : null), told);
}

/** Returns the inputs that name a table of a connection, and a function that returns the source as the API takes it. */
export function sourceInputs(connections) {
  const which = h("select", { onchange: () => adapt() }, connections.map((one) => h("option", { value: one.name }, one.name)));
  const kind = h("select", {});
  const what = h("input", { required: true, size: 40, autocomplete: "off", spellcheck: false });
  const adapt = () => {
    const { url } = connections.find(({ name }) => name === which.value);
    const isOfFiles = /^(s3|https?):/i.test(url);
    fill(kind, (isOfFiles ? [["key", "File"]] : [["table", "Table"], ["query", "Query"]]).map(([value, text]) => h("option", { value }, text)));
  };
  adapt();
  const fields = [["Connection", which], ["Read a", kind], ["Table name, SQL query or file path", what]].map(([text, input]) => h("label.field", {}, text, input));
  return [fields, () => ({ connection: which.value, [kind.value]: what.value.trim() })];
}

/** Returns the inputs that name where a sample is written, and a function that returns the target as the API takes it; null for the connection "". */
export function targetInputs(connections, modes) {
  const which = h("select", {}, connections.filter(isWritable).map((one) => h("option", { value: one.name, "data-url": one.url }, one.title ?? one.name)));
  const what = h("input", { maxlength: 200, autocomplete: "off", spellcheck: false });
  const mode = h("select", {}, modes.map(([value, text]) => h("option", { value }, text)));
  const fields = [["Write the rows to", which], ["Table or path", what], ["If it already exists", mode]].map(([text, input]) => h("label.field", {}, text, input));
  return [fields, () => {
    if (!which.value) return null;
    const kind = /^s3:/i.test(which.selectedOptions[0].dataset.url) ? "key" : "table";
    return { connection: which.value, [kind]: what.value.trim() || null, if_exists: mode.value };
  }];
}

/** Shows a form that generates rows and writes them to a connection, if there is one. `request(format)` returns the body of the request for a sample, in the chosen format unless one is given. */
export async function showTarget(place, model, told, signal, request) {
  const { items } = await read("/v1/connections?limit=100", { signal });
  if (!items.some(isWritable)) return;
  const [fields, target] = targetInputs(items, [["fail", "Stop with an error"], ["append", "Append"], ["replace", "Replace"]]);
  const button = writing(h("button", { type: "submit" }, "Generate and write"));
  const onsubmit = submitting(button, told, async () => {
    const json = target();
    const response = await ask(`/v1/models/${model.id}/samples`, { method: "POST", json: { ...request("table" in json ? "parquet" : undefined), job: true }, signal });
    const sample = await resultOf(response, signal, (job) => fill(told, h("p.soft", { role: "status" }, `Generating rows in a job: ${job.status}`)));
    const written = await read(`/v1/samples/${sample.id}/export`, { method: "POST", json, signal });
    fill(told, h("p.note.calm", { role: "status" }, `${many(written.rows, "synthetic row")} written to ${written.connection}.`));
  });
  fill(place, h("form.row.foot", { onsubmit, "aria-label": "Write to a connection" }, fields, button));
}

const isWritable = ({ url }) => !/^https?:/i.test(url);

/** Returns a form that makes a dataset of a table of a connection; null if there are no connections. */
export function sourceForm(connections, go) {
  if (!connections.length) return null;
  const told = h("div");
  const [fields, source] = sourceInputs(connections);
  const button = writing(h("button.main", { type: "submit" }, "Read table"));
  const onsubmit = submitting(button, told, async () => {
    const dataset = await read("/v1/datasets", { method: "POST", json: source() });
    go(`/datasets/${dataset.id}`);
  });
  return h("form.card.stack", { onsubmit, "aria-label": "Read a table from a connection" },
    h("h2", {}, "Or read a table from a connection"),
    h("div.row.foot", {}, fields, button), told);
}
