// The form that starts a training: presets in plain words, with what each is likely to take.

import { read } from "./api.js";
import { pressed } from "./components.js";
import { fill, h } from "./elements.js";
import { about, bytes } from "./words.js";

const PLAIN = {
  fast: ["A first look", "A smaller network and fewer passes. Good enough to see whether the columns are right."],
  default: ["Best rows", "The rows nearest to real ones. For what you hand on, and for reports."],
  gcvae: ["One model for all", "Rows, scores and maps come from the copula model alone. For reading dependencies."],
};

/** The form, at the foot of a dataset's page, which draws everything else anew after a change. What is changed and not saved is saved first. */
export function trainingForm(page, saveColumns) {
  const { dataset, presets: { presets }, go } = page;
  const told = h("div");
  const known = presets.filter((preset) => PLAIN[preset.name]).sort((a, b) => a.estimate.seconds - b.estimate.seconds);
  const others = presets.filter((preset) => !PLAIN[preset.name]);
  const name = h("input", { value: dataset.name, maxlength: 200, required: true });
  const seed = h("input", { type: "number", min: 0, value: 0 });
  const steps = h("input", { type: "number", min: 1, placeholder: "by the preset" });
  const share = h("input", { type: "number", min: 0, max: 0.5, step: 0.05, placeholder: dataset.rows >= 1000 ? "0.1" : "0" });
  const memory = h("select", {}, h("option", { value: "" }, "normal"), h("option", { value: "low" }, "low: safer scores, rows a little less alike"));
  const budget = h("input", { type: "number", min: 0, step: "any", placeholder: "none: no proof" });
  const delta = h("input", { type: "number", min: 0, max: 1, step: "any", value: 1e-6 });
  const isDatabase = dataset.kind === "database";
  const columns = isDatabase ? [] : dataset.schema.columns.filter((column) => !column.drop && column.kind !== "identifier");
  const target = h("select", {}, h("option", { value: "" }, "none"), columns.map(({ name: column }) => h("option", { value: column }, column)));
  const button = h("button.main", { type: "submit" }, "Train");
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
      fill(page.told);  // that they are saved would stand above a refusal
      const model = await read("/v1/models", { method: "POST", json: asked });
      go(`/jobs/${model.job_id}`);
    });
  };
  const form = h("form.card.stack", { onsubmit: submit },
    h("fieldset.choices", {}, h("legend.hidden-words", {}, "Preset"), known.map((preset) => choice(preset, preset.name === "default"))),
    others.length ? h("details", {}, h("summary", {}, "The models of the paper"), h("div.choices", {}, others.map((preset) => choice(preset)))) : null,
    h("details", {}, h("summary", {}, "More settings"), h("div.edit", {},
      h("label.field", {}, "Seed", seed), h("label.field", {}, "Most steps", steps),
      isDatabase ? null : h("label.field", {}, "Share of rows held back for the report", share))),
    isDatabase ? null : h("details", {}, h("summary", {}, "Privacy"), h("div.edit", {},
      h("label.field", {}, "Memory of single rows", memory), h("label.field", {}, "Differential privacy, epsilon", budget),
      h("label.field", {}, "Delta", delta), h("label.field", {}, "Column that will be predicted", target)),
    h("p.tiny.soft", {}, "With an epsilon, such as 3, a proof holds for every row: the smaller, the safer and the less alike. ",
      "Kinds, limits and levels must then be declared in the schema; what is missing is named. Each such training spends of the table's budget.")),
    h("div.row", {}, h("label.field", {}, "Name of the model", name), button), told,
    h("p.tiny.soft", {}, "Times are of a processor core that does nothing else: a busy or slower machine takes longer, and less where training stops by itself because the model no longer gets better. ",
      isDatabase ? "The tables are learned one after the other. There is no report on databases yet." : dataset.rows < 1000 ? "Under 1,000 rows no report follows by itself: give a share of rows held back, under More settings, to have one that can answer." : "A tenth of the rows is held back, and a report follows by itself."));
  const section = h("section.stack", { id: "train", "aria-label": "Train a model" }, h("h2", {}, "Train a model"), form);
  showEstimates(section, presets);
  return section;
}

/** What each preset is likely to take of the table as its schema is now. */
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
