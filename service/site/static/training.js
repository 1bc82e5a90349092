// The form that starts a training: presets with their estimated time and memory, settings, privacy.

import { read } from "./api.js";
import { pressed, writing } from "./components.js";
import { fill, h } from "./elements.js";
import { about, bytes } from "./words.js";

const PLAIN = {
  fast: ["Quick preview", "A small network and few passes over the rows. Use it to check the schema."],
  default: ["Best quality", "The most realistic synthetic rows. Use it for data that you share and for reports."],
  gcvae: ["Copula only", "Rows, scores and dependency maps come from one and the same Gaussian copula. Use it to study dependencies."],
};

/** Returns the training form of a dataset's page. Unsaved changes of the columns are saved before the training starts. */
export function trainingForm(page, saveColumns) {
  const { dataset, presets: { presets }, go } = page;
  const told = h("div");
  const known = presets.filter((preset) => PLAIN[preset.name]).sort((a, b) => a.estimate.seconds - b.estimate.seconds);
  const others = presets.filter((preset) => !PLAIN[preset.name]);
  const name = h("input", { value: dataset.name, maxlength: 200, required: true });
  const seed = h("input", { type: "number", min: 0, value: 0 });
  const steps = h("input", { type: "number", min: 1, placeholder: "set by the preset" });
  const share = h("input", { type: "number", min: 0, max: 0.5, step: 0.05, placeholder: dataset.rows >= 1000 ? "0.1" : "0" });
  const memory = h("select", {}, h("option", { value: "" }, "normal"), h("option", { value: "low" }, "low: learns less about individual rows; the synthetic rows are slightly less realistic"));
  const budget = h("input", { type: "number", min: 0, step: "any", placeholder: "no guarantee" });
  const delta = h("input", { type: "number", min: 0, max: 1, step: "any", value: 1e-6 });
  const isDatabase = dataset.kind === "database";
  const columns = isDatabase ? [] : dataset.schema.columns.filter((column) => !column.drop && column.kind !== "identifier");
  const target = h("select", {}, h("option", { value: "" }, "none"), columns.map(({ name: column }) => h("option", { value: column }, column)));
  const button = writing(h("button.main", { type: "submit" }, "Train"));
  const submit = (event) => {
    event.preventDefault();
    const training = { preset: new FormData(form).get("preset"), seed: Number(seed.value) };
    if (steps.value) training.max_steps = Number(steps.value);
    if (share.value) training.report_share = Number(share.value);
    if (memory.value) training.memory = memory.value;
    if (budget.value) training.differential_privacy = { epsilon: Number(budget.value), delta: Number(delta.value), ...(target.value ? { target: target.value } : {}) };
    const asked = { dataset_id: dataset.id, name: name.value, training };
    fill(page.told);
    pressed(button, told, async () => {
      await saveColumns();
      fill(page.told);  // so that "saved" is not shown above an error
      const model = await read("/v1/models", { method: "POST", json: asked });
      go(`/jobs/${model.job_id}`);
    });
  };
  const form = h("form.card.stack", { onsubmit: submit },
    h("fieldset.choices", {}, h("legend.hidden-words", {}, "Preset"), known.map((preset) => choice(preset, preset.name === "default"))),
    others.length ? h("details", {}, h("summary", {}, "Models of the paper (Suh and Choi 2016), for comparison"), h("div.choices", {}, others.map((preset) => choice(preset)))) : null,
    h("details", {}, h("summary", {}, "More settings"), h("div.edit", {},
      h("label.field", {}, "Seed (the same seed gives the same model)", seed), h("label.field", {}, "Maximum number of steps", steps),
      isDatabase ? null : h("label.field", {}, "Share of rows kept unseen for the report", share))),
    isDatabase ? null : h("details", {}, h("summary", {}, "Privacy"), h("div.edit", {},
      h("label.field", {}, "Memorisation of individual rows", memory), h("label.field", {}, "Differential privacy: epsilon", budget),
      h("label.field", {}, "Differential privacy: delta", delta), h("label.field", {}, "Column that you want to predict later", target)),
    h("p.tiny.soft", {}, "With an epsilon, for example 3, the training is differentially private: one row more or less changes the probability of any result by at most a factor of e^epsilon, up to delta. A smaller epsilon is safer and gives less realistic rows. ",
      "Kinds, minima, maxima and categories of all columns must then be set on the page of the dataset; an error names what is missing. Each such training spends part of the table's privacy budget.")),
    h("div.row.foot", {}, h("label.field", {}, "Model name", name), button), told,
    h("p.tiny.soft", {}, "Estimates assume one idle processor core. Training stops earlier if the model no longer improves. ", dataset.rows <= 10_000 ? "For small tables the presets take about as long as each other, because each makes at least 400 steps. " : "",
      isDatabase ? "The model learns the tables one after another. A report is made on request, on the page of the model." : dataset.rows < 1000 ? "Tables under 1,000 rows get no report by default: to get one, set the share of rows kept unseen for the report under More settings." : "By default a tenth of the rows is kept unseen: training does not use them, and a report compares with them."));
  const section = h("section.stack", { id: "train", "aria-label": "Train a model" }, h("h2", {}, "Train a model"), form);
  showEstimates(section, presets);
  return section;
}

/** Shows the estimated time and memory of each preset for the current schema. */
export function showEstimates(section, presets) {
  for (const { name, estimate, report_estimate: report } of presets) {
    fill(section.querySelector(`[data-preset="${name}"]`),
      `${about(estimate.seconds)}${report ? `, then ${about(report.seconds)} for the report` : ""}; ${bytes(estimate.memory_bytes)} of memory`);
  }
}

function choice(preset, isChosen = false) {
  const [title, text] = PLAIN[preset.name] ?? [preset.name, preset.description];
  return h("label.choice", {},
    h("input", { type: "radio", name: "preset", value: preset.name, checked: isChosen }),
    h("span", {}, h("strong", {}, title), PLAIN[preset.name] ? h("span.tiny.soft", {}, ` ${preset.name}`) : null,
      h("span.soft.block", {}, text), h("span.tiny.block", { "data-preset": preset.name })));
}
