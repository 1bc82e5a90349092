// The model of a database at a glance: how each of its tables is drawn.

import { tableDiagram } from "./diagram.js";
import { dataTable } from "./components.js";
import { read } from "./api.js";
import { fill, h } from "./elements.js";
import { count, many, spoken } from "./words.js";

export async function show({ place, model, signal }) {
  const { record } = model;
  const tables = Object.entries(record.tables);
  const copied = tables.filter(([, table]) => table.is_copied).map(([name]) => name);
  const dataset = model.dataset_id ? await read(`/v1/datasets/${model.dataset_id}`, { signal }).catch(() => null) : null;
  const facts = [["Tables", count(tables.length - record.splits.length)], ["Rows learned from", count(record.rows)], ["Preset", record.preset ?? "–"]];
  fill(place,
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    copied.length ? h("p.note", {}, `${copied.join(", ")}: every draw has the real rows of ${copied.length === 1 ? "this table" : "these tables"}. Look at them before you hand a draw on; `, h("code", {}, '"keep": false'), " in the schema has them drawn.") : null,
    dataset?.tables ? tableDiagram(dataset.tables, dataset.schema.tables, Object.fromEntries(tables.map(([name, table]) => [name, spoken(table.plan)]))) : null,
    h("section.stack", { "aria-label": "Tables" }, h("h2", {}, "How each table is drawn"),
      dataTable("How each table is drawn", ["Table", ["Rows", "number"], ["Columns", "number"], "Drawn"], tables.map(([name, table]) => [name, count(table.rows), count(table.columns), table.plan])),
      record.splits.map((split) => h("p.soft", {}, `${split.table}: ${split.key.join(", ")} comes again${split.determines.length ? ` and determines ${split.determines.join(", ")}` : ""}. It is learned as ${many(2, "table")}, and drawn as one.`))),
    h("details", {}, h("summary", {}, "Settings of the training"), h("pre.card.scrolls", { tabindex: 0 }, JSON.stringify({ ...model.training, ...record.settings }, null, 2))));
}
