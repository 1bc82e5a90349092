// The report: four questions, each with a verdict, a sentence, what to do, and the figures behind it.

import { ask, follow, Problem, read } from "./api.js";
import { twoSides } from "./charts.js";
import { dataTable, empty, meter, pressed, problemBox, verdict } from "./components.js";
import { fill, h } from "./elements.js";
import { figure, percent } from "./words.js";

const QUESTIONS = {
  fidelity: ["Is it good?", "Do the drawn rows look like real ones?"],
  utility: ["Is it useful?", "Can one learn from drawn rows what one learns from real ones?"],
  likelihood: ["Does the model know the table?", "How well it describes rows that it has not seen."],
  privacy: ["Is it safe?", "Do attacks tell which rows the model has learned from?"],
};

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
  Object.entries(QUESTIONS).filter(([name]) => report[name]).map(([name, words]) => part(name, words, report[name])),
  report.not_covered?.length ? h("section.card.stack", { "aria-label": "Not covered" }, h("h3", {}, "What this report does not cover"), h("ul.soft", {}, report.not_covered.map((text) => h("li", {}, text)))) : null);
  return null;
}

function part(name, [question, meaning], found) {
  return h(`section.card.stack.part.${found.verdict}`, { "aria-label": question },
    h("div.row.ends", {}, h("h2", {}, question), verdict(found.verdict)), h("p.soft", {}, meaning),
    h("p.lead", {}, found.sentence), found.advice ? h("p", {}, h("strong", {}, "What to do: "), found.advice) : null,
    found.worst_columns?.length ? h("div.stack", {}, h("div.row.ends", {}, h("h3", {}, "The columns that differ most"), h("div.row", {}, h("span.key", {}, "real"), h("span.key.drawn", {}, "drawn"))),
      h("div.grid", {}, found.worst_columns.map((column) => h("figure", {}, h("figcaption", {}, h("strong", {}, column.column)), twoSides({ name: column.column, ...column }, false))))) : null,
    found.figures?.length ? h("details", {}, h("summary", {}, "The figures"), figures(found.figures)) : null,
    found.targets?.length ? h("details", {}, h("summary", {}, "Every column that was predicted"), targets(found.targets)) : null);
}

function figures(found) {
  return dataTable("Figures", ["Figure", ["Value", "number"], ["Floor", "number"], ["Interval", "number"], "Verdict", "Note"], found.map((one) => [
    one.label, figure(one.value), figure(one.floor), one.interval ? `${figure(one.interval[0])} to ${figure(one.interval[1])}` : "–", verdict(one.verdict), one.note ?? ""]));
}

function targets(found) {
  return dataTable("Predicted columns", ["Column", "Learner", "Measure", ["From drawn rows", "number"], ["From real rows", "number"], ["Skill kept", "number"]],
    found.map((one) => [one.target, one.learner, one.measure, figure(one.drawn), figure(one.real), percent(one.skill_kept)]));
}

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
  fill(place, empty("There is no report", `${detail.replace(/; POST.*$/, "")}. A report tells whether the rows are good, useful and safe.`,
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
