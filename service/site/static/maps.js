// The section of a model's page that shows its dependency maps.

import { read } from "./api.js";
import { dataTable, problemBox, segments, writing } from "./components.js";
import { conditionForm } from "./conditions.js";
import { fill, h, s } from "./elements.js";
import { capital, figure, short } from "./words.js";

const KINDS = {
  total: ["Synthetic rows", "Dependence between each pair of columns in synthetic rows, as Kendall's τ: 1 means that both rise together, −1 that one falls as the other rises, 0 that there is no such relation."],
  data: ["Training rows", "Kendall's τ in the training rows. In small tables it has sampling noise."],
  difference: ["Difference", "Synthetic rows minus training rows: where the model makes a dependence stronger or weaker than it is in the table. Values near 0 are best."],
  expected: ["Copula", "Only the dependence that comes from the Gaussian copula of the model, averaged over synthetic rows. Dependence that arises through the latent vector is not included."],
  local: ["For one row", "The copula differs between rows. This map is the copula of a row with the values that you enter, averaged over the latent vectors that fit them. Columns without a value count as unknown."],
};

export async function show({ place, model, signal }) {
  const chosen = new URLSearchParams(location.search).get("kind") ?? "total";
  const picture = h("div.stack");
  const sentence = h("p");
  const choose = async (kind) => {
    history.replaceState(null, "", `?kind=${kind}`);
    fill(sentence, KINDS[kind][1]);
    if (kind === "local") return fill(picture, localForm(model, signal));
    fill(picture, h("p.soft", { role: "status" }, "Computing the map …"));
    try {
      fill(picture, shown(await read(`/v1/models/${model.id}/dependencies?kind=${kind}`, { signal, headers: { Accept: "application/json" } }), model));
    } catch (error) {
      if (error.name !== "AbortError") fill(picture, problemBox(error, () => choose(kind)));
    }
    return null;
  };
  const kinds = Object.entries(KINDS).map(([kind, [text]]) => [kind, text]);
  fill(place, h("div.scrolls", {}, segments("Kind of map", kinds, KINDS[chosen] ? chosen : "total", choose)), sentence, picture);
  await choose(KINDS[chosen] ? chosen : "total");
}

function localForm(model, signal) {
  const found = h("div.stack");
  const form = conditionForm(model.schema, { onlyValues: true });
  const button = writing(h("button.main", { type: "button", onclick: async () => {
    fill(found, h("p.soft", { role: "status" }, "Computing the map …"));
    try {
      fill(found, shown(await read(`/v1/models/${model.id}/dependencies`, { method: "POST", json: { row: form.read() ?? {} }, signal }), model, false));
    } catch (error) {
      if (error.name !== "AbortError") fill(found, problemBox(error));
    }
  } }, "Show map"));
  return [h("div.card.stack", {}, h("h3", {}, "Known values of the row"), form.element, h("div.row", {}, button)), found];
}

/** Returns a dependency map with its most dependent pairs of columns and its notes. */
function shown(map, model, hasFiles = true) {
  const order = map.order ?? map.columns.map((_, i) => i);
  const names = order.map((at) => (typeof at === "number" ? map.columns[at] : at));
  const at = new Map(map.columns.map((name, i) => [name, i]));
  const nominal = new Set(map.nominal ?? []);
  const value = (a, b) => {
    const hasSign = !nominal.has(a) && !nominal.has(b);
    return { hasSign, value: (hasSign ? map.tau : map.unsigned)[at.get(a)][at.get(b)] };
  };
  const place = (format) => h("a.button.small", { href: `/v1/models/${model.id}/dependencies?kind=${map.kind}&format=${format}`, download: `${model.name}-${map.kind}.${format}` }, format.toUpperCase());
  return h("div.grid.map", {},
    h("figure.card", {}, heatmap(names, value), h("div.row.tiny.soft", {}, legend("−1", "--cold"), legend("0", null), legend("1", "--warm"), nominal.size ? h("span", {}, "grey: strength only (categories without an order)") : null)),
    h("div.stack", {}, h("h3", {}, "Strongest pairs"), strongest(names, value), nominal.size ? h("p.tiny.soft", {}, "* strength only: this pair has no direction (positive or negative)") : null,
      hasFiles ? h("div.row", {}, h("span.soft", {}, "Download:"), place("png"), place("svg"), place("csv")) : null,
      h("details", {}, h("summary", {}, "How this map is computed, and its limits"), h("ul.tiny.soft", {}, (map.notes ?? []).map((note) => h("li", {}, capital(note)))))));
}

function legend(text, color) {
  const mark = h("span.swatch");
  mark.style.background = color ? `rgb(var(${color}))` : "var(--sunk)";
  return h("span.row", {}, mark, text);
}

function heatmap(names, value) {
  const n = names.length;
  const cell = n > 40 ? 12 : n > 20 ? 20 : n > 14 ? 26 : 34;
  const left = Math.min(165, 12 + 7.2 * Math.max(...names.map((name) => Math.min(20, [...name].length))));
  const top = left * 0.78 + 8;
  const told = s("text.strong", { x: left, y: 12 }, "Point at a cell, or move with the arrow keys, to see its value");
  const say = (a, b, found) => { told.textContent = a === b ? a : `${short(a, 18)} × ${short(b, 18)}: ${figure(found.value)}${found.hasSign ? "" : " (strength only)"}`; };
  const cells = names.flatMap((a, i) => names.map((b, j) => {
    const found = value(a, b);
    const shown = i === j ? null : found.value;
    const label = `${a} and ${b}: ${figure(found.value)}`;
    const rect = s("rect.cell", { x: left + j * cell, y: 18 + top + i * cell, width: cell - 1, height: cell - 1, rx: 2, tabindex: i + j === 0 ? 0 : -1, "aria-label": label, role: "img",
      onmouseenter: () => say(a, b, found), onfocus: () => say(a, b, found), onkeydown: (event) => walk(event, i, j) });
    rect.style.fill = paint(shown, found.hasSign);
    return [rect, n <= 14 && shown !== null ? s("text", { x: left + (j + 0.5) * cell - 0.5, y: 18 + top + (i + 0.5) * cell + 3, "text-anchor": "middle", "pointer-events": "none", class: Math.abs(shown) > 0.55 ? "on" : "off" }, Math.abs(shown) < 0.005 ? "0" : figure(Number(shown.toFixed(2)), 2).replace("0.", ".")) : null];
  }));
  const walk = (event, i, j) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = cells[(i + step[0]) * n + j + step[1]]?.[0];
    if (j + step[1] >= 0 && j + step[1] < n) next?.focus();
  };
  const side = names.map((name, i) => s("text.strong", { x: left - 6, y: 18 + top + (i + 0.5) * cell + 4, "text-anchor": "end" }, short(name, 20)));
  const above = names.map((name, j) => s("text.strong", { transform: `translate(${left + (j + 0.5) * cell + 3} ${12 + top}) rotate(-52)` }, short(name, 20)));
  const width = left + n * cell + top * 0.7;
  const picture = s("svg.picture", { viewBox: `0 0 ${width} ${20 + top + n * cell}`, role: "group", "aria-label": `Map of ${n} columns` }, told, above, side, cells);
  picture.style.maxWidth = `${width * 1.25}px`;
  picture.style.minWidth = `${width}px`;  // so that names stay legible; a phone scrolls
  return h("div.scrolls", { tabindex: 0, role: "region", "aria-label": "Dependency map" }, picture);
}

/** Returns the colour of a value: red if positive, blue if negative, as in downloads; grey if the measure has no sign. */
function paint(value, hasSign) {
  if (value === null || !Number.isFinite(value)) return "var(--sunk)";
  const name = hasSign ? (value < 0 ? "--cold" : "--warm") : "--neutral";
  return `rgb(var(${name}) / ${(0.05 + 0.95 * Math.min(1, Math.abs(value)) ** 0.8).toFixed(2)})`;
}

function strongest(names, value) {
  const pairs = names.flatMap((a, i) => names.slice(i + 1).map((b) => ({ a, b, ...value(a, b) })));
  const top = pairs.filter((pair) => Number.isFinite(pair.value)).sort((x, y) => Math.abs(y.value) - Math.abs(x.value)).slice(0, 8);
  return dataTable("Strongest pairs", ["Columns", ["Value", "number"]], top.map((pair) => [`${pair.a} × ${pair.b}`, `${figure(pair.value, 2)}${pair.hasSign ? "" : " *"}`]), "table");
}
