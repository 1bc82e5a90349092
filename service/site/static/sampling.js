// The section of a model's page that generates rows: their number, conditions and target shares, a preview, the download, and the writing to a connection.

import { ask, bodyOf, parsed, rowsOf, save } from "./api.js";
import { pressed, writing } from "./components.js";
import { balanceForm, conditionForm } from "./conditions.js";
import { showTarget } from "./connections.js";
import { fill, h, say } from "./elements.js";
import { rowTable } from "./rows.js";
import { count, figure, many, percent, written } from "./words.js";

const PREVIEW = 12;
const TYPES = { csv: "CSV", parquet: "Parquet", jsonl: "JSON lines" };

export async function show({ place, model, signal }) {
  const preview = h("div.stack");
  const exporting = h("div");
  const rows = h("input", { type: "number", min: 1, value: Math.min(model.record?.rows ?? 1000, 100_000), required: true });
  const seed = h("input", { type: "number", min: 0, placeholder: "random" });
  const format = h("select", {}, Object.entries(TYPES).map(([value, text]) => h("option", { value }, text)));
  const given = conditionForm(model.schema);
  const balance = balanceForm(model.schema);
  const asked = (more) => {
    const body = { ...more, given: given.read(), distribution: balance.read() };
    if (seed.value !== "") body.seed = Number(seed.value);
    return body;
  };
  const whole = (type = format.value) => asked({ rows: Number(rows.value), format: type });
  const draw = async (body) => {
    const response = await ask(`/v1/models/${model.id}/samples`, { method: "POST", json: body, signal });
    const done = await rowsOf(response, "/v1/samples", signal, (job) => fill(preview, h("p.soft", { role: "status" }, `Generating rows in a job: ${job.status}, ${percent(job.progress.fraction ?? 0)}`)));
    return [response, done];
  };
  const showPreview = (event) => pressed(event.target, preview, async () => {
    const [response, done] = await draw(asked({ rows: PREVIEW, format: "json" }));
    const drawn = parsed(await bodyOf(done));
    fill(preview, h("h3", {}, `Preview of ${many(drawn.length, "synthetic row")}`), rowTable("Synthetic rows", drawn.map((row) => Object.fromEntries(model.schema.columns.filter(({ name }) => name in row).map((column) => [column.name, written(column, row[column.name])])))), h("p.tiny.soft", {}, facts(response)));
    say(`${drawn.length} synthetic rows are shown.`);
  });
  const download = (event) => pressed(event.target, preview, async () => {
    const [response, done] = await draw(whole());
    save(await bodyOf(done, "blob"), `${model.name}-synthetic.${format.value}`);
    fill(preview, h("p.note.calm", { role: "status" }, `${many(Number(rows.value), "synthetic row")} downloaded. ${facts(response)}`));
  });
  fill(place, h("div.grid.two", {},
    h("section.card.stack", { "aria-label": "Conditions" }, h("h3", {}, "Conditions"), h("p.soft", {}, "Every generated row satisfies all conditions. Rare conditions do not take longer."), given.element),
    h("section.card.stack", { "aria-label": "Target shares" }, h("h3", {}, "Target shares"), h("p.soft", {}, "Set the shares of the categories of one column. The other columns keep their dependence on it."), balance.element)),
  h("div.row.foot", {}, h("label.field", {}, "Rows", rows), h("label.field", {}, "Seed", seed), h("label.field", {}, "File format", format),
    writing(h("button", { type: "button", onclick: showPreview }, "Preview")), writing(h("button.main", { type: "button", onclick: download }, "Generate and download"))),
  exporting, preview);
  await showTarget(exporting, model, preview, signal, whole);
}

/** Returns sentences on the seed and on the probability of the conditions, from the response headers. */
function facts(response) {
  const of = (name) => response.headers.get(name);
  const words = [`Seed ${of("Gcvae-Seed")}: the same seed gives the same rows.`];
  if (of("Gcvae-Probability")) words.push(`Probability of the conditions under the model: ${figure(Number(of("Gcvae-Probability")))}.`);
  if (of("Gcvae-Effective-Sample-Size")) words.push(`Effective sample size: the rows are worth ${count(Math.round(Number(of("Gcvae-Effective-Sample-Size"))))} independent rows.`);
  return words.join(" ");
}
