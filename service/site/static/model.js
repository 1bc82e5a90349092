// A model: what it is, and a section for each thing that it can do.

import { ask, read } from "./api.js";
import { curves } from "./charts.js";
import { confirmed, dataTable, empty, head, pressed, renameButton, status, verdict, when } from "./components.js";
import { fill, h, say } from "./elements.js";
import { bytes, count, duration, figure, many, percent, spoken } from "./words.js";

const SECTIONS = [
  ["", "Summary", async () => ({ show: summary })],
  ["compare", "Real and drawn", () => import("./compare.js")],
  ["dependencies", "Dependencies", () => import("./maps.js")],
  ["report", "Report", () => import("./report.js")],
  ["sample", "Draw rows", () => import("./sampling.js")],
  ["score", "Score rows", () => import("./scoring.js")],
  ["impute", "Fill blanks", () => import("./imputing.js")],
];

const OF_DATABASE = [
  ["", "Summary", () => import("./plans.js")],
  ["sample", "Draw tables", () => import("./drawing.js")],
  ["report", "Report", () => import("./report.js")],
  ["scores", "Scores", () => import("./scoring.js")],
];

export async function show({ place, words: [id, word = ""], signal, go, reveal }) {
  const model = await read(`/v1/models/${id}`, { signal });
  const section = sectionsOf(model).find(([name]) => name === word);
  const content = h("div.stack.wide");
  fill(place, heading(model, go), model.status === "ready" ? tabs(model, word) : null, content);
  if (model.status !== "ready") return fill(content, notReady(model));
  if (!section) return fill(content, empty("There is no such section", `A model has no “${word}”.`, h("a.button", { href: `/models/${id}` }, "To its summary")));
  reveal();
  place.querySelector(".tabs [aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
  const { show: showSection } = await section[2]();
  return showSection({ place: content, model, signal, go });
}

function heading(model, go) {
  const told = h("div");
  const remove = async () => {
    const text = "It goes with its samples, scores and report. The dataset stays. This can not be undone.";
    if (!(await confirmed(`Delete the model “${model.name}”?`, text, "Delete the model"))) return;
    await pressed(button, told, async () => {
      await ask(`/v1/models/${model.id}`, { method: "DELETE" });
      say("The model is deleted.");
      go("/models");
    });
  };
  const button = h("button.danger", { type: "button", onclick: remove }, "Delete");
  const download = h("a.button", { href: `/v1/models/${model.id}/artifact`, download: "" }, `Take it away, ${bytes(model.artifact_bytes)}`);
  const minimal = h("a.button", { href: `/v1/models/${model.id}/artifact?minimal=true`, download: "",
    title: "Without what is known of the training table beside the model: to hand on" }, "Minimal file");
  const crumbs = [["Models", "/models"]];
  if (model.dataset_id) crumbs.push(["its dataset", `/datasets/${model.dataset_id}`]);
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
  const job = h("a.button.main", { href: `/jobs/${model.job_id}` }, "See its training");
  if (model.status === "training") return empty("It is in training", "Its page opens when the training is over.", job);
  return empty(`Its training has ${model.status === "failed" ? "failed" : "been cancelled"}`, "The job says why, and can be tried again.", job);
}

const SAYS = { full: "their scores", flag: "whether they are rare", off: "nothing" };

/** The first section: how good it is, how it came to be, what it knows. */
function summary({ place, model }) {
  const record = model.record ?? {};
  const facts = [
    ["Rows learned from", count(record.rows)], ["Columns", count(model.schema?.columns.length)],
    ["Held-out bound", `${figure(model.bound_held_out, 4)} nats`], ["Preset", record.preset ?? "–"],
    ["Steps", count(record.steps)], ["Training took", duration(record.seconds)],
    ["Says of rows", SAYS[model.scoring]],
  ];
  fill(place,
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    verdictCards(model),
    h("div.grid.two", {}, rulesKept(record), constraintsKept(record)),
    record.history?.length > 1 ? h("section.card.stack", { "aria-label": "Training" }, h("div.row.ends", {}, h("h2", {}, "Training"),
      h("div.row", {}, h("span.key", {}, "rows of training"), h("span.key.drawn", {}, "held-out rows"))),
    curves([line(record.history, "bound_train", "training", "train"), line(record.history, "bound_held_out", "held out", "held")])) : null,
    h("details", {}, h("summary", {}, "Settings of the training"), h("pre.card.scrolls", { tabindex: 0 }, JSON.stringify({ ...model.training, ...record.settings }, null, 2))));
}

function line(history, member, name, css) {
  return { name, css, points: history.filter((one) => Number.isFinite(one[member])).map((one) => [one.step, one[member]]) };
}

const QUESTIONS = { fidelity: "Is it good?", utility: "Is it useful?", likelihood: "Has it learned the table?", privacy: "Is it safe?" };

function verdictCards(model) {
  const found = model.report;
  if (!found) return h("p.note.calm", {}, "There is no report yet. ", h("a", { href: `/models/${model.id}/report` }, "See whether one is on its way, or ask for one"), ".");
  return h("section.stack", { "aria-label": "Report" }, h("div.row.ends", {}, h("h2", {}, "Report"), h("a", { href: `/models/${model.id}/report` }, "Read all of it")),
    found.decisions.rows ? h("div.row", {}, "To hand on the rows:", verdict(found.decisions.rows), found.decisions.model ? ["the model:", verdict(found.decisions.model)] : null) : null,
    h("div.grid.four", {}, Object.entries(found.verdicts).map(([name, word]) => h("div.card.stack", {},
      h("div.row.ends", {}, h("h3", {}, QUESTIONS[name] ?? spoken(name)), verdict(word)), h("p.soft", {}, found.sentences[name])))));
}

function rulesKept(record) {
  if (!record.rules?.length) return null;
  return h("section.card.stack", { "aria-label": "Rules" }, h("h3", {}, "Rules that it keeps"), h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Rules" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Rule", "of the table", "of drawn rows"].map((text, i) => h(i ? "th.number" : "th", { scope: "col" }, text)))),
    h("tbody", {}, record.rules.map((rule) => h("tr", {}, h("td", {}, rule.formula), h("td.number", {}, percent(rule.share, 1)), h("td.number", {}, percent(rule.share_of_drawn, 1))))))));
}

function constraintsKept(record) {
  const found = record.constraint_acceptance;
  if (!found) return null;
  return h("section.card.stack", { "aria-label": "Constraints" }, h("h3", {}, "Constraints"),
    h("p", {}, `${percent(found.share, 1)} of the rows that the network draws satisfy all ${many(found.constraints?.length ?? 0, "constraint")}; the others are drawn anew, so every row that you get does.`),
    found.moved?.length ? dataTable("Columns that the constraints move", ["Column", "Cells", ["Of all rows", "number"], ["Of those that satisfy them", "number"]],
      found.moved.map((one) => [one.column, one.cells, percent(one.before, 1), percent(one.after, 1)])) : null);
}
