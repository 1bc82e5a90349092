// Charts: bars, real and synthetic shares, curves, histograms.

import { h, s } from "./elements.js";
import { count, figure, shareText, short } from "./words.js";

/** Returns the histogram or the level counts of a column's profile as bins: [{label, count}]. */
export function binsOf(column) {
  if (column.histogram) {
    const { edges, counts } = column.histogram;
    return counts.map((n, i) => ({ label: `${edgeText(edges[i])} to ${edgeText(edges[i + 1])}`, count: n }));
  }
  const bins = (column.levels ?? []).map((found) => ({ label: String(found.level), count: found.count }));
  if (column.other_count) bins.push({ label: "other categories", count: column.other_count });
  return bins;
}

function edgeText(edge) {
  return typeof edge === "number" ? figure(edge, 4) : edge;
}

/** Returns a histogram that fits into a cell of a table. */
export function spark(column, width = 150, height = 34) {
  const bins = binsOf(column).slice(0, 40);
  if (!bins.length) return h("span.soft", {}, "–");
  const most = Math.max(...bins.map((bin) => bin.count), 1);
  const step = Math.min(width / bins.length, 26);
  const bars = bins.map((bin, i) => {
    const tall = Math.max(bin.count ? 1 : 0, (bin.count / most) * (height - 1));
    return s("rect.real", { x: i * step, y: height - tall, width: Math.max(step - 1, 0.8), height: tall },
      s("title", {}, `${bin.label}: ${count(bin.count)}`));
  });
  const told = bins.slice(0, 3).map((bin) => `${bin.label}: ${count(bin.count)}`).join("; ");
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Distribution of ${column.name}: ${told}` }, bars,
    s("line.axis", { x1: 0, x2: width, y1: height, y2: height }));
}

/** Returns a chart of real (grey) and synthetic (coloured) shares in the same bins. */
export function twoSides({ name, labels, real, drawn }, isLine) {
  return isLine ? columnsOf(name, labels, real, drawn) : barsOf(name, labels, real, drawn);
}

/** Returns vertical bars for numbers and dates: real shares filled, synthetic ones as a step line. */
function columnsOf(name, labels, real, drawn) {
  const [width, height] = [320, 110];
  const most = Math.max(...(real ?? []).map((share) => share ?? 0), ...drawn, 1e-9);
  const step = width / labels.length;
  const y = (share) => height - (share / most) * (height - 4);
  const bars = labels.map((label, i) => s("g", {},
    real && s("rect.real", { x: i * step, y: y(real[i] ?? 0), width: Math.max(step - 1, 0.5), height: height - y(real[i] ?? 0), opacity: 0.55 }),
    s("rect", { x: i * step, y: 0, width: step, height, fill: "transparent" },
      s("title", {}, shareTitle(label, real?.[i], drawn[i])))));
  const steps = drawn.map((share, i) => `${i ? "L" : "M"}${i * step} ${y(share)}H${(i + 1) * step}`).join("");
  return s("svg.picture", { viewBox: `0 0 ${width} ${height + 16}`, role: "img", "aria-label": `Shares of ${name}` }, bars,
    s("path.line.held", { d: steps, "pointer-events": "none" }),
    s("line.axis", { x1: 0, x2: width, y1: height, y2: height }),
    s("text", { x: 0, y: height + 13 }, short(labels[0].split(" to ")[0], 18)),
    s("text", { x: width, y: height + 13, "text-anchor": "end" }, short(labels.at(-1).split(" to ").at(-1), 18)));
}

function shareTitle(label, real, synthetic) {
  return `${label}\n${real === undefined ? "" : `real ${real === null ? "few" : shareText(real)}, `}synthetic ${shareText(synthetic)}`;
}

/** Returns horizontal bars for categories: the real share above the synthetic one, with numbers. */
function barsOf(name, labels, real, drawn) {
  const [width, line, left] = [320, 24, 112];
  const most = Math.max(...(real ?? []).map((share) => share ?? 0), ...drawn, 1e-9);
  const long = (share) => ((width - left - (real ? 96 : 48)) * share) / most;
  const lines = labels.map((label, i) => s("g", { transform: `translate(0 ${i * line})` },
    s("title", {}, shareTitle(label, real?.[i], drawn[i])),
    s("text", { x: left - 8, y: 15, "text-anchor": "end" }, short(label, 15)),
    real && s("rect.real", { x: left, y: 3, width: long(real[i] ?? 0), height: 8, rx: 1 }),
    s("rect.drawn", { x: left, y: real ? 12 : 6, width: long(drawn[i]), height: real ? 8 : 12, rx: 1 }),
    s("text", { x: left + long(Math.max(drawn[i], real?.[i] ?? 0)) + 6, y: 15 }, real ? `${real[i] === null ? "few" : shareText(real[i])} → ${shareText(drawn[i])}` : shareText(drawn[i]))));
  return s("svg.picture", { viewBox: `0 0 ${width} ${Math.max(1, labels.length) * line}`, role: "img", "aria-label": `Shares of ${name}` }, lines);
}

/** Returns the width of a chart that fills its card, so that letters are not scaled on a phone. */
function paper() {
  return Math.max(280, Math.min(1040, window.innerWidth - 80));
}

/** Returns a chart of curves over training steps, given as [{name, css, points: [[x, y]]}]. */
export function curves(lines, { xName = "step", yName = "nats per row" } = {}) {
  const [width, height, left, low] = [paper(), 240, 56, 26];
  const all = lines.flatMap((line) => line.points);
  if (all.length < 2) return h("p.soft", {}, "The curves will appear after the first evaluation.");
  const [x0, x1] = range(all.map((point) => point[0]));
  const [y0, y1] = padded(range(all.map((point) => point[1])));
  const x = (v) => left + ((v - x0) / (x1 - x0 || 1)) * (width - left - 12);
  const y = (v) => 8 + (1 - (v - y0) / (y1 - y0 || 1)) * (height - low - 8);
  const grid = ticks(y0, y1).map((v) => [
    s("line.axis", { x1: left, x2: width - 12, y1: y(v), y2: y(v) }),
    s("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, figure(v)),
  ]);
  const drawn = lines.map((line) => [
    s(`path.line.${line.css}`, { d: line.points.map((point, i) => `${i ? "L" : "M"}${x(point[0])} ${y(point[1])}`).join("") }),
    line.points.map((point) => s(`circle.dot.${line.css}`, { cx: x(point[0]), cy: y(point[1]), r: 3 },
      s("title", {}, `${line.name}, ${xName} ${count(point[0])}: ${figure(point[1], 5)} ${yName}`))),
  ]);
  const ends = lines.filter((line) => line.points.length).map((line) => `${line.name} ends at ${figure(line.points.at(-1)[1], 4)} ${yName}`);
  return s("svg.picture", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Curves over ${xName}s: ${ends.join("; ")}` }, grid, drawn,
    s("text", { x: left, y: height - 6 }, `${xName} ${count(x0)}`),
    s("text", { x: width - 12, y: height - 6, "text-anchor": "end" }, count(x1)));
}

function range(values) {
  return [Math.min(...values), Math.max(...values)];
}

function padded([low, high]) {
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
}

function ticks(low, high) {
  const rough = (high - low) / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * size).find((m) => m >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(Number(v.toPrecision(10)));
  return found;
}

/** Returns a histogram of numbers with vertical bars. `marks` are vertical lines: [value, text]. */
export function histogram(values, name, marks = []) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return h("p.soft", {}, "Nothing to plot: the value is infinite or missing in every row.");
  const [low, high] = range(finite);
  const n = Math.min(48, Math.max(8, Math.round(2 * Math.sqrt(finite.length))));
  const counts = Array(n).fill(0);
  for (const v of finite) counts[Math.min(n - 1, Math.floor(((v - low) / (high - low || 1)) * n))] += 1;
  const [width, height] = [paper(), 150];
  const most = Math.max(...counts);
  const step = width / n;
  const at = (v) => ((v - low) / (high - low || 1)) * width;
  const bars = counts.map((c, i) => s("rect.drawn", { x: i * step, y: height - (c / most) * (height - 14), width: Math.max(1, step - 1), height: (c / most) * (height - 14) },
    s("title", {}, `${figure(low + (i * (high - low)) / n, 4)} to ${figure(low + ((i + 1) * (high - low)) / n, 4)}: ${count(c)}`)));
  return s("svg.picture", { viewBox: `0 0 ${width} ${height + 18}`, role: "img", "aria-label": `Histogram of ${name}, from ${figure(low)} to ${figure(high)}` }, bars,
    marks.filter(([v]) => v >= low && v <= high).map(([v, text]) => [
      s("line", { x1: at(v), x2: at(v), y1: 0, y2: height, stroke: "currentColor", "stroke-dasharray": "3 3" }),
      s("text", { x: at(v) + 4, y: 10 }, text)]),
    s("line.axis", { x1: 0, x2: width, y1: height, y2: height }),
    s("text", { x: 0, y: height + 14 }, figure(low)), s("text", { x: width, y: height + 14, "text-anchor": "end" }, figure(high)));
}
