// The section of a model's page that imputes the missing values of an uploaded table.

import { ask, bodyOf, rowsOf, save, tableType } from "./api.js";
import { dropPlace, encodingField, problemBox } from "./components.js";
import { fill, h, say } from "./elements.js";
import { cellsOf, csvObjects, rowsIn, rowTable } from "./rows.js";
import { count, many, percent } from "./words.js";

export function show({ place, model, signal }) {
  const top = h("div.stack");
  const found = h("div.stack");
  const draws = h("input", { type: "number", min: 1, max: 100, value: 1 });
  const encoding = encodingField();
  const isDatabase = model.kind === "database";
  const take = async (file) => {
    if (isDatabase) return run(file, {});
    const blanks = await blanksOf(file, model.schema, encoding.query().encoding);
    if (blanks?.length === 0) return fill(found, h("p.note.calm", { role: "status" }, `${file.name} has no missing value in a column that the model can impute.`));
    return fill(found, choices(file, blanks ?? fillable(model.schema).map((column) => ({ column })), (query) => run(file, query)));
  };
  const run = async (file, query) => {
    const words = h("p.soft", { role: "status" }, `Imputing ${file.name} …`);
    fill(top, words);
    fill(found);
    const said = encoding.query();
    try {
      const path = `/v1/models/${model.id}/imputations?${new URLSearchParams({ format: "csv", ...(isDatabase ? {} : { draws: Number(draws.value) || 1 }), ...said, ...query })}`;
      const response = await ask(path, { method: "POST", body: file, headers: { "Content-Type": tableType(file.name) }, signal });
      const done = await rowsOf(response, "/v1/imputations", signal, (job) => fill(words, `Imputing ${file.name} in a job: ${job.status}, ${percent(job.progress.fraction ?? 0)}`));
      const blob = await bodyOf(done, "blob");
      if (isDatabase) fill(found, completedTables(() => save(blob, `${model.name}-completed.zip`)));
      else {
        const rows = csvObjects(await blob.text());
        fill(found, shown(rows, await cellsOf(file, rows.length, said.encoding), () => save(blob, `${model.name}-completed.csv`)));
      }
      say("The missing values have been filled in.");
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, problemBox(error));
    }
    fill(top, drop(), encoding.element);
  };
  const drop = () => dropPlace({ title: isDatabase ? "Upload tables with missing values" : "Upload a table with missing values", small: true, take,
    hint: isDatabase ? "A ZIP file of the database's tables. Missing cells are filled table by table, parents first; keys and personal columns stay missing."
      : "The model generates each missing value from the known cells of its row. Known cells are not changed. You choose the columns." });
  fill(top, drop(), encoding.element);
  fill(place, top, isDatabase ? null : h("div.row", {}, h("label.field", {}, "Completed copies of each row (several show how uncertain the values are)", draws)), found);
}

function completedTables(download) {
  return h("section.card.stack", { "aria-label": "Completed tables" },
    h("div.row.ends", {}, h("h2", {}, "The tables are ready"), h("button.small", { type: "button", onclick: download }, "Download tables")));
}

/** Returns the columns that a model can impute. */
function fillable(schema) {
  return schema.columns.filter((column) => !column.drop && column.kind !== "identifier");
}

/** Returns the columns with missing cells in the file: [{column, count}]; null if the page cannot read the file. */
async function blanksOf(file, schema, encoding) {
  const rows = await rowsIn(file, encoding);
  if (!rows) return null;
  const isBlank = (text, column) => text === undefined || text.trim() === "" || (column.missing?.markers ?? []).includes(text);
  return fillable(schema).map((column) => ({ column, count: rows.filter((row) => isBlank(row[column.name], column)).length })).filter(({ count: n }) => n);
}

/** Returns the choice of columns to impute. Columns that had missing values in training too are not preselected, because a missing value may be correct. */
function choices(file, blanks, start) {
  const boxes = blanks.map(({ column, count: n }) => {
    const box = h("input", { type: "checkbox", checked: !column.missing?.allowed, onchange: () => enable() });
    const mayBeRight = column.missing?.allowed ? "also missing in the training table, so a missing value may be correct" : null;
    const told = [n === undefined ? null : `${count(n)} missing`, mayBeRight].filter(Boolean).join("; ");
    return [box, column, h("label.check", {}, box, column.name, h("span.tiny.soft", {}, told))];
  });
  const named = (columns) => columns.map((column) => `"${column.name.replaceAll('"', '""')}"`).join(",");
  const submit = (event) => {
    event.preventDefault();
    const kept = boxes.filter(([box, column]) => !box.checked && column.missing?.allowed).map(([, column]) => column);
    start({ columns: named(boxes.filter(([box]) => box.checked).map(([, column]) => column)), ...(kept.length ? { keep_missing: named(kept) } : {}) });
  };
  const button = h("button.main", { type: "submit" }, "Impute missing values");
  const why = h("span.soft", { role: "status" });
  const enable = () => {
    button.disabled = !boxes.some(([box]) => box.checked);
    fill(why, button.disabled ? "Choose at least one column." : "");
  };
  enable();
  return h("form.card.stack", { onsubmit: submit }, h("fieldset.stack", {}, h("legend", {}, `Columns of ${file.name} to impute`), boxes.map(([, , label]) => label)),
    h("p.tiny.soft", {}, "Columns that are not selected keep their missing values. If such a column has missing values in the training table too, the model takes into account that its value is missing when it imputes the other columns."),
    h("div.row", {}, button, why));
}

/** Returns the imputed rows; if they correspond to the rows of the file, imputed cells are marked. */
function shown(rows, given, download) {
  const isFilled = (i, name) => given !== null && !(given[i][name] ?? "").trim() && rows[i][name] !== "";
  return [h("div.row.ends", {}, h("h2", {}, `${many(rows.length, "row")} imputed`), h("button.main", { type: "button", onclick: download }, "Download table")),
    given ? h("p.soft", {}, "The highlighted cells were missing.") : null,
    rowTable("Imputed table", rows, 20, isFilled)];
}
