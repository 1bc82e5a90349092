// Lists of datasets, models and jobs. The service searches, sorts and divides them into pages, so that long lists are as fast as short ones.

import { read } from "./api.js";
import { dataTable, empty, head, problemBox, status, verdict, when } from "./components.js";
import { fill, h } from "./elements.js";
import { bytes, count, duration, figure, JOB_KINDS, jobTitle, LOG_LIKELIHOOD, many, percent, spoken } from "./words.js";

const LIMIT = 25;
const SORTS = [["newest", "Newest first"], ["oldest", "Oldest first"], ["name", "By name"]];
const MODEL_STATES = ["training", "ready", "failed", "cancelled"];
const JOB_STATES = ["queued", "running", "succeeded", "failed", "cancelled"];

const LISTS = {
  datasets: {
    title: "Datasets", filters: { sort: SORTS }, hasSearch: true,
    heads: ["Name", ["Rows", "number"], ["Columns", "number"], ["Size", "number"], "Uploaded", "ID"],
    cells: (one) => [link(`/datasets/${one.id}`, one.name), count(one.rows), one.tables ? `in ${many(one.tables.length, "table")}` : count(one.columns), bytes(one.size_bytes), when(one.created_at), code(one.id)],
    none: () => empty("No datasets yet", "Upload a table to start.", h("a.button.main", { href: "/" }, "Upload a table")),
  },
  models: {
    title: "Models", filters: { status: states(MODEL_STATES), sort: SORTS }, hasSearch: true, more: { brief: "true" },
    heads: ["Name", "Status", ["Held-out log-likelihood", "number"], "May the synthetic rows be shared?", ["Size", "number"], "Created", "ID"],
    cells: (one) => [
      link(one.status === "training" ? `/jobs/${one.job_id}` : `/models/${one.id}`, one.name), status(one.status),
      figure(one.bound_held_out, 4), worst(one.report), bytes(one.artifact_bytes), when(one.created_at), code(one.id)],
    note: LOG_LIKELIHOOD,
    none: () => empty("No models yet", "Open a dataset and train a model on it.", h("a.button.main", { href: "/datasets" }, "View datasets")),
  },
  jobs: {
    title: "Jobs", filters: { status: states(JOB_STATES), kind: [["", "All kinds"], ...Object.entries(JOB_KINDS)] },
    heads: ["Job", "Status", "Progress", "Queue", ["Attempt", "number"], ["Time", "number"], "Requested", "ID"],
    cells: (one) => [
      link(`/jobs/${one.id}`, jobTitle(one)), status(one.status), progress(one),
      `${one.queue}${one.priority ? `, ${one.priority < 0 ? "low" : "high"} priority` : ""}`, count(one.attempt), took(one), when(one.created_at), code(one.id)],
    none: () => empty("No jobs yet", "Training, reports and large requests run as jobs.", h("a.button.main", { href: "/" }, "Go to the home page")),
  },
};

function states(words) {
  return [["", "All statuses"], ...words.map((word) => [word, spoken(word)])];
}

export async function show({ place, words: [kind], signal, session }) {
  const list = LISTS[kind];
  const asked = new URLSearchParams(location.search);
  const table = h("div.stack");
  const find = async () => {
    const query = new URLSearchParams([...asked].filter(([, value]) => value !== ""));
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    await firstPage(list, kind, query, table, signal);
  };
  fill(place, head({ title: list.title, actions: kind === "jobs" ? ofAdministrators(session) : kind === "datasets" ? [h("a.button", { href: "/connections" }, "Connections"), h("a.button", { href: "/schedules" }, "Schedules")] : [] }), controls(list, asked, find, table), table);
  await find();
}

/** Returns links to webhooks, and to the queues and workers of all workspaces, for users with the scope `admin`. */
function ofAdministrators(session) {
  return session.scopes.includes("admin") ? [h("a.button", { href: "/webhooks" }, "Webhooks"), h("a.button", { href: "/work" }, "Queues and workers")] : [];
}

function controls(list, asked, find, table) {
  let timer;
  const soon = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(() => find().catch((error) => error.name !== "AbortError" && fill(table, problemBox(error))), wait);
  };
  const chooser = ([name, options]) => h("select", { "aria-label": spoken(name), onchange: (event) => { asked.set(name, event.target.value); soon(0); } },
    options.map(([value, text]) => h("option", { value, selected: asked.get(name) === value }, text)));
  const search = h("input", { type: "search", "aria-label": "Search by name or ID", placeholder: "Search by name or ID", value: asked.get("search") ?? "",
    oninput: (event) => { asked.set("search", event.target.value.trim()); soon(200); } });
  return h("div.row", { role: "search" }, list.hasSearch ? search : null, Object.entries(list.filters).map(chooser));
}

async function firstPage(list, kind, query, table, signal) {
  const url = (cursor) => `/v1/${kind}?${new URLSearchParams([...query, ...Object.entries(list.more ?? {}), ["limit", LIMIT], ...(cursor ? [["cursor", cursor]] : [])])}`;
  const page = await read(url(), { signal });
  if (!page.items.length) {
    const isFiltered = [...query.keys()].some((name) => name !== "sort");
    fill(table, isFiltered ? empty("No matches", "No entry matches the search and the filters.") : list.none());
    return;
  }
  const shown = dataTable(list.title, list.heads, page.items.map(list.cells));
  const foot = h("div.row");
  fill(table, shown, list.note ? h("p.tiny.soft", {}, list.note) : null, foot);
  const body = shown.querySelector("tbody");
  const more = (next) => {
    const total = many(body.rows.length, "entry").replace("entrys", "entries");
    fill(foot, h("span.soft", { role: "status" }, next ? `${total} shown` : total), next ? h("button", { type: "button", onclick: () => grow(next) }, "Show more") : null);
  };
  const grow = async (cursor) => {
    try {
      const next = await read(url(cursor), { signal });
      body.append(...dataTable("", list.heads, next.items.map(list.cells)).querySelector("tbody").rows);
      more(next.next_cursor);
    } catch (error) {
      if (error.name !== "AbortError") fill(foot, problemBox(error));
    }
  };
  more(page.next_cursor);
}

function link(path, text) {
  return h("a", { href: path }, text);
}

function code(id) {
  return h("code.soft.tiny", {}, id);
}

const ORDER = ["red", "amber", "green", "not_measured"];

/** Returns a report's verdict on sharing the rows; for reports of older versions the worst verdict of a part. */
function worst(report) {
  if (!report) return h("span.soft", {}, "no report");
  return verdict(report.decisions.rows ?? ORDER.find((word) => Object.values(report.verdicts).includes(word)));
}

function progress(job) {
  if (job.status !== "running") return job.status === "queued" ? "waiting" : "–";
  const left = job.progress.seconds_left;
  return `${percent(job.progress.fraction ?? 0)}${left ? `, ${duration(left)} left` : ""}`;
}

function took(job) {
  if (!job.started_at) return "–";
  return duration((Date.parse(job.finished_at ?? new Date().toISOString()) - Date.parse(job.started_at)) / 1000);
}
