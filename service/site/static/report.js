// The quality report of a model: four parts, each with a verdict, a finding, a recommendation and figures.

import { ask, follow, Problem, read } from "./api.js";
import { twoSides } from "./charts.js";
import { dataTable, empty, meter, pressed, problemBox, verdict, writing } from "./components.js";
import { fill, h } from "./elements.js";
import { count, figure, percent, sentence } from "./words.js";

const QUESTIONS = {
  fidelity: ["Fidelity", "Do the synthetic rows look like real rows?"],
  utility: ["Utility", "Are predictive models trained on synthetic rows as good as models trained on real rows?"],
  likelihood: ["Likelihood", "Does the model describe unseen rows as well as its training rows?"],
  privacy: ["Privacy", "Do the synthetic rows or the model reveal which real rows were used for training?"],
};
const FEW = "To protect single rows, a value that fewer than five real rows have is not shown: “few” stands for its share, and “all others” for the value.";
const PAIRS = "Each attack is given a training row and an unseen row and must identify the training row. “Correct” is the share of pairs in which it succeeds: 50 % is guessing, 100 % certainty. A leak below “detectable from” would most likely not have been detected. Isolated rows are the tenth of the rows that is least similar to others.";
const LOW = "Each column stands for a false positive rate: the share of unseen rows that the attack takes for training rows. The cells are true positive rates: the share of training rows that it recognises. If the attack is harmless, both rates are about equal.";
const MOST_LINES = 30;

export async function show({ place, model, signal }) {
  let report;
  try {
    report = await read(`/v1/models/${model.id}/report`, { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    return none({ place, model, signal }, error);
  }
  const told = h("div");
  const button = writing(h("button", { type: "button", onclick: () => again({ place, model, signal }, button, told, {}) }, "Make a new report"));
  fill(place, h("div.row", {}, h("a.button", { href: `/v1/models/${model.id}/report?format=html`, target: "_blank", rel: "noopener" }, "Open printable report"), button), told,
  report.tables ? null : dossier(model), report.tables ? ofDatabase(report, model) : sections(report));
  return null;
}

/** Returns the form that opens the report as a dossier for a data protection impact assessment. */
function dossier(model) {
  const purpose = h("input", { name: "purpose", required: true, maxlength: 2000, placeholder: "tests of the web shop", size: 40 });
  const retention = h("input", { name: "retention", maxlength: 2000, placeholder: "until the end of 2027", size: 24 });
  return h("details", {}, h("summary", {}, "Dossier for a data protection impact assessment"),
    h("form.row.foot", { action: `/v1/models/${model.id}/dossier`, method: "get", target: "_blank" },
      h("label.field", {}, "Purpose of the synthetic rows", purpose), h("label.field", {}, "How long they are kept (optional)", retention), h("button", { type: "submit" }, "Open dossier")));
}

/** Returns the report of a database: figures on its keys, and the reports of its tables. */
function ofDatabase(report, model) {
  const keys = report.keys.map((key) => [`${key.table}.${key.columns.join(", ")}`, key.referred, percent(key.found, 1), figure(key.unlike, 3), figure(key.floor, 3)]);
  const leftOut = Object.entries(report.left_out).map(([name, why]) => h("p.soft", {}, `${name} is not judged: ${why}.`));
  return [keys.length ? dataTable("Keys", ["Foreign key", "Refers to", ["References that lead to a row", "number"], ["Difference of the numbers of child rows", "number"], ["Floor of the difference", "number"]], keys) : null,
    keys.length ? h("p.tiny.soft", {}, "Difference: Kolmogorov–Smirnov distance between real and synthetic tables in the number of child rows of a parent row. Floor: its value for random samples of real rows.") : null, leftOut,
    Object.entries(report.tables).map(([name, table]) => h("details", {}, h("summary", {}, `${name}: ${table.headline}`), h("div.stack", {},
      h("a", { href: `/v1/models/${model.id}/report?format=html&table=${encodeURIComponent(name)}`, target: "_blank", rel: "noopener" }, "Open as one page"), sections(table))))];
}

/** Returns all sections of a report in order. */
export function sections(report) {
  return [h("section.card.stack", { "aria-label": "Verdict" }, h("h2", {}, "Verdict"), decisions(report), h("p.soft", {}, report.judged),
    h("p.tiny.soft", {}, "Unseen rows: real rows that had no part in training. Floor: the value that a figure has if real rows take the place of the synthetic rows. Green, amber, red: nothing found, a weak signal, a strong signal.")),
    ...Object.entries(QUESTIONS).map(([name, words]) => part(name, words, report[name])),
    h("section.card.stack", { "aria-label": "Not covered" }, h("h2", {}, "What this report does not cover"), h("ul.soft", {}, report.not_covered.map((text) => h("li", {}, text))))];
}

/** Returns the verdicts on sharing the rows and the model; or the headline if there are none (older reports) or none was measured. */
function decisions({ decisions: found = [], headline }) {
  if (found.every((one) => one.verdict === "not_measured")) return [h("p.lead", {}, headline)];
  return found.map((one) => h("p.lead.row", {}, verdict(one.verdict), " ", one.sentence));
}

function part(name, [question, meaning], found) {
  return h(`section.card.stack.part.${found.verdict}`, { "aria-label": question },
    h("div.row.ends", {}, h("h2", {}, question), verdict(found.verdict)), h("p.soft", {}, meaning),
    h("p.lead", {}, found.sentence), found.advice ? h("p", {}, h("strong", {}, "Recommendation: "), found.advice) : null,
    found.worst_columns?.length ? pictures(found) : null,
    found.figures?.length ? h("details", {}, h("summary", {}, "Measures"), figures(found.figures)) : null,
    found.dependencies?.length ? h("details", {}, h("summary", {}, "Strongest dependencies"), dependencies(found.dependencies)) : null,
    found.rules?.length ? h("details", {}, h("summary", {}, "Rules"), rules(found.rules)) : null,
    found.moved_by_hard_rules?.length ? h("details", {}, h("summary", {}, "Columns whose distribution the hard rules change"), moved(found.moved_by_hard_rules)) : null,
    found.targets?.length ? h("details", {}, h("summary", {}, "Predicted columns"), targets(found.targets)) : null,
    found.attacks?.length ? h("details", {}, h("summary", {}, "Attacks"), h("p.soft", {}, PAIRS), attacks(found.attacks)) : null,
    found.attacks?.[0]?.true_positive_rates ? h("details", {}, h("summary", {}, "True positive rates, by false positive rate"), h("p.soft", {}, LOW), lowRates(found.attacks)) : null);
}

/** Returns charts of the columns that differ most, and the pairs of columns that differ most in words. */
function pictures(found) {
  const pairs = (found.pairs ?? []).slice(0, 3).map(({ columns, value, floor }) => `${columns.join(" × ")} (${percent(value, 1)}, floor ${percent(floor, 1)})`);
  return h("div.stack", {}, h("div.row.ends", {}, h("h3", {}, "Columns that differ most"), h("div.row", {}, h("span.key", {}, "real"), h("span.key.drawn", {}, "synthetic"))),
    h("div.grid", {}, found.worst_columns.map((column) => h("figure", {}, h("figcaption", {}, h("strong", {}, column.column)), twoSides({ name: column.column, ...column }, false)))),
    pairs.length ? h("p.soft", {}, `Pairs of columns that differ most: ${pairs.join("; ")}.`) : null, h("p.tiny.soft", {}, FEW));
}

/** Returns a figure as text: in percent if its unit is "share", else as a number. */
export function inUnit(value, unit) {
  return unit === "share" ? percent(value, value && Math.abs(value) < 0.001 ? 2 : 1) : figure(value);
}

function between(ends, unit) {
  return ends ? `${inUnit(ends[0], unit)} to ${inUnit(ends[1], unit)}` : "–";
}

/** Returns in words from which values on a figure is amber or red. */
function limits(one) {
  const side = one.worse === "higher" ? "more" : "less";
  return ["amber", "red"].filter((word) => one[word] !== null).map((word) => `${word}: ${inUnit(one[word], one.unit)} or ${side}`).join("; ") || "–";
}

function figures(found) {
  return dataTable("Measures", ["Measure", ["Value", "number"], ["Floor", "number"], ["Interval", "number"], "Thresholds", "Verdict", "Note"], found.map((one) => [
    one.label, inUnit(one.value, one.unit), inUnit(one.floor, one.unit), between(one.interval, one.unit), limits(one), verdict(one.verdict), one.note ?? ""]));
}

function dependencies(found) {
  return dataTable("Dependencies", ["Columns", ["Mutual information in real rows (nats)", "number"], ["In synthetic rows", "number"], ["Sampling error", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.columns.join(" × "), figure(one.real), figure(one.drawn), figure(one.error)]));
}

function rules(found) {
  return dataTable("Rules", ["Rule", ["Synthetic rows that satisfy it", "number"], ["Real rows", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.rule, percent(one.value, 1), percent(one.floor, 1)]));
}

function moved(found) {
  return dataTable("Columns whose distribution the hard rules change", ["Column", "Values", ["Without hard rules", "number"], ["With hard rules", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.column, one.cells, percent(one.before, 1), percent(one.after, 1)]));
}

function attacks(found) {
  return dataTable("Attacks", ["Attack", ["Correct", "number"], ["Interval", "number"], ["p-value", "number"], ["Detectable from", "number"], ["Rows", "number"], "Verdict"], found.map((one) => [
    one.label, percent(one.area, 1), between(one.interval_corrected, "share"), figure(one.p_holm), percent(one.area_that_would_have_been_seen, 1), count(one.rows_of_each_class), verdict(one.counts ? one.verdict : "shown")]));
}

function lowRates(found) {
  const heads = found[0].true_positive_rates.map((one) => [percent(one.false_positive_rate, 1), "number"]);
  return dataTable("True positive rates, by false positive rate", ["Attack", ...heads], found.map((one) => [one.label, ...one.true_positive_rates.map((at) =>
    at.rate === null ? `not measurable with ${count(one.rows_of_each_class)} rows` : `${percent(at.rate, 1)} (${between(at.interval, "share")})`)]));
}

function targets(found) {
  return dataTable("Predicted columns", ["Target column", "Learner", "Measure", ["Trained on synthetic rows", "number"], ["Trained on real rows", "number"], ["Predictive quality kept", "number"]],
    found.map((one) => [one.target, LEARNERS[one.learner], one.measure, figure(one.drawn), figure(one.real), percent(one.skill_kept)]));
}

const LEARNERS = { trees: "boosted trees", linear: "a linear model" };

/** Shows why the model has no report, and what can be done. */
async function none(page, error) {
  const { place, model, signal } = page;
  const { detail, job_id: jobId, is_under_way: isUnderWay } = error.document;
  const told = h("div");
  if (isUnderWay && jobId) {
    const [bar, set] = meter("Report, progress", true);
    fill(place, h("section.card.stack", {}, h("h2", {}, "The report is being made"), h("p.soft", {}, `${sentence(detail)} `, h("a", { href: `/jobs/${jobId}` }, "View the job")), bar));
    await follow(jobId, signal, (job) => set(job.progress.fraction ?? 0));
    return show(page);
  }
  const button = writing(h("button.main", { type: "button", onclick: () => again(page, button, told, model.dataset_id ? {} : { dataset_id: real.value.trim() }) }, "Make report"));
  const real = h("input", { placeholder: "ds_…", size: 34 });
  fill(place, empty("No report yet", `${sentence(detail)} A report measures fidelity, utility and privacy of the synthetic rows.`,
    model.dataset_id ? null : h("label.field", {}, "ID of the dataset that the model was trained on", real), button), told);
  return null;
}

async function again(page, button, told, body) {
  const { model, signal } = page;
  const asked = await pressed(button, told, async () => (await ask(`/v1/models/${model.id}/report`, { method: "POST", json: body, signal })).json());
  if (!asked) return;
  const [bar, set] = meter("Report, progress", true);
  fill(told, h("div.stack", {}, h("p.soft", { role: "status" }, "The report is being made. ", h("a", { href: `/jobs/${asked.job_id}` }, "View the job")), bar));
  try {
    const job = await follow(asked.job_id, signal, (now) => set(now.progress.fraction ?? 0));
    if (job.status === "succeeded") await show(page);
    else fill(told, problemBox(new Problem({ title: job.status === "failed" ? "The report failed" : "The report was cancelled", detail: job.error?.message ?? "The job shows the reason.", job_id: job.id })));
  } catch (error) {
    if (error.name !== "AbortError") fill(told, problemBox(error));
  }
}
