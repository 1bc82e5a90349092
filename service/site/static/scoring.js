// The section of a model's page that scores rows: how likely each is, and which of its cells make it unlikely.

import { ask, bodyOf, parsed, rowsOf, save, tableType } from "./api.js";
import { dataTable, dropPlace, empty, encodingField, problemBox, segments } from "./components.js";
import { histogram } from "./charts.js";
import { fill, h, say } from "./elements.js";
import { cellsOf, csvText } from "./rows.js";
import { capital, figure, fixed, many, percent } from "./words.js";

const LEAST = 25;
const ODD = 0.05;  // p-value up to which the most anomalous cell of a row is framed

const MEASURES = "Log-likelihood: in nats; higher is more likely. Percentile: the share of held-out rows that are less likely, in percent. Anomaly p-value: small if a cell is unlikely given other cells of its row.";
const NO_SCORES = "Scoring was turned off for this model and cannot be turned on again. "
  + "Train another model on the dataset to get scores; this requires a key with the “write” scope.";

export function show({ place, model, signal }) {
  if (model.scoring === "off") return fill(place, empty("Scoring is off for this model", NO_SCORES));
  const top = h("div.stack");
  const found = h("div.stack.wide");
  const encoding = encodingField();
  const take = async (file) => {
    const words = h("p.soft", { role: "status" }, `Scoring ${file.name} …`);
    fill(top, words);
    fill(found);
    const said = encoding.query();
    try {
      const response = await ask(`/v1/models/${model.id}/scores?${new URLSearchParams({ format: "json", ...said })}`, { method: "POST", body: file, headers: { "Content-Type": tableType(file.name) }, signal });
      const done = await rowsOf(response, "/v1/scores", signal, (job) => fill(words, `Scoring ${file.name} in a job: ${job.status}, ${percent(job.progress.fraction ?? 0)}`));
      const answer = parsed(await bodyOf(done));
      if (model.kind === "database") fill(found, households(model, answer));
      else fill(found, (model.scoring === "flag" ? flagged : shown)(model, answer, await cellsOf(file, answer.scores.length, said.encoding)));
      say(`${answer.scores.length} rows scored.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, problemBox(error));
    }
    fill(top, drop(), encoding.element);
  };
  const drop = () => dropPlace({ title: "Upload rows to score", small: true, take,
    hint: model.kind === "database" ? "A ZIP file of the database's tables. Each row of a table without a parent is scored with all rows that refer to it, directly or indirectly; the most anomalous come first."
      : model.scoring === "flag"
      ? "A table with the model's columns. This model reports only whether each row is rare."
      : "A table with the model's columns. The score of a row is its log-likelihood: how likely the row is under the model, in nats. Missing cells count neither for nor against it." });
  fill(top, drop(), encoding.element);
  fill(place, top, found);
}

/** Returns the scores of a database's rows without a parent, each together with all rows below it. */
function households(model, { scores }) {
  const names = ["table", "row", "log_likelihood", "standard_error", "anomaly", "odd_table", "odd_row", "odd_cell"];
  const sorted = scores.toSorted((a, b) => (a.anomaly ?? 1) - (b.anomaly ?? 1) || Number(a.log_likelihood) - Number(b.log_likelihood));
  const file = () => save(new Blob([csvText([names, ...scores.map((score) => names.map((name) => score[name]))])], { type: "text/csv" }), `${model.name}-scores.csv`);
  return h("section.card.stack", { "aria-label": "Scores" },
    h("div.row.ends", {}, h("h2", {}, `${many(scores.length, "row")} scored`), h("button.small", { type: "button", onclick: file }, "Download scores")),
    dataTable("Most anomalous rows", ["Table", "Row", ["Log-likelihood", "number"], ["Anomaly", "number"], "Most anomalous cell"],
      sorted.slice(0, LEAST).map((one) => [one.table, one.row, figure(Number(one.log_likelihood), 4), fixed(one.anomaly, 3), one.odd_cell === null ? "" : `${one.odd_table}, row ${one.odd_row}: ${one.odd_cell}`])));
}

/** Returns the rare rows, for a model that only reports whether a row is rare. */
function flagged(model, answer, cells) {
  const rare = answer.scores.flatMap((score, i) => (score.is_rare ? [i] : []));
  const names = cells?.length ? Object.keys(cells[0]) : [];
  const file = () => save(new Blob([csvText([["is_rare"], ...answer.scores.map((score) => [score.is_rare])])], { type: "text/csv" }), `${model.name}-flags.csv`);
  return h("section.card.stack", { "aria-label": "Rare rows" },
    h("div.row.ends", {}, h("h2", {}, `${rare.length} of ${many(answer.scores.length, "row")} are rare`), h("button.small", { type: "button", onclick: file }, "Download flags")),
    h("p.soft", {}, capital(answer.notes[0])),
    rare.length ? dataTable("Rare rows", [["Row", "number"], ...names], rare.slice(0, LEAST).map((i) => [i + 1, ...names.map((name) => cells[i][name])]), "table.preview") : null);
}

function shown(model, answer, cells) {
  const scores = answer.scores.map((score, i) => ({ ...score, row: i + 1, cells: cells?.[i], log_likelihood: Number(score.log_likelihood),
    contributions: Object.fromEntries(Object.entries(score.contributions).map(([name, nats]) => [name, Number(nats)])) }));  // JSON contains "-Infinity" as text
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
  const names = terms.filter((name) => isColumn.has(name));  // the term that is no column is that of the hard rules
  const lacking = cells?.length ? names.filter((name) => !(name in cells[0])) : [];
  const file = () => save(new Blob([csvText([["log_likelihood", "standard_error", "percentile", "anomaly", "odd_cell", ...terms],
    ...scores.map((score) => [score.log_likelihood, score.standard_error, score.percentile, score.anomaly, score.odd_cell, ...terms.map((name) => score.contributions[name])])])], { type: "text/csv" }), `${model.name}-scores.csv`);
  return [
    h("section.card.stack", { "aria-label": "Scores" }, h("div.row.ends", {}, h("h2", {}, `${many(scores.length, "row")} scored`),
      segments("Score", [["log_likelihood", "Log-likelihood"], ["percentile", "Percentile"], ...(isRanked ? [["anomaly", "Anomaly p-value"]] : [])], "log_likelihood", draw)), picture,
    h("p.tiny.soft", {}, MEASURES),
    h("div.row.ends", {}, h("p.soft", {}, isRanked ? `${many(odd, "row")} with an anomaly p-value of at most 0.01. At most one in a hundred training rows is as unusual.` : `${many(odd, "row")} less likely than 99 % of the held-out rows.`),
      h("button.small", { type: "button", onclick: file }, "Download scores")),
    lacking.length ? h("p.note", {}, `The table has no column ${lacking.join(", ")}. Such columns are treated as missing in every row.`) : null,
    impossible ? h("p.note", {}, `${many(impossible, "row")} ${impossible === 1 ? "has" : "have"} probability zero (log-likelihood −∞) and ${impossible === 1 ? "is" : "are"} not in the chart: ${neverDrawn(scores, names, terms.find((name) => !isColumn.has(name)))}`) : null),
    h("section.stack", { "aria-label": "Most anomalous rows" }, h("h2", {}, "Most anomalous rows"),
      h("p.soft", {}, `${isRanked ? "A frame marks the most unusual cell of each row with an anomaly p-value of at most 0.05. " : ""}The redder a cell, the more it lowers the log-likelihood of its row compared with the median cell of its column.`),
      leastLikely(sorted.slice(0, LEAST), names, usualCosts(scores, names), Boolean(cells))),
    h("details", {}, h("summary", {}, "How to read these scores"), h("ul.tiny.soft", {}, [answer.measure, ...answer.notes].map((note) => h("li", {}, capital(note))))),
  ];
}

/** Returns why rows have probability zero: values that the model cannot generate, such as a category that training did not contain, or broken hard rules (`hardRules` names their term). */
function neverDrawn(scores, names, hardRules) {
  const impossibleIn = (name) => scores.filter((score) => score.contributions[name] === -Infinity).length;
  const counts = names.map((name) => [name, impossibleIn(name)]).filter(([, n]) => n);
  const broken = hardRules ? impossibleIn(hardRules) : 0;
  const why = [
    counts.length ? `the model cannot generate the value in ${counts.map(([name, n]) => `${name} (${many(n, "row")})`).join(", ")}` : null,
    broken ? `${many(broken, "row")} ${broken === 1 ? "breaks" : "break"} a hard rule` : null,
  ].filter(Boolean);
  return `${why.join("; ") || "the rows break a rule"}.`;
}

/** Returns the median contribution by column, to compare with: a date with many values always contributes less than a yes or no. */
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
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Most anomalous rows" }, h("table.preview", {},
    h("thead", {}, h("tr", {}, ["Row", "Log-likelihood", "Percentile", "Anomaly p-value"].map((text) => h("th.number", { scope: "col" }, text)), names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, lines)), hasCells ? null : h("p.tiny.soft.inset", {}, "This page shows cell values of CSV files only. For this file, each cell shows what its column contributes to the log-likelihood, in nats."));
}

/** Returns a p-value as short text. */
function shownP(value) {
  return value < 0.0001 ? "< 0.0001" : value.toPrecision(2);
}

function cell(name, score, usual) {
  const nats = score.contributions[name];
  const value = score.cells ? score.cells[name] : figure(nats);
  const element = h(name === score.odd_cell && score.anomaly <= ODD ? "td.odd" : "td", { title: `${name}: ${figure(nats, 4)} nats` }, value === undefined || value === "" ? h("span.blank", {}, "missing") : value);
  const cost = Math.min(1, Math.max(0, (usual - nats - 0.5) / 6));
  if (cost > 0) element.style.background = `rgb(var(--warm) / ${(0.08 + 0.42 * cost).toFixed(2)})`;
  return element;
}
