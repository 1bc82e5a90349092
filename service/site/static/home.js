// The start page: running jobs, recent datasets and models, failed jobs, and the upload of a table.

import { pause, read } from "./api.js";
import { dropPlace, encodingField, meter, problemBox, status, uploadInto, when, writing } from "./components.js";
import { sourceForm } from "./connections.js";
import { fill, h, say } from "./elements.js";
import { exampleTable } from "./example.js";
import { capital, duration, jobTitle, many, percent, sentence, spoken } from "./words.js";

const DECISIONS = { rows: "May the synthetic rows be shared?", model: "May the model be shared?" };

export async function show({ place, signal, go }) {
  const [running, queued, failed, models, datasets, connections] = await Promise.all([
    read("/v1/jobs?status=running&limit=10", { signal }),
    read("/v1/jobs?status=queued&limit=10", { signal }),
    read("/v1/jobs?status=failed&limit=5", { signal }),
    read("/v1/models?status=ready&limit=6&brief=true", { signal }),
    read("/v1/datasets?limit=6", { signal }),
    read("/v1/connections?limit=100", { signal }),
  ]);
  const isNew = !datasets.items.length && !models.items.length;
  const active = h("section.stack", { "aria-label": "Running and queued jobs" });
  fill(place,
    h("div.head", {}, h("div", {}, h("h1", {}, isNew ? "Upload a table to start" : "Home"),
      h("p.soft", {}, "Train a model on a table. Then generate synthetic rows, score how likely rows are, impute (fill in) missing values, or see which columns depend on each other."))),
    entrance(go),
    sourceForm(connections.items, go),
    active,
    failed.items.length ? section("Failed jobs", "/jobs?status=failed", failed.items.map(failedLine)) : null,
    isNew ? firstSteps() : h("div.grid.two", {},
      section("Ready models", "/models", models.items.map(modelLine), "No model is ready yet. Open a dataset and train a model on it."),
      section("Datasets", "/datasets", datasets.items.map(datasetLine), "No datasets yet. Upload a table above.")));
  watch(active, [...running.items, ...queued.items], signal, go);
}

/** Returns the upload area for a table, with the button that uploads the example. */
function entrance(go) {
  const place = h("div.stack");
  const encoding = encodingField();
  let last = [];
  const take = async (files, invalid_references) => {
    last = files;
    const said = { ...encoding.query(), ...(invalid_references ? { schema: JSON.stringify({ invalid_references }) } : {}) };
    const name = files.length > 1 ? "" : files[0].name.replace(/(\.(csv|tsv|txt|parquet|gz|zip))+$/i, "").slice(0, 200) || "table";
    const query = new URLSearchParams(name ? { name, ...said } : {});
    const dataset = await uploadInto(place, `/v1/datasets?${query}`, files, entry, name ? {} : said);
    if (dataset && place.isConnected) go(`/datasets/${dataset.id}`);
    else if (dataset) say(`${dataset.name} is uploaded.`);
  };
  const example = () => {
    encoding.clear();
    return take([new File([exampleTable()], "café orders.csv")]);
  };
  const drop = () => dropPlace({
    title: "Upload a table",
    hint: "Drop a file here or choose one: CSV, gzipped CSV or Parquet. Several files, or a ZIP archive of them, become one database of linked tables. The data stays on this service.",
    take, many: true,
    extra: writing(h("button", { type: "button", onclick: example }, "Use the example table")),
  });
  const cleaned = (error) => (error?.document?.errors?.some((found) => /^\/tables\/[^/]+\/foreign_keys\/\d+$/.test(found.pointer)) ? h("div.row", {}, "Upload again and",
    h("button", { type: "button", onclick: () => take(last, "drop") }, "remove these rows"), h("button", { type: "button", onclick: () => take(last, "null") }, "set these keys to missing")) : null);
  const entry = (error) => [cleaned(error), drop(), encoding.element];
  fill(place, entry());
  return place;
}

function section(title, path, lines, none) {
  return h("section.stack", { "aria-label": title },
    h("div.row.ends", {}, h("h2", {}, title), h("a", { href: path }, `All ${title.toLowerCase()}`)),
    lines.length ? h("ul.listed", {}, lines) : h("p.soft", {}, none));
}

function modelLine(model) {
  const decided = Object.entries(model.report?.decisions ?? {});
  const verdicts = decided.length ? decided : Object.entries(model.report?.verdicts ?? {});
  const found = verdicts.map(([name, word]) => h(`span.status.tiny.${word}`, {}, `${DECISIONS[name] ?? capital(name)}: ${spoken(word).toLowerCase()}`));
  return h("li", {}, h("div", {}, h("a", { href: `/models/${model.id}` }, model.name),
    h("div.row", {}, found.length ? found : h("span.tiny.soft", {}, "No report yet"))), h("span.tiny.soft.number", {}, when(model.created_at)));
}

function datasetLine(dataset) {
  return h("li", {}, h("div", {}, h("a", { href: `/datasets/${dataset.id}` }, dataset.name), h("div.tiny.soft.mono", {}, dataset.id)),
    h("div.tiny.soft.number", {}, dataset.tables ? `${many(dataset.tables.length, "table")}, ${many(dataset.rows, "row")}` : `${many(dataset.rows, "row")} × ${many(dataset.columns, "column")}`));
}

function failedLine(job) {
  return h("li", {}, h("div", {}, h("a", { href: `/jobs/${job.id}` }, `${jobTitle(job)} failed`),
    h("div.tiny.soft", {}, job.error?.message ? sentence(job.error.message) : "It stopped without an error message.")), h("span.tiny.soft", {}, when(job.finished_at ?? job.created_at)));
}

function firstSteps() {
  const steps = [
    ["Upload", "The service infers the kind, limits and missing values of each column and the rules between columns. You review and correct them."],
    ["Train", "Choose a preset and start. A small table takes a minute or two; the page shows an estimate."],
    ["Use", "Read the report on quality and privacy, then generate rows, score rows, impute missing values or view dependencies."],
  ];
  return h("ol.grid.steps", {}, steps.map(([title, text], i) => h("li.card", {}, h("h3", {}, `${i + 1}. ${title}`), h("p.soft", {}, text))));
}

/** Shows the unfinished jobs and follows them until all have ended. */
function watch(place, jobs, signal, go) {
  if (!jobs.length) return;
  const list = h("ul.listed");
  fill(place, h("div.row.ends", {}, h("h2", {}, "Running and queued jobs"), h("a", { href: "/jobs" }, "All jobs")), list);
  for (const job of jobs) list.append(jobLine(job));
  refresh(list, signal, go).catch((error) => signal.aborted || fill(place, problemBox(error)));
}

function jobLine(job) {
  const [bar, set] = meter(`${jobTitle(job)}, progress`);
  set(job.status === "running" ? job.progress.fraction : 0);
  const left = job.progress.seconds_left;
  return h("li", {}, h("div.fills", {}, h("div.row", {}, h("a", { href: `/jobs/${job.id}` }, jobTitle(job)), status(job.status),
    h("span.tiny.soft.mono", {}, job.id)), bar),
  h("div.tiny.soft.number", {}, job.status === "running" ? percent(job.progress.fraction ?? 0) : "queued",
    left ? `, ${duration(left)} left` : ""));
}

/** Requests the list of running jobs every two seconds, in one request for all; ends when none is left. */
async function refresh(list, signal, go) {
  for (;;) {
    await pause(2000, signal);
    if (document.hidden) continue;
    const [running, queued] = await Promise.all(["running", "queued"].map((word) => read(`/v1/jobs?status=${word}&limit=10`, { signal })));
    const jobs = [...running.items, ...queued.items];
    if (!jobs.length) return go("/", { replace: true });
    fill(list, jobs.map(jobLine));
  }
}
