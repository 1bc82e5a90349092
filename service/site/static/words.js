// Numbers, durations and names as text.

const plain = new Intl.NumberFormat("en");

export function count(number) {
  return number === null || number === undefined ? "–" : plain.format(number);
}

/** A count with its noun: "1 row", "2,000 rows". */
export function many(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function figure(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** A number of a column: all of them with the same decimals. */
export function fixed(value, decimals) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return value.toFixed(decimals).replace("-", "−");
}

/** The most decimals that any of these numbers is written with. */
export function decimalsOf(numbers) {
  const written = numbers.map((number) => String(number).split("."));
  return Math.max(0, ...written.map(([, decimals = ""]) => (/e/.test(decimals) ? 0 : decimals.length)));
}

export function percent(share, digits = 0) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`.replace("-", "−");
}

/** A share that is never rounded to nothing: "0 %" is zero. */
export function shareText(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return percent(share, share > 0 && share < 0.0995 ? 1 : 0);
}

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  const units = ["B", "kB", "MB", "GB"];
  const step = Math.min(3, Math.max(0, Math.floor(Math.log10(Math.max(number, 1)) / 3)));
  return `${Number((number / 1000 ** step).toPrecision(3))} ${units[step]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** An estimate of a duration, rounded. */
export function about(seconds) {
  if (seconds < 90) return `about ${Math.max(5, Math.round(seconds / 5) * 5)} seconds`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} minutes`;
  return `about ${(seconds / 3600).toFixed(1)} hours`;
}

/** How long ago; `when` gives the exact time in its tooltip. */
export function ago(text) {
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(text).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
}

export function exactTime(text) {
  return new Date(text).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}

/** A text with a capital first letter. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A word of the API as a sentence begins: "not_measured" → "Not measured". */
export function spoken(word) {
  return capital(String(word).replaceAll("_", " "));
}

export const LOG_LIKELIHOOD = "Log-likelihood: how probable the model finds a row, on average over the rows (a lower bound, in nats per row; higher is better).";

export const COLUMN_KINDS = {
  continuous: "Number", integer: "Whole number", ordinal: "Ordered categories", categorical: "Categories", boolean: "Yes or no",
  datetime: "Date or time", identifier: "Identifier", constant: "Constant",
};

export const JOB_KINDS = {
  train: "Training",
  sample: "Generation",
  score: "Scoring",
  impute: "Imputation",
  encode: "Encoding",
  report: "Report",
};

/** A JSON cell as the table writes it: booleans as the column's two categories, such as "no" and "yes". */
export function written(column, value) {
  return typeof value === "boolean" && column.levels ? String(column.levels[Number(value)]) : value;
}

/** A profile's column with its categories as the table writes them. */
export function writtenLevels(column, found) {
  return found?.levels ? { ...found, levels: found.levels.map((one) => ({ ...one, level: written(column, one.level) })) } : found;
}

/** The kind of a job, its model and its dataset: "Training of churn model on customers". */
export function jobTitle(job) {
  const names = [job.model_name, job.dataset_name].filter(Boolean);
  return `${JOB_KINDS[job.kind]}${names.length ? ` of ${[...new Set(names)].join(" on ")}` : ""}`;
}

/** A long text without its middle. */
export function short(text, longest = 24) {
  const letters = [...String(text)];
  if (letters.length <= longest) return letters.join("");
  const end = Math.floor((longest - 1) / 3);
  return `${letters.slice(0, longest - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}
