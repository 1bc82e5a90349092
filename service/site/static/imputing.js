// Imputation: a table with blanks comes back whole.

import { ask, rowsOf, save, tableType } from "./api.js";
import { dropPlace, problemBox } from "./components.js";
import { fill, h, say } from "./elements.js";
import { cellsOf, csvObjects, rowTable } from "./rows.js";
import { many, percent } from "./words.js";

export function show({ place, model, signal }) {
  const top = h("div");
  const found = h("div.stack");
  const draws = h("input", { type: "number", min: 1, max: 100, value: 1 });
  const take = async (file) => {
    const words = h("p.soft", { role: "status" }, `Filling ${file.name} …`);
    fill(top, words);
    fill(found);
    try {
      const path = `/v1/models/${model.id}/imputations?format=csv&draws=${Number(draws.value) || 1}`;
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
    hint: "Its blank cells are drawn from the model, given the cells that are known. Known cells stay as they are." });
  fill(top, drop());
  fill(place, top, h("div.row", {}, h("label.field", {}, "Completions of each row", draws)), found);
}

/** Completed rows. Where each is one of the file's, cells that were blank there are marked. */
function shown(rows, given, download) {
  const isFilled = (i, name) => given !== null && !(given[i][name] ?? "").trim();
  return [h("div.row.ends", {}, h("h2", {}, `${many(rows.length, "row")} filled`), h("button.main", { type: "button", onclick: download }, "Download the table")),
    given ? h("p.soft", {}, "Marked cells were blank.") : null,
    rowTable("The filled table", rows, 20, isFilled)];
}
