// Forms for conditions on synthetic rows, and for target shares of categories.

import { Problem } from "./api.js";
import { fill, h } from "./elements.js";

/** Returns a form for conditions: its element, and `read()`, which returns the request member `given`, or null. */
export function conditionForm(schema, { onlyValues = false } = {}) {
  const columns = schema.columns.filter((column) => !column.drop && !["identifier", "constant"].includes(column.kind));
  const lines = h("div.stack");
  const readers = new Map();
  const add = () => {
    const line = h("div.row");
    const fields = h("span.row");
    const choose = () => readers.set(line, withMissing(columns.find((column) => column.name === name.value), fields, onlyValues));
    const name = h("select", { "aria-label": "Column", onchange: choose }, columns.map((column) => h("option", { value: column.name }, column.name)));
    const used = new Set([...readers.keys()].map((one) => one.querySelector("select").value));
    name.value = columns.find((column) => !used.has(column.name))?.name ?? columns[0].name;
    const remove = h("button.plain", { type: "button", "aria-label": "Remove this condition", onclick: () => { readers.delete(line); line.remove(); } }, "Remove");
    fill(line, name, fields, remove);
    lines.append(line);
    choose();
  };
  const element = h("div.stack", {}, lines, h("div", {}, h("button.small", { type: "button", onclick: add }, onlyValues ? "Add a value" : "Add a condition")));
  return { element, read: () => (readers.size ? Object.fromEntries([...readers].map(([line, read]) => [line.querySelector("select").value, read()])) : null) };
}

/** Adds the fields for one column, and a box for the condition that its cell is missing; returns a function that reads them. */
function withMissing(column, place, onlyValues) {
  const fields = h("span.row");
  const read = fieldsOf(column, fields, onlyValues);
  const box = h("input", { type: "checkbox", onchange: () => { fields.hidden = box.checked; } });
  fill(place, fields, column.missing?.allowed && !onlyValues ? h("label.check", {}, box, "is missing") : null);
  return () => (box.checked ? null : read());
}

/** Adds the fields for one column; returns a function that reads them. */
function fieldsOf(column, place, onlyValues) {
  if (column.levels) return levelFields(column, place, onlyValues);
  const type = column.kind === "datetime" ? "text" : "number";
  const field = (label, hint) => h("input", { type, step: "any", "aria-label": `${label} of ${column.name}`, placeholder: hint ?? label, size: 12 });
  const value = (input) => (type === "number" ? Number(input.value) : input.value);
  if (onlyValues) {
    const only = field("value", column.datetime_format);
    fill(place, "is", only);
    return () => (only.value === "" ? null : value(only));
  }
  const [low, high] = [field("lowest", String(column.minimum ?? "lowest")), field("highest", String(column.maximum ?? "highest"))];
  fill(place, "from", low, "to", high);
  return () => {
    if (low.value === "" && high.value === "") throw incomplete(column, "Enter the lowest or the highest value");
    return { ...(low.value !== "" ? { min: value(low) } : {}), ...(high.value !== "" ? { max: value(high) } : {}) };
  };
}

function incomplete(column, what) {
  return new Problem({ title: "A condition is incomplete", detail: `${what} of ${column.name}, or remove the condition.`, status: 0 });
}

function levelFields(column, place, onlyValues) {
  const few = column.levels.length <= 8 && !onlyValues;
  if (few) {
    const boxes = column.levels.map((level) => [h("input", { type: "checkbox" }), level]);
    fill(place, "is one of", boxes.map(([box, level]) => h("label.check", {}, box, String(level))));
    return () => {
      const levels = boxes.filter(([box]) => box.checked).map(([, level]) => level);
      if (!levels.length) throw incomplete(column, "Choose at least one category");
      return levels;
    };
  }
  const choice = h("select", { "aria-label": `Category of ${column.name}` }, column.levels.map((level, i) => h("option", { value: i }, String(level))));
  fill(place, "is", choice);
  return () => column.levels[Number(choice.value)];
}

/** Returns a form for target shares of one column's categories: its element, and `read()`. */
export function balanceForm(schema) {
  const columns = schema.columns.filter((column) => !column.drop && column.levels && column.levels.length <= 30 && column.kind !== "constant");
  const fields = h("div.row");
  let inputs = [];
  const choose = () => {
    const column = columns.find((one) => one.name === name.value);
    const even = column ? (100 / column.levels.length).toFixed(1) : "";
    inputs = (column?.levels ?? []).map((level) => [level, h("input", { type: "number", min: 0, step: "any", value: Number(even), "aria-label": `Share of ${level} in percent` })]);
    fill(fields, inputs.map(([level, input]) => h("label.field", {}, `${level} (%)`, input)));
  };
  const name = h("select", { "aria-label": "Column whose category shares you want to set", onchange: choose }, h("option", { value: "" }, "none"), columns.map((column) => h("option", { value: column.name }, column.name)));
  const read = () => {
    if (!name.value) return null;
    const total = inputs.reduce((sum, [, input]) => sum + Number(input.value), 0) || 1;
    return { [name.value]: Object.fromEntries(inputs.map(([level, input]) => [String(level), Number(input.value) / total])) };
  };
  return { element: columns.length ? h("div.stack", {}, h("label.field", {}, "Column whose category shares you want to set", name), fields) : h("p.soft", {}, "Shares cannot be set: this needs a column with 30 categories or fewer, and this model has none."), read };
}
