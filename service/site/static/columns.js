// The table in which users edit the columns of a dataset: kind, missing values, categories, limits, drop.

import { binsOf, spark } from "./charts.js";
import { writing } from "./components.js";
import { tried } from "./dataset.js";
import { fill, freshId, h } from "./elements.js";
import { capital, COLUMN_KINDS, count, figure, many, shareText, writtenLevels } from "./words.js";

const MEANT = {
  identifier: "The model does not learn this column. Synthetic rows get new, made-up values.",
  constant: "The same value in every row.",
  ordinal: "Only values that occur in the table are generated.",
};

/** Returns the table. `patch` collects unsaved changes, `change(patch)` saves them, `undo()` discards them; warnings that are shown beside their column are added to `shown`. */
export function columnTable(dataset, profile, { change, undo, patch }, shown) {
  const saving = h("div.savebar", { role: "region", "aria-label": "Unsaved changes" });
  const set = (name, member, value) => {
    patch[name] = { ...patch[name], [member]: value };
    drawBar();
  };
  const drawBar = () => {
    const told = h("div");
    const names = Object.keys(patch);
    const save = writing(h("button.main", { type: "button", onclick: () => tried(told, save, () => change({ columns: patch })) }, "Save"));
    fill(saving, h("span", {}, `Unsaved changes in ${many(names.length, "column")}: ${names.slice(0, 3).join(", ")}${names.length > 3 ? " …" : ""}`),
      h("div.row", {}, h("button", { type: "button", onclick: undo }, "Discard changes"), save), told);
  };
  const byName = new Map(profile.columns.map((column) => [column.name, column]));
  const rows = dataset.schema.columns.map((column) => {
    const warnings = dataset.warnings.filter((warning) => warning.startsWith(`column '${column.name}'`));
    warnings.forEach((warning) => shown.add(warning));
    return columnRows(column, writtenLevels(column, byName.get(column.name)) ?? column, warnings, set);
  });
  const heads = ["Column", "Kind", "Distribution", "Missing cells", "Range or categories", "Drop", ""];
  return h("div.stack", {}, h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Columns of the table" },
    h("table.cards", {}, h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text || h("span.hidden-words", {}, "More"))))), h("tbody", {}, rows))), saving);
}

function columnRows(column, found, warnings, set) {
  const id = freshId("column");
  const kind = h("select", { "aria-label": `Kind of ${column.name}`, title: MEANT[column.kind] ?? null, disabled: Boolean(column.drop),
    onchange: (event) => set(column.name, "kind", event.target.value) },
  Object.entries(COLUMN_KINDS).map(([value, text]) => h("option", { value, selected: value === column.kind }, text)));
  const drop = h("input", { type: "checkbox", checked: Boolean(column.drop), "aria-label": `Drop ${column.name} from the model`, title: "Drop: leave the column out of the model and of the synthetic rows.",
    onchange: (event) => set(column.name, "drop", event.target.checked) });
  const more = h("tr.more", { id, hidden: true }, h("td", { colspan: 7 }, editor(column, set)));
  const button = h("button.plain", { type: "button", "aria-expanded": "false", "aria-controls": id, "aria-label": `Edit ${column.name}`,
    onclick: () => {
      more.hidden = !more.hidden;
      button.setAttribute("aria-expanded", String(!more.hidden));
      button.textContent = more.hidden ? "Edit" : "Close";
    } }, "Edit");
  const cell = (label, ...content) => h("td", { "data-label": label }, content);
  return [h("tr", {},
    h("th", { scope: "row" }, column.name, warnings.map((warning) => h("p.note.tiny", {}, capital(warning.replace(/^column '.*?': /, ""))))),
    cell("Kind", column.drop ? "–" : kind),
    cell("Distribution", column.drop ? "–" : spark(found)),
    cell("Missing cells", column.drop ? "–" : shareText(found.missing_share)),
    cell("Range or categories", column.drop ? "dropped" : extent(column, found)),
    cell("Drop", drop),
    cell("", column.drop ? null : button)), more];
}

function extent(column, found) {
  if (column.personal && column.kind === "identifier") return `Personal data (${column.personal.replaceAll("_", " ")}): replaced by generated values`;
  if (column.levels) {
    const [first] = binsOf(found);
    return `${count(column.levels.length)} ${column.levels.length === 1 ? "category" : "categories"}${first ? `, most frequent: ${first.label}` : ""}`;
  }
  if (column.minimum !== undefined && column.minimum !== null) return h("span.number", {}, `${edge(column.minimum)} to ${edge(column.maximum)}`);
  return found.distinct ? `${count(found.distinct)} distinct values` : "–";
}

function edge(value) {
  return typeof value === "number" ? figure(value, 6) : value;
}

/** Returns the fields for one column. An emptied field resets a member, which is then inferred from the table again. */
function editor(column, set) {
  const field = (label, member, value, read, hint) => h("label.field", {}, label,
    h("input", { value: value ?? "", placeholder: hint ?? "inferred",
      onchange: (event) => set(column.name, member, event.target.value.trim() === "" ? null : read(event.target.value.trim())) }));
  const number = (text) => (column.kind === "datetime" || Number.isNaN(Number(text)) ? text : Number(text));
  const isNumber = ["continuous", "integer"].includes(column.kind);
  const markers = column.missing?.markers ?? [];
  return h("div.edit", {},
    isNumber || column.kind === "datetime" ? [field("Minimum", "minimum", column.minimum, number), field("Maximum", "maximum", column.maximum, number)] : null,
    isNumber ? field("Decimal places", "decimals", column.decimals, Number) : null,
    column.kind === "datetime" ? field("Date format, such as %d.%m.%Y", "datetime_format", column.datetime_format, String) : null,
    field("Entries that mean “missing”, separated by commas", "missing", markers.filter((marker) => marker !== "").join(", "),
      (text) => ({ allowed: true, markers: ["", ...text.split(",").map((marker) => marker.trim()).filter(Boolean)] }), "only empty cells"),
    column.personal ? h("label.field", {}, "Personal data: replace every value with a generated one", h("input", { type: "checkbox", checked: true, onchange: (event) => set(column.name, "personal", event.target.checked ? column.personal : false) })) : null,
    column.levels ? levelsField(column, set) : null);
}

function levelsField(column, set) {
  const areNumbers = column.levels.every((level) => typeof level === "number");
  const read = (text) => text.split("\n").filter((line) => line !== "").map((line) => (areNumbers ? Number(line) : line));
  return h("label.field.whole", {}, column.kind === "ordinal" ? "Categories in ascending order, one per line" : "Categories, one per line",
    h("textarea", { rows: Math.min(8, column.levels.length + 1), value: column.levels.join("\n"),
      onchange: (event) => set(column.name, "levels", event.target.value.trim() === "" ? null : read(event.target.value)) }));
}
