// Comparison of real and synthetic data by column: the dataset's profile, and rows generated for this page.

import { ask, bodyOf, parsed, read } from "./api.js";
import { twoSides } from "./charts.js";
import { fill, h } from "./elements.js";
import { momentOf, momentText } from "./moments.js";
import { count, figure, many, shareText, written, writtenLevels } from "./words.js";

const ROWS = 2000;
const MOST_LEVELS = 12;
const OTHER = "(other)";
const WHY_OTHER = "“(other)” stands for categories that too few rows have: the model suppresses them, so that synthetic rows cannot reveal them.";

export async function show({ place, model, signal }) {
  fill(place, h("p.soft", { role: "status" }, `Generating ${count(ROWS)} synthetic rows …`));
  const [profile, rows] = await Promise.all([
    model.dataset_id ? read(`/v1/datasets/${model.dataset_id}/profile`, { signal }).catch(() => null) : null,
    ask(`/v1/models/${model.id}/samples`, { method: "POST", json: { rows: ROWS, seed: 1, format: "json" }, signal }).then((answer) => bodyOf(answer)).then(parsed),
  ]);
  const ofReal = new Map((profile?.columns ?? []).map((column) => [column.name, column]));
  const columns = model.schema.columns.filter((column) => !column.drop && column.kind !== "identifier");
  const pictures = columns.map((column) => figureOf(column, writtenLevels(column, ofReal.get(column.name)), rows.map((row) => written(column, row[column.name])))).filter(Boolean);
  fill(place,
    h("div.row.ends", {}, h("p.soft", {}, profile
      ? `Distribution of each column in all ${many(profile.rows, "row")} of the dataset and in ${count(ROWS)} synthetic rows. Shares are written as real → synthetic.`
      : `Distribution of each column in ${count(ROWS)} synthetic rows. The dataset is no longer on this service, so it cannot be shown for comparison.`),
    h("div.row", {}, profile ? h("span.key", {}, "real") : null, h("span.key.drawn", {}, "synthetic"))),
    h("div.grid", {}, pictures));
}

/** Returns the chart of one column; null if it has no values to show. */
function figureOf(column, real, drawn) {
  const known = drawn.filter((value) => value !== null);
  const isLine = ["continuous", "integer", "datetime"].includes(column.kind) && !(real && real.levels);
  const sides = isLine ? lineShares(column, real, known) : levelShares(column, real, known);
  if (!sides) return null;
  const blank = 1 - known.length / drawn.length;
  const blanks = blank || real?.missing_share ? `missing ${real ? `${shareText(real.missing_share)} → ` : ""}${shareText(blank)}` : "";
  return h("figure.card", {}, h("figcaption", {}, h("strong", {}, column.name), h("span.soft.tiny", {}, blanks)), twoSides({ name: column.name, ...sides }, isLine),
    sides.labels.includes(OTHER) ? h("p.soft.tiny", {}, WHY_OTHER) : null);
}

function levelShares(column, real, known) {
  const counts = new Map();
  for (const value of known) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  const ofReal = new Map((real?.levels ?? []).map((found) => [String(found.level), found.count]));
  const ofDrawn = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const labels = [...(real ? ofReal.keys() : ofDrawn)].slice(0, MOST_LEVELS);
  if (counts.has(OTHER) && !labels.includes(OTHER)) labels.splice(MOST_LEVELS - 1, 1, OTHER);
  if (!labels.length) return null;
  if (column.kind === "ordinal") {
    const place = new Map((column.levels ?? []).map((level, i) => [String(level), i]));
    labels.sort((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
  }
  const total = real ? real.levels.reduce((sum, found) => sum + found.count, real.other_count ?? 0) : 1;
  return { labels, real: real ? labels.map((label) => (ofReal.get(label) ?? 0) / total) : null,
    drawn: labels.map((label) => (counts.get(label) ?? 0) / (known.length || 1)) };
}

function lineShares(column, real, known) {
  const number = (value) => (column.kind === "datetime" ? momentOf(value, column.datetime_format) : Number(value));
  const values = known.map(number).filter(Number.isFinite);
  const texts = real?.histogram?.edges;
  const edges = texts ? texts.map(number) : evenEdges(values);
  if (!values.length || !edges.every(Number.isFinite) || edges.length < 2) return null;
  const counts = Array(edges.length - 1).fill(0);
  for (const value of values) counts[binOf(edges, value)] += 1;
  const ownText = (edge) => (column.kind === "datetime" ? momentText(edge, edges.at(-1) - edges[0]) : figure(edge, 4));
  const text = (i) => (typeof texts?.[i] === "string" ? texts[i] : ownText(edges[i]));
  const total = texts ? real.histogram.counts.reduce((sum, n) => sum + n, 0) || 1 : 1;
  return { labels: counts.map((_, i) => `${text(i)} to ${text(i + 1)}`), real: texts ? real.histogram.counts.map((n) => n / total) : null,
    drawn: counts.map((n) => n / values.length) };
}

/** Returns the index of a value's bin; values below or above all edges count in the first or last bin. */
function binOf(edges, value) {
  let [low, high] = [0, edges.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (value >= edges[middle]) low = middle;
    else high = middle - 1;
  }
  return low;
}

function evenEdges(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return Array.from({ length: 31 }, (_, i) => low + (i * (high - low)) / 30);
}
