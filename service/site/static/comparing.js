// Comparison of two models of a dataset: how each was trained, and the figures of both reports.

import { read } from "./api.js";
import { dataTable, pressed, verdict } from "./components.js";
import { fill, h, say } from "./elements.js";
import { inUnit } from "./report.js";
import { bytes, count, duration, exactTime, figure, LOG_LIKELIHOOD, spoken, trainingRows } from "./words.js";

const PARTS = ["fidelity", "utility", "likelihood", "privacy"];

/** Returns fields to choose two ready models and compare them; null if there are fewer than two. */
export function comparison(models, signal) {
  const ready = models.filter((model) => model.status === "ready");
  if (ready.length < 2) return null;
  const choose = (label, at) => h("label.field", {}, label, h("select", {}, ready.map((model, i) =>
    h("option", { value: model.id, selected: i === at }, `${model.name} (${exactTime(model.created_at)})`))));
  const fields = [choose("First model", 1), choose("Second model", 0)];
  const found = h("div.stack");
  const compare = (event) => pressed(event.target, found, async () => {
    const ids = fields.map((field) => field.querySelector("select").value);
    fill(found, sideBySide(...await Promise.all(ids.map((id) => whole(id, signal)))));
    say("The comparison is ready.");
  });
  return h("div.stack", {}, h("div.row.foot", {}, fields, h("button", { type: "button", onclick: compare }, "Compare models")), found);
}

/** Returns a model with its report as `figures`, which is null without a report. */
async function whole(id, signal) {
  const model = await read(`/v1/models/${id}`, { signal });
  return { ...model, figures: model.report ? await read(`/v1/models/${id}/report`, { signal, headers: { Accept: "application/json" } }) : null };
}

function sideBySide(...models) {
  const of = (label, cell) => [label, ...models.map(cell)];
  const rows = [
    of("Preset", ({ training }) => training.preset),
    of("Setting: memorisation of individual rows", ({ training }) => training.memory ?? "normal"),
    of("Differential privacy", ({ training: { differential_privacy: promise } }) => (promise ? `epsilon ${figure(promise.epsilon)}` : "none")),
    of("Training rows", ({ record }) => trainingRows(record)), of("Training time", ({ record }) => duration(record.seconds)),
    of("Held-out log-likelihood (nats per row)", (model) => figure(model.bound_held_out, 4)), of("Size of the model file", (model) => bytes(model.artifact_bytes)),
    ...PARTS.flatMap((part) => reportRows(part, models))];
  return [dataTable("Models side by side", ["", ...models.map((model) => model.name)], rows, "table"), h("p.tiny.soft", {}, LOG_LIKELIHOOD)];
}

/** Returns table rows with the verdict and the figures of one part of the reports. */
function reportRows(part, models) {
  const reports = models.map((model) => model.figures?.[part]);
  const labels = new Map(reports.flatMap((report) => report?.figures ?? []).map((one) => [one.name, one.label]));
  return [[h("strong", {}, spoken(part)), ...reports.map((report) => (report ? verdict(report.verdict) : "no report"))],
    ...[...labels].map(([name, label]) => [label, ...reports.map((report) => {
      const one = report?.figures.find((each) => each.name === name);
      return one ? inUnit(one.value, one.unit) : "–";
    })])];
}
