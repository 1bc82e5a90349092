// Diagram of tables as boxes and foreign keys as lines. Screen readers skip the lines: the boxes contain the same in words.

import { h, s } from "./elements.js";
import { COLUMN_KINDS, count, many } from "./words.js";

const MOST_COLUMNS = 12;
const GUTTER = 20;
const MOST_RANKS = 4;  // tables of higher ranks share the last column

/** Returns the diagram. `notes[name]` is shown below a table's name. */
export function tableDiagram(tables, links, notes = {}) {
  const boxes = new Map(tables.map((table) => [table.name, box(table, links[table.name], notes[table.name])]));
  const ranks = ranked(tables, links);
  const columns = [...new Set(ranks.values())].sort((a, b) => a - b).map((rank) =>
    h("div.rank", {}, tables.filter(({ name }) => ranks.get(name) === rank).map(({ name }) => boxes.get(name).element)));
  const lines = s("svg.links", { "aria-hidden": "true" });
  const drawing = h("div.diagram", { role: "group", "aria-label": "Tables and their keys" }, columns, lines);
  const draw = () => drawLines(drawing, lines, links, boxes);
  new ResizeObserver(draw).observe(drawing);
  return drawing;
}

/** Returns each table's rank: 0 without foreign keys, else one more than the highest rank of a table that it refers to. Cycles are cut. */
function ranked(tables, links) {
  const ranks = new Map();
  const rank = (name, path) => {
    if (ranks.has(name)) return ranks.get(name);
    const above = links[name].foreign_keys.map((key) => key.table).filter((other) => links[other] && !path.includes(other));
    const found = above.length ? 1 + Math.max(...above.map((other) => rank(other, [...path, other]))) : 0;
    ranks.set(name, Math.min(found, MOST_RANKS - 1));
    return found;
  };
  for (const { name } of tables) rank(name, [name]);
  for (const { name } of [...tables].sort((a, b) => ranks.get(b.name) - ranks.get(a.name))) {  // moves a table next to the first table that refers to it
    const below = tables.filter((other) => links[other.name].foreign_keys.some((key) => key.table === name)).map((other) => ranks.get(other.name));
    if (below.length) ranks.set(name, Math.max(ranks.get(name), Math.min(...below) - 1));
  }
  return ranks;
}

function box(table, link, note) {
  const isKey = new Set(link.primary_key);
  const refers = new Map(link.foreign_keys.flatMap((key) => key.columns.map((column) => [column, key.table])));
  const keysFirst = (name) => (isKey.has(name) ? 0 : refers.has(name) ? 1 : 2);
  const names = table.schema.columns.map((column) => column.name).sort((a, b) => keysFirst(a) - keysFirst(b));
  const kinds = new Map(table.schema.columns.map((column) => [column.name, column.drop ? "Dropped" : COLUMN_KINDS[column.kind]]));
  const shown = names.slice(0, Math.max(MOST_COLUMNS, isKey.size + refers.size));
  const rows = new Map(shown.map((name) => [name, h("li", {},
    h(keysFirst(name) < 2 ? "span.key-name" : "span", {}, name),
    h("span.tiny.soft", {}, [isKey.has(name) ? "primary key" : null, refers.has(name) ? `→ ${refers.get(name)}` : null].filter(Boolean).join(", ") || kinds.get(name)))]));
  const element = h("section.table-box", { "aria-label": `Table ${table.name}` },
    h("h3", {}, table.name), h("p.tiny.soft", {}, `${many(table.rows, "row")}, ${many(table.columns, "column")}`), note ? h("p.tiny", {}, note) : null,
    h("ul", {}, [...rows.values()], names.length > shown.length ? h("li.tiny.soft", {}, `and ${count(names.length - shown.length)} more`) : null));
  return { element, rows };
}

/** Draws a line from each foreign key to its primary key: between adjacent boxes, else below the boxes between them, or around the left edges. */
function drawLines(drawing, lines, links, boxes) {
  const at = drawing.getBoundingClientRect();
  lines.setAttribute("width", at.width);
  lines.setAttribute("height", at.height);
  const edge = (element) => {
    const found = element.getBoundingClientRect();
    return { left: found.left - at.left, right: found.right - at.left, y: found.top - at.top + found.height / 2 };
  };
  const paths = [];
  let around = 0;
  let beneath = 0;
  const cards = [...boxes.values()].map(({ element }) => element.getBoundingClientRect());
  for (const [name, { rows }] of boxes) {
    for (const key of links[name].foreign_keys) {
      const from = rows.get(key.columns[0]);
      const target = boxes.get(key.table);
      const to = target?.rows.get(key.references[0]);
      if (!from || !to) continue;
      const [a, b] = [edge(from), edge(to)];
      const isBeside = b.right + GUTTER / 2 < a.left;
      const bow = Math.max(12, (a.left - b.right) / 2);
      const out = Math.max(2, Math.min(a.left, b.left) - 8 - 4 * (around % 4));
      const between = cards.filter((card) => card.left - at.left > b.right && card.right - at.left < a.left);
      const under = Math.max(0, ...between.map((card) => card.bottom - at.top)) + 10 + 6 * beneath;
      if (isBeside && between.length) beneath += 1;
      paths.push(isBeside && between.length
        ? `M${a.left} ${a.y}H${a.left - 16 - 4 * beneath}V${under}H${b.right + 16 + 4 * beneath}V${b.y}H${b.right}`
        : isBeside
        ? `M${a.left} ${a.y}C${a.left - bow} ${a.y} ${b.right + bow} ${b.y} ${b.right} ${b.y}`
        : `M${a.left} ${a.y}H${out + 4}Q${out} ${a.y} ${out} ${a.y + Math.sign(b.y - a.y) * 4}V${b.y - Math.sign(b.y - a.y) * 4}Q${out} ${b.y} ${out + 4} ${b.y}H${b.left}`);
      paths.push(isBeside ? `M${b.right + 6} ${b.y - 4}L${b.right} ${b.y}L${b.right + 6} ${b.y + 4}` : `M${b.left - 6} ${b.y - 4}L${b.left} ${b.y}L${b.left - 6} ${b.y + 4}`);
      if (!isBeside) around += 1;
    }
  }
  lines.replaceChildren(...paths.map((d) => s("path", { d })));
}
