// Tables of rows, and reading and writing of CSV in the browser.

import { tableType } from "./api.js";
import { h } from "./elements.js";
import { decimalsOf } from "./words.js";

/** Returns a table of rows, which are objects by column name. Missing cells read "missing"; cells for which `isFilled(rowIndex, name)` is true are marked. */
export function rowTable(label, rows, most = 50, isFilled = () => false) {
  const names = Object.keys(rows[0] ?? {});
  const isNumber = (name) => rows.every((row) => row[name] === null || typeof row[name] === "number");
  const decimals = Object.fromEntries(names.map((name) => [name, decimalsOf(rows.map((row) => row[name]).filter(Number.isFinite))]));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": label },
    h("table.preview", {}, h("thead", {}, h("tr", {}, names.map((name) => h(isNumber(name) ? "th.number" : "th", { scope: "col" }, name)))),
      h("tbody", {}, rows.slice(0, most).map((row, i) => h("tr", {}, names.map((name) => {
        const element = cell(row[name], decimals[name]);
        if (isFilled(i, name)) { element.classList.add("filled"); element.title = `Imputed: ${element.textContent}`; }
        return element;
      }))))));
}

function cell(value, decimals) {
  if (value === null || value === undefined || value === "") return h("td", {}, h("span.blank", {}, "missing"));
  const isPlain = typeof value === "number" && !/e/.test(String(value));
  return h(typeof value === "number" ? "td.number" : "td", { title: String(value) }, isPlain ? value.toFixed(decimals) : String(value));
}

/** Parses CSV text (RFC 4180; comma, semicolon or tab). Returns [header, ...rows], each a list of texts. */
export function csvRows(text) {
  const first = text.slice(0, text.search(/\r?\n|$/));
  const separator = [",", ";", "\t"].sort((a, b) => first.split(b).length - first.split(a).length)[0];
  const rows = [];
  let [row, value, isQuoted] = [[], "", false];
  for (let i = text.charCodeAt(0) === 0xfeff ? 1 : 0; i < text.length; i += 1) {
    const letter = text[i];
    if (isQuoted && letter === '"' && text[i + 1] === '"') { value += '"'; i += 1; }
    else if (letter === '"' && (isQuoted || value === "")) isQuoted = !isQuoted;
    else if (isQuoted) value += letter;
    else if (letter === separator) { row.push(value); value = ""; }
    else if (letter === "\n") { rows.push([...row, value.replace(/\r$/, "")]); row = []; value = ""; }
    else value += letter;
  }
  if (value !== "" || row.length) rows.push([...row, value]);
  return rows;
}

/** Parses CSV text. Returns the rows as objects by column name. */
export function csvObjects(text) {
  const [head = [], ...rows] = csvRows(text);
  return rows.filter((row) => row.length === head.length).map((row) => Object.fromEntries(head.map((name, i) => [name, row[i]])));
}

/** Returns the rows of a CSV file as objects of texts; null if it is not CSV or larger than 64 MB. */
export async function rowsIn(file, encoding = "utf-8") {
  if (tableType(file.name) !== "text/csv" || file.size > 64e6) return null;
  try {
    return csvObjects(new TextDecoder(encoding).decode(await file.arrayBuffer()));
  } catch {  // the browser does not know the encoding
    return null;
  }
}

/** Returns the rows of a CSV file, as `rowsIn`, if it has n rows; else null. */
export async function cellsOf(file, n, encoding) {
  const rows = await rowsIn(file, encoding);
  return rows?.length === n ? rows : null;
}

/** Returns CSV text for rows, each a list of values. */
export function csvText(rows) {
  const written = (value) => (/[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  return `${rows.map((row) => row.map(written).join(",")).join("\n")}\n`;
}
