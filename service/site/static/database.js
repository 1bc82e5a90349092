// The page of a database: a diagram of its tables and keys, forms to correct them, and the training form.

import { read } from "./api.js";
import { firstRows, heading, modelsOf, tried, warningList } from "./dataset.js";
import { writing } from "./components.js";
import { tableDiagram } from "./diagram.js";
import { fill, h } from "./elements.js";
import { showEstimates, trainingForm } from "./training.js";

const KEEP = { "": "generated, or copied if it is a fixed list such as countries", true: "copied unchanged", false: "generated" };
const INVALID_REFERENCES = { refuse: "reject the database", drop: "remove these rows", null: "set these keys to missing" };

export async function showDatabase({ place, dataset, signal, go, reveal }) {
  fill(place, heading(dataset, go), h("p.soft", { role: "status" }, "Loading the tables …"));
  reveal();
  const [presets, models] = await Promise.all([
    read(`/v1/datasets/${dataset.id}/presets`, { signal }),
    read(`/v1/models?dataset_id=${dataset.id}&limit=20&brief=true`, { signal }),
  ]);
  const page = { place, dataset, presets, models, signal, go, told: h("div") };
  page.training = trainingForm(page, () => {});
  draw(page);
}

function draw(page) {
  const { place, dataset, models, go, signal } = page;
  fill(place,
    heading(dataset, go),
    page.told,
    warningList(dataset.warnings),
    h("section.stack", { "aria-label": "Tables" },
      h("div.row.ends", {}, h("h2", {}, "Tables and keys"), h("span.soft", {}, "Inferred from all rows. Correct what is wrong before training: keys decide which rows are generated together.")),
      tableDiagram(dataset.tables, dataset.schema.tables)),
    h("section.card.stack", { "aria-label": "Keys" }, dataset.tables.map((table) => tableEditor(page, table)), dirtyForm(page)),
    page.training,
    models.items.length ? modelsOf(models.items, signal) : null);
}

/** Returns the form for one table's keys and the order of its rows, with its first rows. */
function tableEditor(page, table) {
  const { tables } = page.dataset.schema;
  const said = tables[table.name];
  const told = h("div");
  const columns = table.schema.columns.map((column) => column.name);
  const primary = h("input", { value: said.primary_key.join(", "), placeholder: "none" });
  const order = chooser(columns, said.order, "inferred");
  const keep = h("select", {}, Object.entries(KEEP).map(([value, text]) => h("option", { value, selected: value === String(said.keep ?? "") }, text)));
  const reference = (key) => referenceFields(table.name, Object.keys(tables), key);
  const keys = said.foreign_keys.map(reference);
  const list = h("div.stack");
  const drawKeys = () => fill(list, keys.map((key, i) => h("div.row", {}, key.elements,
    h("button.small", { type: "button", "aria-label": `Remove foreign key ${i + 1} of ${table.name}`, onclick: () => { keys.splice(i, 1); drawKeys(); } }, "Remove"))));
  drawKeys();
  const save = writing(h("button.main", { type: "button", onclick: () => tried(told, save, () => change(page, { tables: { [table.name]: {
    primary_key: names(primary.value), foreign_keys: keys.map((key) => key.read()), order: order.value || null, keep: keep.value ? keep.value === "true" : null } } })) }, "Save"));
  return h("details", {}, h("summary", {}, `Keys of ${table.name}`), h("div.stack", {},
    h("div.edit", {}, h("label.field", {}, "Primary key (columns separated by commas)", primary), h("label.field", {}, "Column that orders the rows under the same parent row", order), h("label.field", {}, "The table is", keep)),
    h("h3", {}, "Foreign keys"), list,
    h("div.row", {}, h("button", { type: "button", onclick: () => { keys.push(reference()); drawKeys(); } }, "Add foreign key"), save), told,
    firstRows(page.dataset.id, page.signal, table.name)));
}

/** Returns the fields for a foreign key, and a function that reads them. */
function referenceFields(name, tables, key = { columns: [], table: tables[0], references: [] }) {
  const from = h("input", { value: key.columns.join(", "), "aria-label": `Foreign key columns of ${name}`, placeholder: "column" });
  const target = chooser(tables, key.table);
  target.setAttribute("aria-label", "Referenced table");
  const said = () => {
    const columns = names(from.value);
    const isSame = key.table === target.value && key.references.length === columns.length;
    return { columns, table: target.value, ...(isSame ? { references: key.references } : {}) };
  };
  return { elements: [from, h("span.soft", {}, "refers to"), target], read: said };
}

/** Returns the choice of what is done with rows whose foreign key does not exist. */
function dirtyForm(page) {
  const told = h("div");
  const chosen = writing(h("select", { onchange: () => tried(told, chosen, () => change(page, { invalid_references: chosen.value })) },
    Object.entries(INVALID_REFERENCES).map(([value, text]) => h("option", { value, selected: value === (page.dataset.schema.invalid_references ?? "refuse") }, text))));
  return h("div.stack", {}, h("div.row", {}, h("label.field", {}, "Rows whose foreign key refers to no row", chosen)), told);
}

function chooser(values, chosen, none = null) {
  const options = [...(none === null ? [] : [["", none]]), ...values.map((value) => [value, value])];
  return h("select", {}, options.map(([value, text]) => h("option", { value, selected: value === (chosen ?? "") }, text)));
}

function names(text) {
  return text.split(",").map((name) => name.trim()).filter(Boolean);
}

/** Changes the schema and shows the page with the result. Throws a Problem. */
async function change(page, patch) {
  fill(page.told);
  const changed = await read(`/v1/datasets/${page.dataset.id}/schema`, {
    method: "PATCH", json: patch, headers: { "Content-Type": "application/merge-patch+json" },
  });
  const presets = await read(`/v1/datasets/${page.dataset.id}/presets`, { signal: page.signal });
  fill(page.told, h("div.note.calm", { role: "status" }, h("strong", {}, "Saved. "), changed.changes.summary.join("; ")));
  const at = window.scrollY;
  Object.assign(page, { dataset: changed });
  showEstimates(page.training, presets.presets);
  draw(page);
  window.scrollTo(0, at);
}
