// The part of a database model's page that shows how each table is generated.

import { tableDiagram } from "./diagram.js";
import { dataTable } from "./components.js";
import { read } from "./api.js";
import { fill, h } from "./elements.js";
import { capital, count } from "./words.js";

export async function show({ place, model, signal }) {
  const { record } = model;
  const tables = Object.entries(record.tables);
  const copied = tables.filter(([, table]) => table.is_copied).map(([name]) => name);
  const dataset = model.dataset_id ? await read(`/v1/datasets/${model.dataset_id}`, { signal }).catch(() => null) : null;
  const facts = [["Tables", count(tables.length - record.splits.length)], ["Rows", count(record.rows)], ["Preset", record.preset ?? "–"]];
  fill(place,
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    copied.length ? h("p.note", {}, `Copied unchanged: ${copied.join(", ")}. Synthetic databases contain the real rows of ${copied.length === 1 ? "this table" : "these tables"}. Check that they may be shared. To generate them instead, set “The table is” to “generated” in the dataset and train again.`) : null,
    dataset?.tables ? tableDiagram(dataset.tables, dataset.schema.tables, Object.fromEntries(tables.map(([name, table]) => [name, capital(table.plan)]))) : null,
    h("section.stack", { "aria-label": "Tables" }, h("h2", {}, "How each table is generated"),
      dataTable("How each table is generated", ["Table", ["Rows", "number"], ["Columns", "number"], "Method"], tables.map(([name, table]) => [name, count(table.rows), count(table.columns), table.plan])),
      record.splits.map((split) => h("p.soft", {}, `${split.table}: values of ${split.key.join(", ")} recur${split.determines.length ? ` and determine ${split.determines.join(", ")}` : ""}. The model treats them as a table of their own and joins both tables in the result.`))),
    h("details", {}, h("summary", {}, "Training settings"), h("pre.card.scrolls", { tabindex: 0 }, JSON.stringify({ ...model.training, ...record.settings }, null, 2))));
}
