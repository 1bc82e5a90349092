// Conversion of dates and times, in the formats of a table's columns.

const PIECES = { Y: "(\\d{4})", y: "(\\d{2})", m: "(\\d{1,2})", d: "(\\d{1,2})", H: "(\\d{1,2})", I: "(\\d{1,2})", M: "(\\d{1,2})", S: "(\\d{1,2})", f: "(\\d{1,9})", p: "([AaPp][Mm])", b: "([A-Za-z]{3})", B: "([A-Za-z]+)", z: "(Z|[+-]\\d{2}:?\\d{2})" };
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Returns the milliseconds since 1970 of a text such as "31.12.2026 08:15"; NaN if it is not a date. */
export function momentOf(text, format) {
  const iso = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?$/.test(text);
  if (iso) return Date.parse(text.length === 10 || /(Z|[+-]\d\d:?\d\d)$/.test(text.slice(10)) ? text : `${text.replace(" ", "T")}Z`);
  const found = partsOf(text, format ?? "");
  if (!found) return NaN;
  const month = found.m ? Number(found.m) - 1 : MONTHS.indexOf((found.b ?? found.B ?? "jan").slice(0, 3).toLowerCase());
  const year = found.Y ? Number(found.Y) : Number(found.y ?? 70) + (Number(found.y ?? 70) < 69 ? 2000 : 1900);
  const hour = Number(found.H ?? found.I ?? 0) % (found.p ? 12 : 24) + (/p/i.test(found.p ?? "") ? 12 : 0);
  return Date.UTC(year, month, Number(found.d ?? 1), hour, Number(found.M ?? 0), Number(found.S ?? 0));
}

/** Returns a time as text: only the day if the shown times span more than three days, else with hour and minute. `span` is in milliseconds. */
export function momentText(milliseconds, span) {
  const text = new Date(milliseconds).toISOString();
  return span > 3 * 86_400_000 ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

function partsOf(text, format) {
  const names = [];
  const pattern = format.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/%([A-Za-z])/g, (whole, name) => {
    names.push(name);
    return PIECES[name] ?? "(.+?)";
  });
  const found = new RegExp(`^${pattern}$`).exec(text);
  return found && Object.fromEntries(names.map((name, i) => [name, found[i + 1]]));
}
