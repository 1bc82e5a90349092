// The page of a dataset: its columns, its rules, its models, and the training form.

import { read } from "./api.js";
import { columnTable } from "./columns.js";
import { comparison } from "./comparing.js";
import { showDatabase } from "./database.js";
import { dataTable, deleteButton, head, problemBox, renameButton, status, verdict, when } from "./components.js";
import { fill, h, say } from "./elements.js";
import { rowTable } from "./rows.js";
import { ruleList } from "./rules.js";
import { showEstimates, trainingForm } from "./training.js";
import { bytes, capital, figure, LOG_LIKELIHOOD, many, spoken } from "./words.js";

export async function show({ place, words: [id], signal, go, reveal }) {
  const dataset = await read(`/v1/datasets/${id}`, { signal });
  if (dataset.kind === "database") return showDatabase({ place, dataset, signal, go, reveal });
  fill(place, heading(dataset, go), h("p.soft", { role: "status" }, "Loading the table …"));
  reveal();
  const [profile, presets, models] = await Promise.all([
    read(`/v1/datasets/${id}/profile`, { signal }),
    read(`/v1/datasets/${id}/presets`, { signal }),
    read(`/v1/models?dataset_id=${id}&limit=20&brief=true`, { signal }),
  ]);
  const page = { place, dataset, profile, presets, models, signal, go, told: h("div"), firstRows: firstRows(id, signal) };
  page.training = trainingForm(page, () => Object.keys(page.patch).length && changeSchema(page, { columns: page.patch }));
  draw(page);
}

function draw(page) {
  const { place, dataset, profile, presets, models } = page;
  const change = (patch) => changeSchema(page, patch);
  const ofColumns = new Set();
  const patch = page.patch = {};
  const table = columnTable(dataset, profile, { change, undo: () => draw(page), patch }, ofColumns);
  const others = dataset.warnings.filter((warning) => !ofColumns.has(warning));
  fill(place,
    heading(dataset, page.go),
    page.told,
    warningList(others),
    h("section.stack", { "aria-label": "Columns" },
      h("div.row.ends", {}, h("h2", {}, "Columns"), h("span.soft", {}, "Inferred from all rows. Correct what is wrong: together, these settings are the schema, with which the model is trained.")),
      table),
    page.firstRows,
    ruleList(dataset, profile.rules, change),
    dataset.privacy ? privacySpent(dataset.privacy) : null,
    page.training,
    models.items.length ? modelsOf(models.items, page.signal) : null);
}

/** Returns the data-quality warnings that are not shown beside a column. */
export function warningList(warnings) {
  return warnings.length ? h("section.stack", { "aria-label": "Data-quality warnings" }, h("h2", {}, "Data-quality warnings"), warnings.map((warning) => h("p.note", {}, capital(warning)))) : null;
}

/** Returns a section with the first 20 uploaded rows (of one table of a database), loaded when it is opened. */
export function firstRows(id, signal, table = null) {
  const found = h("div");
  const open = async () => {
    if (found.childElementCount) return;
    fill(found, h("p.soft", { role: "status" }, "Loading the first 20 rows …"));
    try {
      const { columns, rows } = await read(`/v1/datasets/${id}/rows?${new URLSearchParams({ limit: 20, ...(table ? { table } : {}) })}`, { signal });
      fill(found, rowTable("First rows", rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])))));
    } catch (error) {
      if (error.name !== "AbortError") fill(found, problemBox(error));
    }
  };
  return h("details", { ontoggle: open }, h("summary", {}, `First 20 rows${table ? ` of ${table}` : ""}`), found);
}

export function heading(dataset, go) {
  const told = h("div");
  const text = "This deletes the uploaded data and cannot be undone. Models trained on it are kept.";
  const button = deleteButton(`/v1/datasets/${dataset.id}`, told, `Delete “${dataset.name}”?`, text, "Delete dataset", () => {
    say("The dataset was deleted.");
    go("/datasets");
  });
  return h("div.stack", {}, head({
    crumbs: [["Datasets", "/datasets"]],
    title: dataset.name,
    facts: [dataset.tables ? many(dataset.tables.length, "table") : null, many(dataset.rows, "row"), many(dataset.columns, "column"), bytes(dataset.size_bytes), when(dataset.created_at), h("code", {}, dataset.id)].filter(Boolean),
    actions: [h("button.main", { type: "button", onclick: toTraining }, "Train a model"),
      renameButton(`/v1/datasets/${dataset.id}`, dataset.name, told, () => go(`/datasets/${dataset.id}`, { replace: true })), button],
  }), told);
}

/** Returns the privacy budget that all models of the table have spent, including deleted and failed ones. */
function privacySpent(privacy) {
  const { epsilon, delta, cap } = privacy;
  const facts = [
    ["Epsilon of all models together", epsilon === null ? "no bound" : figure(epsilon, 3)], ["Delta of all models together", figure(delta, 2)],
    ["Privacy budget spent (rho)", figure(privacy.rho_spent, 3)], ["Privacy budget reserved for queued trainings (rho)", figure(privacy.rho_set_aside, 3)],
    ["Limit", cap ? `epsilon ${figure(cap.epsilon, 3)} at delta ${figure(cap.delta, 2)}` : "none"],
  ];
  return h("section.stack", { "aria-label": "Differential privacy" }, h("h2", {}, "Privacy budget spent"),
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p.soft", {}, "Epsilon and delta are the differential privacy guarantee of all models of this table together; smaller values protect more. Each training spends a privacy budget, measured as rho. The budgets add up; epsilon and delta are computed from their sum. Deleting a model does not restore its budget.",
      privacy.note ? ` ${privacy.note}.` : "",
      cap ? " A training that would exceed the cap, or that has no differential privacy, is refused." : ""));
}

function toTraining() {
  const form = document.getElementById("train");
  form?.scrollIntoView({ block: "start" });
  form?.querySelector("input:checked")?.focus({ preventScroll: true });
}

/** Changes the schema and shows the page with the result. Throws a Problem. */
async function changeSchema(page, patch) {
  const { dataset, signal } = page;
  fill(page.told);  // clears the message about the previous change
  const changed = await read(`/v1/datasets/${dataset.id}/schema`, {
    method: "PATCH", json: patch, headers: { "Content-Type": "application/merge-patch+json" },
  });
  const [profile, presets] = await Promise.all([
    read(`/v1/datasets/${dataset.id}/profile`, { signal }), read(`/v1/datasets/${dataset.id}/presets`, { signal }),
  ]);
  const lines = changed.changes.summary;
  fill(page.told, h("div.note.calm", { role: "status" }, h("strong", {}, lines.length ? "Saved. " : "There were no changes to save."), lines.join("; ")));
  const at = window.scrollY;
  Object.assign(page, { dataset: changed, profile });
  showEstimates(page.training, presets.presets);
  draw(page);
  window.scrollTo(0, at);
}

/** Returns the list of a dataset's models, with training and report, and a comparison of two of them. */
export function modelsOf(models, signal) {
  const told = (has) => models.some(has);  // leaves out columns of figures that no model has, such as bounds of databases
  const hasBound = told((model) => model.bound_held_out !== null);
  const parts = ["fidelity", "utility", "likelihood", "privacy"].filter((part) => told((model) => model.report?.verdicts[part]));
  const heads = ["Model", "Status", "Preset", ...(hasBound ? ["Held-out log-likelihood"] : []), ...parts.map(spoken), "Created"];
  const cells = (model) => [
    h("a", { href: model.status === "training" ? `/jobs/${model.job_id}` : `/models/${model.id}` }, model.name), status(model.status),
    `${model.training.preset}${model.training.differential_privacy ? ", differentially private" : ""}${model.training.memory === "low" ? ", low memory" : ""}`,
    ...(hasBound ? [figure(model.bound_held_out, 4)] : []), ...parts.map((part) => (model.report?.verdicts[part] ? verdict(model.report.verdicts[part]) : "–")), when(model.created_at)];
  return h("section.stack", { "aria-label": "Models of this dataset" }, h("h2", {}, "Models of this dataset"), dataTable("Models of this dataset", heads, models.map(cells)),
    hasBound ? h("p.tiny.soft", {}, LOG_LIKELIHOOD) : null, comparison(models, signal));
}

/** Runs a change. If it fails, `told` shows the error and the page does not change. */
export async function tried(told, button, change) {
  if (button) button.disabled = true;
  const seconds = h("span.number", { "aria-hidden": "true" }, "0");
  fill(told, h("p.soft", { role: "status" }, "Saving: the service reads all rows again and searches for rules … ", seconds, " s"));
  const began = Date.now();
  const timer = setInterval(() => fill(seconds, String(Math.round((Date.now() - began) / 1000))), 1000);
  try {
    await change();
    fill(told);
  } catch (error) {
    fill(told, problemBox(error));
  } finally {
    clearInterval(timer);
    if (button) button.disabled = false;
  }
}
