// The form that generates a synthetic database: its size, and whether to download all tables or one.

import { ask, bodyOf, rowsOf, save } from "./api.js";
import { pressed, segments, writing } from "./components.js";
import { showTarget } from "./connections.js";
import { fill, h, say } from "./elements.js";
import { many, percent } from "./words.js";
import { csvObjects, rowTable } from "./rows.js";

const PREVIEW_ROWS = 12;

export async function show({ place, model, signal }) {
  const told = h("div.stack");
  const exporting = h("div");
  const made = new Set(model.record.splits.map((split) => split.entities));
  const names = Object.keys(model.record.tables).filter((name) => !made.has(name));
  let by = "scale";
  const scale = h("input", { type: "number", min: 0, step: "any", value: 1, required: true });
  const parents = h("input", { type: "number", min: 1, value: 100, required: true });
  const seed = h("input", { type: "number", min: 0, placeholder: "random" });
  const format = h("select", {}, h("option", { value: "csv" }, "CSV"), h("option", { value: "parquet" }, "Parquet"));
  const table = h("select", {}, h("option", { value: "" }, "all, as a ZIP archive"), names.map((name) => h("option", { value: name }, name)));
  const amount = h("div");
  const showAmount = () => fill(amount, by === "scale"
    ? h("label.field", {}, "Size relative to the real tables (1: as many rows)", scale)
    : h("label.field", {}, "Number of rows in each table that refers to no other table", parents));
  const body = () => ({ ...(by === "scale" ? { scale: Number(scale.value) } : { parents: Number(parents.value) }), ...(seed.value === "" ? {} : { seed: Number(seed.value) }) });
  const draw = async (more, name) => {
    const query = name ? `?${new URLSearchParams({ table: name })}` : "";
    const response = await ask(`/v1/models/${model.id}/samples${query}`, { method: "POST", json: { ...body(), ...more }, signal });
    const done = await rowsOf(response, "/v1/samples", signal, (job) => fill(told, h("p.soft", { role: "status" }, `Generating rows in a job: ${job.status}, ${percent(job.progress.fraction ?? 0)}`)));
    return [response.headers.get("Gcvae-Seed"), done];
  };
  const preview = (event) => pressed(event.target, told, async () => {
    const name = table.value || names[0];
    const [used, done] = await draw({ format: "csv" }, name);
    const rows = csvObjects(await bodyOf(done));
    fill(told, h("h3", {}, `${name}: first ${Math.min(rows.length, PREVIEW_ROWS)} of ${many(rows.length, "row")}`), rowTable(`Synthetic rows of ${name}`, rows, PREVIEW_ROWS), seedLine(used));
  });
  const download = (event) => pressed(event.target, told, async () => {
    const [used, done] = await draw({ format: format.value }, table.value);
    const name = table.value ? `${table.value}.${format.value}` : `${model.name}-synthetic.zip`;
    save(await bodyOf(done, "blob"), name);
    fill(told, h("p.note.calm", { role: "status" }, `${name} was downloaded.`), seedLine(used));
    say(`${name} was downloaded.`);
  });
  showAmount();
  fill(place, h("p.soft", {}, "Generates a synthetic database: every primary key is unique, and every foreign key refers to a row."),
    h("div.row", {}, segments("Size", [["scale", "Relative size"], ["parents", "Number of parent rows"]], by, (value) => { by = value; showAmount(); })),
    h("div.row.foot", {}, amount, h("label.field", {}, "Seed", seed), h("label.field", {}, "Table", table), h("label.field", {}, "File format", format),
      writing(h("button", { type: "button", onclick: preview }, "Preview")), writing(h("button.main", { type: "button", onclick: download }, "Generate and download"))),
    exporting, told);
  await showTarget(exporting, model, told, signal, (type = format.value) => ({ ...body(), format: type }));
}

function seedLine(seed) {
  return h("p.tiny.soft", {}, `Seed ${seed}: the same seed gives the same tables.`);
}
