// The page for operators: queues, running jobs and workers of all workspaces.

import { pause, read } from "./api.js";
import { dataTable, head, meter, when } from "./components.js";
import { fill, h } from "./elements.js";
import { count, duration, JOB_KINDS, spoken } from "./words.js";

const EVERY_MILLISECONDS = 3_000;

export async function show({ place, signal, reveal }) {
  const told = h("div.stack");
  fill(place, head({ crumbs: [["Jobs", "/jobs"]], title: "Queues and workers", facts: ["Waiting jobs, running jobs and workers of all workspaces"] }), told);
  for (;;) {
    draw(told, await read("/v1/work", { signal }));
    reveal();
    await pause(EVERY_MILLISECONDS, signal);
  }
}

function draw(place, work) {
  const workers = work.workers.filter((one) => !one.is_lost);
  const slots = workers.reduce((sum, one) => sum + one.slots.length, 0);
  const sum = (name) => work.queues.reduce((total, one) => total + one[name], 0);
  const facts = [["Waiting", sum("queued")], ["Running", sum("running")], ["Workers", workers.length], ["Slots (jobs at a time)", slots]];
  fill(place,
    h("dl.stats", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, count(value))))),
    slots ? null : h("div.problem", { role: "alert" }, h("h2", {}, "No worker is running"), h("p", {}, "Jobs stay queued until a worker is started: ", h("code", {}, "gcvae worker"))),
    part("Queues", "No jobs are waiting or running.", ["Workspace", "Queue", ["Waiting", "number"], ["Running", "number"], "Longest waiting time"],
      work.queues.map((one) => [one.workspace, one.queue, count(one.queued), count(one.running), since(one.oldest_queued_at, work.now)])),
    part("Running jobs", "No worker is running a job.", ["Job", "Workspace", "Progress", "Worker", ["Attempt", "number"], ["Time", "number"], "Lease"],
      work.jobs.map((one) => [job(one), one.workspace, progress(one), h("code.tiny", {}, one.worker ?? "–"), count(one.attempt), since(one.started_at, work.now), lease(one, work.now)])),
    work.jobs.length ? h("p.tiny.soft", {}, "Lease: the time for which a worker owns a job. The worker renews it; if it ends, another worker takes over the job.") : null,
    part("Workers", "No worker was seen within the last hour.", ["Worker", "State", "Slots", "Version", "Started", "Last seen"],
      work.workers.map((one) => [h("code.tiny", {}, one.name), state(one.is_lost), one.slots.map((slot) => h("div", {}, slot)), one.version, when(one.started_at), when(one.seen_at)])));
}

function part(title, none, heads, rows) {
  return h("section.card.stack", {}, h("h2", {}, title), rows.length ? dataTable(title, heads, rows) : h("p.soft", {}, none));
}

/** Returns a job's kind and id; for a shard the id of its job, which is the one that users see. */
function job(one) {
  return h("div", {}, `${JOB_KINDS[one.kind]}${one.parent_id ? " (shard)" : ""}`, h("div.tiny.soft", {}, h("code", {}, one.parent_id ?? one.id)));
}

function progress(one) {
  const [bar, set] = meter(`Progress of ${one.id}`);
  set(one.progress.fraction ?? null);
  return h("div", {}, h("span.tiny", {}, spoken(one.progress.phase ?? "starting")), bar);
}

function since(text, now) {
  return text ? duration((Date.parse(now) - Date.parse(text)) / 1000) : "–";
}

function lease(one, now) {
  return one.is_lost ? h("span.status.bad", {}, "lost") : `${duration((Date.parse(one.lease_expires_at) - Date.parse(now)) / 1000)} left`;
}

function state(isLost) {
  return h(isLost ? "span.status.bad" : "span.status.good", {}, isLost ? "lost" : "alive");
}
