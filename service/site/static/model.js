// The page of a model: its summary, and a section for each use.

import { read } from "./api.js";
import { curves } from "./charts.js";
import { dataTable, deleteButton, empty, head, problemBox, renameButton, status, verdict, when } from "./components.js";
import { fill, h, say } from "./elements.js";
import { bytes, count, duration, figure, LOG_LIKELIHOOD, percent, spoken, trainingRows } from "./words.js";

const SECTIONS = [
  ["", "Summary", async () => ({ show: summary })],
  ["compare", "Real vs synthetic", () => import("./compare.js")],
  ["dependencies", "Dependencies", () => import("./maps.js")],
  ["report", "Report", () => import("./report.js")],
  ["sample", "Generate rows", () => import("./sampling.js")],
  ["score", "Score rows", () => import("./scoring.js")],
  ["impute", "Impute missing values", () => import("./imputing.js")],
];

const OF_DATABASE = [
  ["", "Summary", () => import("./plans.js")],
  ["sample", "Generate tables", () => import("./drawing.js")],
  ["report", "Report", () => import("./report.js")],
  ["scores", "Score rows", () => import("./scoring.js")],
  ["impute", "Impute missing values", () => import("./imputing.js")],
];

export async function show({ place, words: [id, word = ""], signal, go, reveal }) {
  const model = await read(`/v1/models/${id}`, { signal });
  const section = sectionsOf(model).find(([name]) => name === word);
  const content = h("div.stack.wide");
  fill(place, heading(model, go), model.status === "ready" ? tabs(model, word) : null, content);
  if (model.status !== "ready") return fill(content, notReady(model));
  if (!section) return fill(content, empty("Page not found", `A model has no section “${word}”.`, h("a.button", { href: `/models/${id}` }, "Go to the summary")));
  reveal();
  place.querySelector(".tabs [aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
  const { show: showSection } = await section[2]();
  try {
    return await showSection({ place: content, model, signal, go });
  } catch (error) {
    if (error.status !== 403) throw error;
    return fill(content, problemBox(error));  // below the sections, which remain usable
  }
}

function heading(model, go) {
  const told = h("div");
  const text = "This also deletes its results and its report, and cannot be undone. The dataset is kept.";
  const button = deleteButton(`/v1/models/${model.id}`, told, `Delete the model “${model.name}”?`, text, "Delete model", () => {
    say("The model was deleted.");
    go("/models");
  });
  const download = h("a.button", { href: `/v1/models/${model.id}/artifact`, download: "",
    title: "The file of the model, for the Python library, the command line or another service." }, `Download model (${bytes(model.artifact_bytes)})`);
  const minimal = h("a.button", { href: `/v1/models/${model.id}/artifact?minimal=true`, download: "",
    title: "A copy for sharing. It leaves out the scores of held-out rows, the dependency map and checksum of the training table, its numbers of rows and values, and most of the training record." }, "Download minimal model");
  const crumbs = [["Models", "/models"]];
  if (model.dataset_id) crumbs.push(["Dataset", `/datasets/${model.dataset_id}`]);
  return h("div.stack", {}, head({ crumbs, title: model.name,
    facts: [status(model.status), when(model.created_at), h("code", {}, model.id)],
    actions: [...(model.status === "ready" ? [download, model.kind === "database" ? null : minimal] : []),
      renameButton(`/v1/models/${model.id}`, model.name, told, () => go(location.pathname, { replace: true })), button] }), told);
}

function sectionsOf(model) {
  return model.kind === "database" ? OF_DATABASE : SECTIONS;
}

function tabs(model, word) {
  return h("nav.tabs", { "aria-label": "Sections of the model" }, sectionsOf(model).map(([name, text]) =>
    h("a", { href: `/models/${model.id}${name ? `/${name}` : ""}`, "aria-current": name === word ? "page" : null }, text)));
}

function notReady(model) {
  const job = h("a.button.main", { href: `/jobs/${model.job_id}` }, "View training");
  if (model.status === "training") return empty("The model is being trained", "This page shows the model when training has finished.", job);
  return empty(model.status === "failed" ? "The training failed" : "The training was cancelled", "The job shows the reason. You can try again there.", job);
}

const SCORING = { full: "on", flag: "only whether a row is rare", off: "off" };

/** Returns the first section: quality, training and content of the model. */
function summary({ place, model }) {
  const record = model.record ?? {};
  const facts = [
    ["Training rows", trainingRows(record)], ["Held-out rows", count(record.held_out_rows)], ["Columns", count(model.schema?.columns.length)],
    ["Held-out log-likelihood", figure(model.bound_held_out, 4)], ["Preset", record.preset ?? "–"],
    ["Training steps", count(record.steps)], ["Training time", duration(record.seconds)],
    ["Scoring", SCORING[model.scoring]],
  ];
  fill(place,
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p.tiny.soft", {}, LOG_LIKELIHOOD),
    verdictCards(model),
    h("div.grid.two", {}, rulesKept(record), hardRulesKept(record)),
    record.history?.length > 1 ? h("section.card.stack", { "aria-label": "Training" }, h("div.row.ends", {}, h("h2", {}, "Log-likelihood during training"),
      h("div.row", {}, h("span.key", {}, "training rows"), h("span.key.drawn", {}, "held-out rows"))),
    curves([line(record.history, "bound_train", "training", "train"), line(record.history, "bound_held_out", "held out", "held")])) : null,
    h("details", {}, h("summary", {}, "Training settings"), h("pre.card.scrolls", { tabindex: 0 }, JSON.stringify({ ...model.training, ...record.settings }, null, 2))));
}

function line(history, member, name, css) {
  return { name, css, points: history.filter((one) => Number.isFinite(one[member])).map((one) => [one.step, one[member]]) };
}

function verdictCards(model) {
  const found = model.report;
  if (!found) return h("p.note.calm", {}, "There is no report yet. ", h("a", { href: `/models/${model.id}/report` }, "View its progress or request one"), ".");
  return h("section.stack", { "aria-label": "Report" }, h("div.row.ends", {}, h("h2", {}, "Report"), h("a", { href: `/models/${model.id}/report` }, "View full report")),
    found.decisions.rows ? h("div.row", {}, "Sharing the synthetic rows:", verdict(found.decisions.rows), found.decisions.model ? ["Sharing the model:", verdict(found.decisions.model)] : null) : null,
    h("div.grid.four", {}, Object.entries(found.verdicts).map(([name, word]) => h("div.card.stack", {},
      h("div.row.ends", {}, h("h3", {}, spoken(name)), verdict(word)), h("p.soft", {}, found.sentences[name])))));
}

function rulesKept(record) {
  if (!record.rules?.length) return null;
  return h("section.card.stack", { "aria-label": "Rules" }, h("h3", {}, "Rules"), h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Rules" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Share of rows that satisfy the rule", "Real rows", "Synthetic rows"].map((text, i) => h(i ? "th.number" : "th", { scope: "col" }, text)))),
    h("tbody", {}, record.rules.map((rule) => h("tr", {}, h("td", {}, rule.formula), h("td.number", {}, percent(rule.share, 1)), h("td.number", {}, percent(rule.share_of_drawn, 1))))))));
}

function hardRulesKept(record) {
  const found = record.hard_rule_acceptance;
  if (!found) return null;
  return h("section.card.stack", { "aria-label": "Hard rules" }, h("h3", {}, "Hard rules"),
    h("p", {}, `${percent(found.share, 1)} of the rows that the model proposes satisfy the ${found.rules?.length === 1 ? "hard rule" : `${found.rules?.length} hard rules`} (acceptance). The others are replaced, so that every generated row satisfies them.`),
    found.moved?.length ? dataTable("Columns whose distribution the hard rules change", ["Column", "Values", ["Without hard rules", "number"], ["With hard rules", "number"]],
      found.moved.map((one) => [one.column, one.cells, percent(one.before, 1), percent(one.after, 1)])) : null);
}
