// The page of schedules: trainings that the service repeats, and the log of their runs.

import { ask, pause, read } from "./api.js";
import { dataTable, deleteButton, findingList, head, status, submitting, when, workButton, writing } from "./components.js";
import { sourceInputs, targetInputs } from "./connections.js";
import { fill, h } from "./elements.js";
import { count, exactTime } from "./words.js";

const EVERY_MILLISECONDS = 3_000;
const MISSED = "due times at which no service was running";

export async function show({ place, signal, reveal }) {
  const told = h("div");
  const list = h("div.stack");
  const draw = async () => fill(list, ...(await cards(told, draw, signal)));
  const connections = (await read("/v1/connections?limit=100", { signal })).items;
  fill(place,
    head({ crumbs: [["Datasets", "/datasets"]], title: "Schedules", facts: ["Trainings that are repeated at certain times"] }),
    connections.length ? form(connections, told, draw) : null,
    connections.length ? null : h("p.soft", {}, "Schedules read tables from ", h("a", { href: "/connections" }, "connections"), ". Add a connection first."), told, list);
  for (;;) {
    if (!list.contains(document.activeElement)) await draw();  // a button that has the focus stays
    reveal();
    await pause(EVERY_MILLISECONDS, signal);
  }
}

function form(connections, told, draw) {
  const field = (text, input) => h("label.field", {}, text, input);
  const name = h("input", { required: true, maxlength: 200 });
  const cron = h("input", { required: true, maxlength: 100, value: "0 3 * * *", spellcheck: false });
  const zone = h("input", { required: true, maxlength: 100, value: Intl.DateTimeFormat().resolvedOptions().timeZone, spellcheck: false });
  const [source, given] = sourceInputs(connections);
  const preset = h("input", { required: true, value: "default", spellcheck: false });
  const rows = h("input", { type: "number", min: 1 });
  const [target, writtenTo] = targetInputs([{ name: "", url: "", title: "Nowhere" }, ...connections], [["replace", "Replace"], ["append", "Append"]]);
  const button = writing(h("button.main", { type: "submit" }, "Add schedule"));
  const onsubmit = submitting(button, told, async () => {
    const json = { name: name.value.trim(), cron: cron.value.trim(), time_zone: zone.value.trim(), source: given(), training: { preset: preset.value.trim() } };
    if (rows.value) json.sample = { rows: Number(rows.value), format: "parquet" };
    if (writtenTo()) json.export = writtenTo();
    await ask("/v1/schedules", { method: "POST", json });
    name.value = "";
    await draw();
  });
  return h("form.card.stack", { onsubmit },
    h("div.row", {}, field("Name", name), field("Times (cron)", cron), field("Time zone", zone)),
    h("div.row", {}, source),
    h("div.row", {}, field("Preset", preset), field("Synthetic rows to generate (optional)", rows), target),
    h("p.tiny.soft", {}, "Times in cron format: minute, hour, day of month, month and day of week. 0 3 * * * is every day at 3:00."),
    h("div.row", {}, button));
}

async function cards(told, draw, signal) {
  const { items } = await read("/v1/schedules?limit=100", { signal });
  if (!items.length) return [h("p.soft", {}, "There are no schedules.")];
  return Promise.all(items.map(async (one) => card(one, (await read(`/v1/schedules/${one.id}/runs?limit=10`, { signal })).items, told, draw)));
}

function card(one, runs, told, draw) {
  const path = `/v1/schedules/${one.id}`;
  const act = (text, url, options) => writing(workButton("button", text, told, async () => {
    await ask(url, options);
    await draw();
  }));
  const change = (text, json) => act(text, path, { method: "PATCH", json });
  const hasChanged = runs[0]?.error?.code === "schema-changed";
  const from = one.source ? `${one.source.connection}: ${one.source.table ?? one.source.query ?? one.source.key}` : one.dataset_id;
  const buttons = h("div.row", {},
    act("Run now", `${path}/runs`, { method: "POST" }),
    one.paused ? change("Resume", { paused: false }) : change("Pause", { paused: true }),
    hasChanged ? change("Accept the changed columns", { columns: null }) : null,
    deleteButton(path, told, `Delete the schedule ${one.name}?`, "The log of its runs is deleted. Datasets, models and synthetic rows are kept.", "Delete", draw));
  return h("section.card.stack", { "aria-label": one.name },
    h("h2", {}, one.name), h("p.tiny", {}, h("code", {}, one.cron), ` ${one.time_zone}, from `, h("code", {}, from)),
    h("p.soft", {}, one.paused ? "Paused" : `Next run: ${exactTime(one.next_at)}`), buttons,
    runs.length ? dataTable(`Runs of ${one.name}`, ["Due", "Status", "Results", ["Missed times", "number"], "Remarks"],
      runs.map((run) => [when(run.due_at), status(run.status), made(run), h("span", { title: MISSED }, count(run.missed)), remarks(run)])) : h("p.soft", {}, "There were no runs yet."));
}

function made(run) {
  const links = [["Dataset", "datasets", run.dataset_id], ["Training", "jobs", run.training_job_id], ["Model", "models", run.model_id], ["Synthetic rows", "jobs", run.sample_job_id]];
  return h("span.row", {}, links.filter(([, , id]) => id).map(([text, kind, id]) => h("a", { href: `/${kind}/${id}` }, text)));
}

function remarks(run) {
  if (run.status === "skipped") return "An earlier run was still running.";
  if (!run.error) return run.finished_at ? h("span", {}, "Ended ", when(run.finished_at)) : "";
  return run.error.problems.length ? findingList(run.error.problems) : run.error.message;
}
