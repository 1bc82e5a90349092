// The report: four questions, each with a verdict, a sentence, what to do, and the figures behind it.

import { ask, follow, Problem, read } from "./api.js";
import { twoSides } from "./charts.js";
import { dataTable, empty, meter, pressed, problemBox, verdict } from "./components.js";
import { fill, h } from "./elements.js";
import { count, figure, percent } from "./words.js";

const QUESTIONS = {
  fidelity: ["Is it good?", "Do the drawn rows look like real ones?"],
  utility: ["Is it useful?", "Can one learn from drawn rows what one learns from real ones?"],
  likelihood: ["Has the model learned the table, and not its rows by heart?", "Does it describe rows that it has not seen as well as those that it learned from?"],
  privacy: ["Is it safe?", "Does anything tell which real rows the model has learned from?"],
};
const FEW = "What fewer than five real rows have is not told: they have no bar, and their words are among “all others”.";
const PAIRS = "Each attack is shown a row of training and an unseen row, and says which is which. Who guesses is right in 50 % of such pairs, and who knows in 100 %. A leak below “noticed from” would most likely have gone unnoticed. Isolated rows are the tenth that is least like others.";
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
  const button = h("button", { type: "button", onclick: () => again({ place, model, signal }, button, told, {}) }, "Make it again");
  fill(place, h("div.row.ends", {}, h("p.soft", {}, "Each figure stands beside its floor: what as many other real rows would show."),
    h("div.row", {}, h("a.button", { href: `/v1/models/${model.id}/report?format=html`, target: "_blank", rel: "noopener" }, "Open as one page"), button)), told,
  report.tables ? ofDatabase(report, model) : sections(report));
  return null;
}

/** The report of a database: its keys, and each table beside its relatives. */
function ofDatabase(report, model) {
  const keys = report.keys.map((key) => [`${key.table}.${key.columns.join(", ")}`, key.referred, percent(key.found, 1), figure(key.unlike, 3), figure(key.floor, 3)]);
  const leftOut = Object.entries(report.left_out).map(([name, why]) => h("p.soft", {}, `${name} is not judged: ${why}.`));
  return [keys.length ? dataTable("Keys", ["Reference", "To", ["Found", "number"], ["Unlike", "number"], ["Its floor", "number"]], keys) : null, leftOut,
    Object.entries(report.tables).map(([name, table]) => h("details", {}, h("summary", {}, `${name}: ${table.headline}`), h("div.stack", {},
      h("a", { href: `/v1/models/${model.id}/report?format=html&table=${encodeURIComponent(name)}`, target: "_blank", rel: "noopener" }, "Open as one page"), sections(table))))];
}

/** What a report's document says, top to bottom. */
export function sections(report) {
  return [...decisions(report), h("p.soft", {}, report.judged),
    ...Object.entries(QUESTIONS).map(([name, words]) => part(name, words, report[name])),
    h("section.card.stack", { "aria-label": "Not covered" }, h("h3", {}, "What this report does not cover"), h("ul.soft", {}, report.not_covered.map((text) => h("li", {}, text))))];
}

/** What to do with the rows, and with the model; of an older report, or where nothing was measured, a line for both. */
function decisions({ decisions: found = [], headline }) {
  if (found.every((one) => one.verdict === "not_measured")) return [h("p.lead", {}, headline)];
  return found.map((one) => h("p.lead.row", {}, verdict(one.verdict), " ", one.sentence));
}

function part(name, [question, meaning], found) {
  return h(`section.card.stack.part.${found.verdict}`, { "aria-label": question },
    h("div.row.ends", {}, h("h2", {}, question), verdict(found.verdict)), h("p.soft", {}, meaning),
    h("p.lead", {}, found.sentence), found.advice ? h("p", {}, h("strong", {}, "What to do: "), found.advice) : null,
    found.worst_columns?.length ? pictures(found) : null,
    found.figures?.length ? h("details", {}, h("summary", {}, "The figures"), figures(found.figures)) : null,
    found.dependencies?.length ? h("details", {}, h("summary", {}, "The strongest dependencies"), dependencies(found.dependencies)) : null,
    found.rules?.length ? h("details", {}, h("summary", {}, "The rules"), rules(found.rules)) : null,
    found.moved_by_constraints?.length ? h("details", {}, h("summary", {}, "Columns that the constraints move"), moved(found.moved_by_constraints)) : null,
    found.targets?.length ? h("details", {}, h("summary", {}, "Every column that was predicted"), targets(found.targets)) : null,
    found.attacks?.length ? h("details", {}, h("summary", {}, "Every attack"), h("p.soft", {}, PAIRS), attacks(found.attacks)) : null);
}

/** The columns that differ most, as pictures; the pairs, in words. */
function pictures(found) {
  const pairs = (found.pairs ?? []).slice(0, 3).map(({ columns, value, floor }) => `${columns.join(" × ")} (${percent(value, 1)}, floor ${percent(floor, 1)})`);
  return h("div.stack", {}, h("div.row.ends", {}, h("h3", {}, "The columns that differ most"), h("div.row", {}, h("span.key", {}, "real"), h("span.key.drawn", {}, "drawn"))),
    h("div.grid", {}, found.worst_columns.map((column) => h("figure", {}, h("figcaption", {}, h("strong", {}, column.column)), twoSides({ name: column.column, ...column }, false)))),
    pairs.length ? h("p.soft", {}, `The pairs of columns that differ most: ${pairs.join("; ")}.`) : null, h("p.tiny.soft", {}, FEW));
}

/** A figure in its own unit: a share or an area in percent, all else as a number. */
function inUnit(value, unit) {
  return unit === "share" ? percent(value, value && Math.abs(value) < 0.001 ? 2 : 1) : figure(value);
}

function between(ends, unit) {
  return ends ? `${inUnit(ends[0], unit)} to ${inUnit(ends[1], unit)}` : "–";
}

/** From which value on a figure is amber, and red. */
function limits(one) {
  const side = one.worse === "higher" ? "more" : "less";
  return ["amber", "red"].filter((word) => one[word] !== null).map((word) => `${word}: ${inUnit(one[word], one.unit)} or ${side}`).join("; ") || "–";
}

function figures(found) {
  return dataTable("Figures", ["Figure", ["Value", "number"], ["Floor", "number"], ["Interval", "number"], "Limits", "Verdict", "Note"], found.map((one) => [
    one.label, inUnit(one.value, one.unit), inUnit(one.floor, one.unit), between(one.interval, one.unit), limits(one), verdict(one.verdict), one.note ?? ""]));
}

function dependencies(found) {
  return dataTable("Dependencies", ["Columns", ["Nats in real rows", "number"], ["In drawn rows", "number"], ["Sampling error", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.columns.join(" × "), figure(one.real), figure(one.drawn), figure(one.error)]));
}

function rules(found) {
  return dataTable("Rules", ["Rule", ["Drawn rows that keep it", "number"], ["Real rows", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.rule, percent(one.value, 1), percent(one.floor, 1)]));
}

function moved(found) {
  return dataTable("Columns that the constraints move", ["Column", "Cells", ["Of all drawn rows", "number"], ["Of those that satisfy them", "number"]],
    found.slice(0, MOST_LINES).map((one) => [one.column, one.cells, percent(one.before, 1), percent(one.after, 1)]));
}

function attacks(found) {
  return dataTable("Attacks", ["Attack", ["Right in", "number"], ["Interval", "number"], ["p", "number"], ["Noticed from", "number"], ["Rows", "number"], "Verdict"], found.map((one) => [
    one.label, percent(one.area, 1), between(one.interval_corrected, "share"), figure(one.p_holm), percent(one.area_that_would_have_been_seen, 1), count(one.rows_of_each_class), verdict(one.counts ? one.verdict : "shown")]));
}

function targets(found) {
  return dataTable("Predicted columns", ["Column", "Learner", "Measure", ["From drawn rows", "number"], ["From real rows", "number"], ["Skill kept", "number"]],
    found.map((one) => [one.target, LEARNERS[one.learner], one.measure, figure(one.drawn), figure(one.real), percent(one.skill_kept)]));
}

const LEARNERS = { trees: "boosted trees", linear: "a linear model" };

/** No report: why, and what can be done. */
async function none(page, error) {
  const { place, model, signal } = page;
  const { detail, job_id: jobId, is_under_way: isUnderWay } = error.document;
  const told = h("div");
  if (isUnderWay && jobId) {
    const [bar, set] = meter("Report, progress", true);
    fill(place, h("section.card.stack", {}, h("h2", {}, "The report is on its way"), h("p.soft", {}, `${detail}. `, h("a", { href: `/jobs/${jobId}` }, "See the job")), bar));
    await follow(jobId, signal, (job) => set(job.progress.fraction ?? 0));
    return show(page);
  }
  const button = h("button.main", { type: "button", onclick: () => again(page, button, told, model.dataset_id ? {} : { dataset_id: real.value.trim() }) }, "Make a report");
  const real = h("input", { placeholder: "ds_…", size: 34 });
  fill(place, empty("There is no report", `${detail}. A report tells whether the rows are good, useful and safe.`,
    model.dataset_id ? null : h("label.field", {}, "Id of the dataset that it was trained on", real), button), told);
  return null;
}

async function again(page, button, told, body) {
  const { model, signal } = page;
  const asked = await pressed(button, told, async () => (await ask(`/v1/models/${model.id}/report`, { method: "POST", json: body, signal })).json());
  if (!asked) return;
  const [bar, set] = meter("Report, progress", true);
  fill(told, h("div.stack", {}, h("p.soft", { role: "status" }, "The report is being made. ", h("a", { href: `/jobs/${asked.job_id}` }, "See the job")), bar));
  try {
    const job = await follow(asked.job_id, signal, (now) => set(now.progress.fraction ?? 0));
    if (job.status === "succeeded") await show(page);
    else fill(told, problemBox(new Problem({ title: `The report has ${job.status}`, detail: job.error?.message ?? "The job has more.", job_id: job.id })));
  } catch (error) {
    if (error.name !== "AbortError") fill(told, problemBox(error));
  }
}
