// Imputation: a table with blanks comes back whole.

import { ask, rowsOf, save, tableType } from "./api.js";
import { dropPlace, problemBox } from "./components.js";
import { fill, h, say } from "./elements.js";
import { cellsOf, csvObjects, rowsIn, rowTable } from "./rows.js";
import { many, percent } from "./words.js";

export function show({ place, model, signal }) {
  const top = h("div");
  const found = h("div.stack");
  const draws = h("input", { type: "number", min: 1, max: 100, value: 1 });
  const take = async (file) => {
    const blanks = await blanksOf(file, model.schema);
    if (blanks?.length === 0) return fill(found, h("p.note.calm", { role: "status" }, `${file.name} has no blank cell in a column that the model fills.`));
    return fill(found, choices(file, blanks ?? fillable(model.schema).map((column) => ({ column })), (query) => run(file, query)));
  };
  const run = async (file, query) => {
    const words = h("p.soft", { role: "status" }, `Filling ${file.name} …`);
    fill(top, words);
    fill(found);
    try {
      const path = `/v1/models/${model.id}/imputations?${new URLSearchParams({ format: "csv", draws: Number(draws.value) || 1, ...query })}`;
      const response = await ask(path, { method: "POST", body: file, headers: { "Content-Type": tableType(file.name) }, signal });
      const done = await rowsOf(response, "/v1/imputations", signal, (job) => fill(words, `A job fills ${file.name}: ${job.status}, ${percent(job.progress.fraction ?? 0)}`));
      const blob = await done.blob();
      const rows = csvObjects(await blob.text());
      fill(found, shown(rows, await cellsOf(file, rows.length), () => save(blob, `${model.name}-completed.csv`)));
      say("The table is filled.");
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, problemBox(error));
    }
    fill(top, drop());
  };
  const drop = () => dropPlace({ title: "Drop a table with blanks", small: true, take,
    hint: "Its blank cells are drawn from the model, given the cells that are known. Known cells stay as they are, and you choose the columns." });
  fill(top, drop());
  fill(place, top, h("div.row", {}, h("label.field", {}, "Completions of each row", draws)), found);
}

/** The columns that a model can fill. */
function fillable(schema) {
  return schema.columns.filter((column) => !column.drop && column.kind !== "identifier");
}

/** Of each column with blanks in the file, how many: [{column, count}]; null where the page can not read the file. */
async function blanksOf(file, schema) {
  const rows = await rowsIn(file);
  if (!rows) return null;
  const isBlank = (text, column) => text === undefined || text.trim() === "" || (column.missing?.markers ?? []).includes(text);
  return fillable(schema).map((column) => ({ column, count: rows.filter((row) => isBlank(row[column.name], column)).length })).filter(({ count: n }) => n);
}

/** Which columns are to be filled. Where training had blanks too, a blank may be right, and only its user knows. */
function choices(file, blanks, start) {
  const boxes = blanks.map(({ column, count: n }) => {
    const box = h("input", { type: "checkbox", checked: !column.missing?.allowed, onchange: () => { button.disabled = !boxes.some(([one]) => one.checked); } });
    const mayBeRight = column.missing?.allowed ? "the table of training has blanks here too: a blank may be right" : null;
    const told = [n === undefined ? null : many(n, "blank"), mayBeRight].filter(Boolean).join("; ");
    return [box, column, h("label.check", {}, box, column.name, h("span.tiny.soft", {}, told))];
  });
  const named = (columns) => columns.map((column) => `"${column.name.replaceAll('"', '""')}"`).join(",");
  const submit = (event) => {
    event.preventDefault();
    const kept = boxes.filter(([box, column]) => !box.checked && column.missing?.allowed).map(([, column]) => column);
    start({ columns: named(boxes.filter(([box]) => box.checked).map(([, column]) => column)), ...(kept.length ? { keep_blanks: named(kept) } : {}) });
  };
  const button = h("button.main", { type: "submit", disabled: !boxes.some(([box]) => box.checked) }, "Fill the blanks");
  return h("form.card.stack", { onsubmit: submit }, h("fieldset.stack", {}, h("legend", {}, `Columns of ${file.name} to be filled`), boxes.map(([, , label]) => label)),
    h("p.tiny.soft", {}, "Blanks of the other columns stay. Where training had blanks, a blank that stays is taken as known: the others are filled so that they go with it."),
    h("div.row", {}, button));
}

/** Completed rows. Where each is one of the file's, cells that were blank there are marked. */
function shown(rows, given, download) {
  const isFilled = (i, name) => given !== null && !(given[i][name] ?? "").trim() && rows[i][name] !== "";
  return [h("div.row.ends", {}, h("h2", {}, `${many(rows.length, "row")} filled`), h("button.main", { type: "button", onclick: download }, "Download the table")),
    given ? h("p.soft", {}, "Marked cells were blank.") : null,
    rowTable("The filled table", rows, 20, isFilled)];
}
