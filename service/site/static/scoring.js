// Scores: how likely each row of a table is, and which of its cells make it unlikely.

import { ask, parsed, rowsOf, save, tableType } from "./api.js";
import { dataTable, dropPlace, empty, problemBox, segments } from "./components.js";
import { histogram } from "./charts.js";
import { fill, h, say } from "./elements.js";
import { cellsOf, csvText } from "./rows.js";
import { figure, fixed, many, percent } from "./words.js";

const LEAST = 25;
const ODD = 0.05;  // of a row whose oddest cell is framed

const NO_SCORES = "Its scoring was switched off when it was published, and a model never says more than it does. "
  + "Whoever has the dataset and a key with the scope write can train another.";

export function show({ place, model, signal }) {
  if (model.scoring === "off") return fill(place, empty("This model gives no scores", NO_SCORES));
  const top = h("div");
  const found = h("div.stack.wide");
  const take = async (file) => {
    const words = h("p.soft", { role: "status" }, `Scoring ${file.name} …`);
    fill(top, words);
    fill(found);
    try {
      const response = await ask(`/v1/models/${model.id}/scores?format=json`, { method: "POST", body: file, headers: { "Content-Type": tableType(file.name) }, signal });
      const done = await rowsOf(response, "/v1/scores", signal, (job) => fill(words, `A job scores ${file.name}: ${job.status}, ${percent(job.progress.fraction ?? 0)}`));
      const answer = parsed(await done.text());
      if (model.kind === "database") fill(found, households(model, answer));
      else fill(found, (model.scoring === "flag" ? flagged : shown)(model, answer, await cellsOf(file, answer.scores.length)));
      say(`${answer.scores.length} rows are scored.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, problemBox(error));
    }
    fill(top, drop());
  };
  const drop = () => dropPlace({ title: "Drop rows to be scored", small: true, take,
    hint: model.kind === "database" ? "A ZIP file of the database's tables. Each row of a table without a parent is scored with all rows below it; the oddest come first."
      : model.scoring === "flag"
      ? "A table with the model's columns. Of each row this model says whether it is rare, and no more: it was published so."
      : "A table with the model's columns. Blank cells are left out of account; the oddest rows come first." });
  fill(top, drop());
  fill(place, top, found);
}

/** The rows of tables without a parent, each with all rows below it. */
function households(model, { scores }) {
  const names = ["table", "row", "log_likelihood", "standard_error", "anomaly", "odd_table", "odd_row", "odd_cell"];
  const sorted = scores.toSorted((a, b) => (a.anomaly ?? 1) - (b.anomaly ?? 1) || Number(a.log_likelihood) - Number(b.log_likelihood));
  const file = () => save(new Blob([csvText([names, ...scores.map((score) => names.map((name) => score[name]))])], { type: "text/csv" }), `${model.name}-scores.csv`);
  return h("section.card.stack", { "aria-label": "Scores" },
    h("div.row.ends", {}, h("h2", {}, `${many(scores.length, "row")} scored`), h("button.small", { type: "button", onclick: file }, "Download the scores")),
    dataTable("The oddest rows", ["Table", "Row", ["Log-likelihood", "number"], ["Anomaly", "number"], "Oddest cell"],
      sorted.slice(0, LEAST).map((one) => [one.table, one.row, figure(Number(one.log_likelihood), 4), fixed(one.anomaly, 3), one.odd_cell === null ? "" : `${one.odd_table}, row ${one.odd_row}: ${one.odd_cell}`])));
}

/** What a model says that gives flags of rare rows alone. */
function flagged(model, answer, cells) {
  const rare = answer.scores.flatMap((score, i) => (score.is_rare ? [i] : []));
  const names = cells?.length ? Object.keys(cells[0]) : [];
  const file = () => save(new Blob([csvText([["is_rare"], ...answer.scores.map((score) => [score.is_rare])])], { type: "text/csv" }), `${model.name}-flags.csv`);
  return h("section.card.stack", { "aria-label": "Rare rows" },
    h("div.row.ends", {}, h("h2", {}, `${rare.length} of ${many(answer.scores.length, "row")} rare`), h("button.small", { type: "button", onclick: file }, "Download the flags")),
    h("p.soft", {}, answer.notes[0]),
    rare.length ? dataTable("Rare rows", [["Row", "number"], ...names], rare.slice(0, LEAST).map((i) => [i + 1, ...names.map((name) => cells[i][name])]), "table.preview") : null);
}

function shown(model, answer, cells) {
  const scores = answer.scores.map((score, i) => ({ ...score, row: i + 1, cells: cells?.[i], log_likelihood: Number(score.log_likelihood),
    contributions: Object.fromEntries(Object.entries(score.contributions).map(([name, nats]) => [name, Number(nats)])) }));  // "-Infinity" is a text in JSON
  const isRanked = scores.some((score) => score.anomaly !== null);
  const oddness = (score) => (isRanked ? score.anomaly ?? 1 : score.log_likelihood);
  const sorted = scores.toSorted((a, b) => oddness(a) - oddness(b) || a.log_likelihood - b.log_likelihood);
  const impossible = sorted.filter((score) => score.log_likelihood === -Infinity).length;
  const odd = scores.filter((score) => (isRanked ? score.anomaly !== null && score.anomaly <= 0.01 : score.percentile !== null && score.percentile < 1)).length;
  const picture = h("div");
  const draw = (member) => fill(picture, histogram(scores.map((score) => score[member]).filter((value) => value !== null), member.replace("_", " ")));
  draw("log_likelihood");
  const terms = Object.keys(scores[0]?.contributions ?? {});
  const isColumn = new Set(model.schema.columns.map((column) => column.name));
  const names = terms.filter((name) => isColumn.has(name));  // the others are of the constraints
  const lacking = cells?.length ? names.filter((name) => !(name in cells[0])) : [];
  const file = () => save(new Blob([csvText([["log_likelihood", "standard_error", "percentile", "anomaly", "odd_cell", ...terms],
    ...scores.map((score) => [score.log_likelihood, score.standard_error, score.percentile, score.anomaly, score.odd_cell, ...terms.map((name) => score.contributions[name])])])], { type: "text/csv" }), `${model.name}-scores.csv`);
  return [
    h("section.card.stack", { "aria-label": "Scores" }, h("div.row.ends", {}, h("h2", {}, `${many(scores.length, "row")} scored`),
      segments("What is shown", [["log_likelihood", "Log-likelihood"], ["percentile", "Percentile"], ...(isRanked ? [["anomaly", "Anomaly"]] : [])], "log_likelihood", draw)), picture,
    h("div.row.ends", {}, h("p.soft", {}, isRanked ? `${many(odd, "row")} as odd as one in a hundred rows of training, or odder (anomaly ≤ 0.01).` : `${many(odd, "row")} less likely than 99 % of held-out rows of training.`),
      h("button.small", { type: "button", onclick: file }, "Download the scores")),
    lacking.length ? h("p.note", {}, `The table has no column ${lacking.join(", ")}: as a blank cell would be, ${lacking.length === 1 ? "it is" : "they are"} left out of account in every row.`) : null,
    impossible ? h("p.note", {}, `${many(impossible, "row")} ${impossible === 1 ? "is" : "are"} impossible (−∞), and not in the picture: ${neverDrawn(scores, names, terms.find((name) => !isColumn.has(name)))}`) : null),
    h("section.stack", { "aria-label": "The oddest rows" }, h("h2", {}, "The oddest rows"),
      h("p.soft", {}, `${isRanked ? "In rows with an anomaly of 0.05 or less the oddest cell is framed. " : ""}The redder a cell, the more nats it costs its row beyond what its column costs in the middle of these rows.`),
      leastLikely(sorted.slice(0, LEAST), names, usualCosts(scores, names), Boolean(cells))),
    h("details", {}, h("summary", {}, "What these numbers mean"), h("ul.tiny.soft", {}, [answer.measure, ...answer.notes].map((note) => h("li", {}, note)))),
  ];
}

/** Why rows are impossible: cells that the model never draws, such as a level that training had not, or `constraints`, the name of their term. */
function neverDrawn(scores, names, constraints) {
  const impossibleIn = (name) => scores.filter((score) => score.contributions[name] === -Infinity).length;
  const counts = names.map((name) => [name, impossibleIn(name)]).filter(([, n]) => n);
  const broken = constraints ? impossibleIn(constraints) : 0;
  const why = [
    counts.length ? `the model never draws such a cell in ${counts.map(([name, n]) => `${name} (${many(n, "row")})`).join(", ")}` : null,
    broken ? `${many(broken, "row")} ${broken === 1 ? "breaks" : "break"} a constraint` : null,
  ].filter(Boolean);
  return `${why.join("; ") || "they break a rule"}.`;
}

/** By column the median of its contributions: a date with many values always costs more than a yes or no. */
function usualCosts(scores, names) {
  return new Map(names.map((name) => {
    const sorted = scores.map((score) => score.contributions[name]).sort((a, b) => a - b);
    return [name, sorted[sorted.length >> 1]];
  }));
}

function leastLikely(scores, names, usual, hasCells) {
  const lines = scores.map((score) => h("tr", {}, h("th.number", { scope: "row" }, score.row), h("td.number", {}, fixed(score.log_likelihood, 2)),
    h("td.number", {}, fixed(score.percentile, 1)), h("td.number", {}, score.anomaly === null ? "" : shownP(score.anomaly)),
    names.map((name) => cell(name, score, usual.get(name)))));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "The oddest rows" }, h("table.preview", {},
    h("thead", {}, h("tr", {}, ["Row", "Log-likelihood", "Percentile", "Anomaly"].map((text) => h("th.number", { scope: "col" }, text)), names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, lines)), hasCells ? null : h("p.tiny.soft.inset", {}, "The cells hold the nats of each column: this page reads the values of CSV files only."));
}

/** A p-value in few digits. */
function shownP(value) {
  return value < 0.0001 ? "< 0.0001" : value.toPrecision(2);
}

function cell(name, score, usual) {
  const nats = score.contributions[name];
  const value = score.cells ? score.cells[name] : figure(nats);
  const element = h(name === score.odd_cell && score.anomaly <= ODD ? "td.odd" : "td", { title: `${name}: ${figure(nats, 4)} nats` }, value === undefined || value === "" ? h("span.blank", {}, "blank") : value);
  const cost = Math.min(1, Math.max(0, (usual - nats - 0.5) / 6));
  if (cost > 0) element.style.background = `rgb(var(--warm) / ${(0.08 + 0.42 * cost).toFixed(2)})`;
  return element;
}
