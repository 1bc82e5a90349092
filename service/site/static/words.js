// Functions that write numbers, durations and names as text.

const plain = new Intl.NumberFormat("en");

export function count(number) {
  return number === null || number === undefined ? "–" : plain.format(number);
}

/** Returns a count with its noun: "1 row", "2,000 rows". */
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

/** Returns a number with this many decimals, so that numbers of a column align. */
export function fixed(value, decimals) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return value.toFixed(decimals).replace("-", "−");
}

/** Returns the largest number of decimals that any of the numbers has. */
export function decimalsOf(numbers) {
  const written = numbers.map((number) => String(number).split("."));
  return Math.max(0, ...written.map(([, decimals = ""]) => (/e/.test(decimals) ? 0 : decimals.length)));
}

export function percent(share, digits = 0) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`.replace("-", "−");
}

/** Returns a share in percent; only zero is written as "0 %". */
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

/** Returns an estimated duration as rounded text. */
export function about(seconds) {
  if (seconds < 90) return `about ${Math.max(5, Math.round(seconds / 5) * 5)} seconds`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} minutes`;
  return `about ${(seconds / 3600).toFixed(1)} hours`;
}

/** Returns in words how long ago a time was. */
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

/** Returns the text with a capital first letter. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns a message of the API as a sentence. */
export function sentence(text) {
  return /[.!?]$/.test(text) ? capital(text) : `${capital(text)}.`;
}

/** Returns a word of the API as a sentence begins: "not_measured" → "Not measured". */
export function spoken(word) {
  return capital(String(word).replaceAll("_", " "));
}

export const LOG_LIKELIHOOD = "Log-likelihood: the logarithm of the probability that the model gives a row, on average (a lower bound, in nats per row; higher is better). Training rows are used to fit the model; held-out rows only decide when training stops.";

/** Returns the number of rows that a model was fitted to, without the held-out rows of its training record. */
export function trainingRows({ rows, held_out_rows: heldOut = 0 }) {
  return count(rows && rows - heldOut);
}

export const COLUMN_KINDS = {
  continuous: "Number", integer: "Whole number", ordinal: "Ordered categories", categorical: "Categories", boolean: "Yes or no",
  datetime: "Date or time", identifier: "Identifier", constant: "Constant",
};

export const JOB_KINDS = {
  train: "Training",
  sample: "Generation",
  score: "Scoring",
  impute: "Imputation",
  encode: "Latent vectors",
  report: "Report",
};

/** Returns a JSON cell as the uploaded table contains it: a boolean as one of the column's two categories, such as "no" and "yes". */
export function written(column, value) {
  return typeof value === "boolean" && column.levels ? String(column.levels[Number(value)]) : value;
}

/** Returns a column's profile with its categories as the uploaded table contains them. */
export function writtenLevels(column, found) {
  return found?.levels ? { ...found, levels: found.levels.map((one) => ({ ...one, level: written(column, one.level) })) } : found;
}

/** Returns a title for a job: "Training of churn model on customers". */
export function jobTitle(job) {
  const names = [job.model_name, job.dataset_name].filter(Boolean);
  return `${JOB_KINDS[job.kind]}${names.length ? ` of ${[...new Set(names)].join(" on ")}` : ""}`;
}

/** Returns the text, without its middle if it is long. */
export function short(text, longest = 24) {
  const letters = [...String(text)];
  if (letters.length <= longest) return letters.join("");
  const end = Math.floor((longest - 1) / 3);
  return `${letters.slice(0, longest - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}
