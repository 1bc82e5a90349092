// The page of a job: its progress, its training curves, and its actions.

import { follow, isOver, read } from "./api.js";
import { findingList, head, meter, pressed, status, when, writing } from "./components.js";
import { curves } from "./charts.js";
import { fill, h, say } from "./elements.js";
import { about, count, duration, exactTime, figure, JOB_KINDS, jobTitle, LOG_LIKELIHOOD, percent, sentence, spoken } from "./words.js";

export async function show({ place, words: [id], signal, go, reveal }) {
  const job = await read(`/v1/jobs/${id}`, { signal });
  const model = job.model_id ? await read(`/v1/models/${job.model_id}`, { signal }).catch(() => null) : null;
  const page = parts(job, model, go, signal);
  fill(place, page.elements);
  page.draw(job);
  reveal();
  if (isOver(job)) return;
  const last = await follow(id, signal, page.draw);
  say(`Job ${last.status}.`);
  if (last.kind === "train" && last.status === "succeeded") page.model(await read(`/v1/models/${last.model_id}`, { signal }));
}

function parts(job, model, go, signal) {
  const [bar, set] = meter(`${JOB_KINDS[job.kind]}, progress`, true);
  const places = { heading: h("div"), state: h("div.row.ends"), facts: h("dl.stats"), curve: h("figure"), ending: h("div") };
  const told = h("div");
  const points = remembered(job.id);
  let record = model?.record;
  let last = job;
  const drawCurves = () => job.kind === "train" && fill(places.curve, picture(record?.history, points));
  const draw = (now) => {
    last = now;
    fill(places.heading, heading(now, model, actions(now, told, go, signal)));
    set(now.status === "succeeded" ? 1 : now.progress.fraction);
    fill(places.state, stateLine(now));
    fill(places.facts, factsOf(now));
    fill(places.ending, ending(now, model));
    note(points, now);
    drawCurves();
  };
  return {
    elements: [places.heading, told, h("div.card.stack", {}, places.state, bar), places.ending, places.facts,
      job.kind === "train" && model?.kind !== "database" ? h("section.card.stack", { "aria-label": "Log-likelihood" }, h("div.row.ends", {}, h("h2", {}, "Log-likelihood"),
        h("div.row", {}, h("span.key", {}, "training rows"), h("span.key.drawn", {}, "held-out rows"))), places.curve,
      h("p.tiny.soft", {}, LOG_LIKELIHOOD)) : null],
    draw,
    model: (ready) => {
      record = ready.record;
      draw(last);
    },
  };
}

function heading(job, model, buttons) {
  const crumbs = [["Jobs", "/jobs"]];
  if (job.dataset_id) crumbs.push([job.dataset_name, `/datasets/${job.dataset_id}`]);
  if (job.model_id && job.kind !== "train") crumbs.push([model?.name ?? "Model", `/models/${job.model_id}`]);
  return head({ crumbs, title: jobTitle(job),
    facts: [status(job.status), ["requested ", when(job.created_at)], h("code", {}, job.id)], actions: buttons });
}

function actions(job, told, go, signal) {
  const post = (what, after) => (event) => pressed(event.target, told, async () => after(await read(`/v1/jobs/${job.id}/${what}`, { method: "POST", signal })));
  if (!isOver(job)) {
    const text = job.cancel_requested ? "Cancelling …" : "Cancel";
    return [writing(h("button.danger", { type: "button", disabled: job.cancel_requested, onclick: post("cancel", () => say("The job is being cancelled.")) }, text))];
  }
  if (job.status === "succeeded") return [];
  return [writing(h("button.main", { type: "button", onclick: post("retry", () => go(`/jobs/${job.id}`, { replace: true })) }, "Try again"))];
}

function stateLine(job) {
  const { phase, fraction, seconds_left: left } = job.progress;
  if (job.status === "queued") return [h("strong", {}, "Waiting for a worker"), h("span.soft", {}, job.estimate ? `Estimated time: ${about(job.estimate.seconds)}` : "")];
  if (job.status === "running") {
    return [h("strong", {}, `${spoken(phase ?? "starting")}${job.progress.table ? `, table ${job.progress.table}` : ""}`), h("span.number", {}, `${percent(fraction ?? 0)}${left ? `, ${duration(left)} left` : ""}`)];
  }
  return [h("strong", {}, spoken(job.status)), h("span.soft", {}, job.finished_at ? exactTime(job.finished_at) : "")];
}

function factsOf(job) {
  const { epoch, epochs, bound_train: train, bound_held_out: held, rows_per_second: speed } = job.progress;
  const took = job.started_at ? (Date.parse(job.finished_at ?? new Date().toISOString()) - Date.parse(job.started_at)) / 1000 : null;
  const facts = [["Time taken", duration(took)], ["Attempt", count(job.attempt)]];
  if (job.kind === "train" && !job.progress.table) {
    facts.push(["Passes over the rows", epoch ? `${count(epoch)} of ${count(epochs)}` : "–"], ["Training log-likelihood", figure(train, 4)], ["Held-out log-likelihood", figure(held, 4)]);
  }
  if (speed) facts.push(["Rows per second", count(Math.round(speed))]);
  if (job.estimate) facts.push(["Estimated time", duration(job.estimate.seconds)]);
  return facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/** Returns what the user can do after the job has ended. */
function ending(job, model) {
  if (job.status === "failed") {
    const { message, code, problems = [], ...more } = job.error ?? {};
    return h("div.problem", { role: "alert" }, h("h3", {}, "The job failed"),
      problems.length > 1 ? findingList(problems) : h("p", {}, message ? sentence(message) : "The job stopped without an error message. Try again; if it fails again, tell the operator."),
      Object.entries(more).filter(([, value]) => typeof value !== "object").map(([name, value]) => h("p.tiny", {}, `${spoken(name)}: ${value}`)),
      h("p", {}, "“Try again” queues the job once more. If it fails with the same message, correct what the message names first.",
        job.dataset_id ? [" ", h("a", { href: `/datasets/${job.dataset_id}` }, "Go to the dataset")] : null));
  }
  if (job.status !== "succeeded") return null;
  if (!job.model_id) return h("div.note.calm", {}, "The result was deleted together with its model.");
  if (job.kind === "train") {
    return h("div.note.calm.row.ends", {}, "The model is ready.", h("a.button.main", { href: `/models/${job.model_id}` }, "Open model"));
  }
  if (job.kind === "report") return h("div.note.calm.row.ends", {}, "The report is ready.", h("a.button.main", { href: `/models/${job.model_id}/report` }, "View report"));
  const collection = { sample: "samples", score: "scores", impute: "imputations", encode: "encodings" }[job.kind];
  return h("div.note.calm.row.ends", {}, `The result is ready${model ? `. Model: ${model.name}` : ""}.`,
    h("a.button.main", { href: `/v1/${collection}/${job.result_id}/content`, download: "" }, "Download"));
}

/** Returns the training curves, from the training record if there is one, else from the progress seen by this page. */
function picture(history, points) {
  const seen = history ?? points.map(([x, train, held]) => ({ step: x, bound_train: train, bound_held_out: held }));
  const line = (name) => seen.filter((one) => Number.isFinite(one[name])).map((one) => [one.step, one[name]]);
  return curves([{ name: "training", css: "train", points: line("bound_train") }, { name: "held out", css: "held", points: line("bound_held_out") }],
    { xName: history ? "step" : "second" });
}

/** Returns the progress of a job that this tab has seen; it is stored, so that a reload keeps the curve. */
function remembered(id) {
  return JSON.parse(sessionStorage.getItem(`curve ${id}`) ?? "[]");
}

function note(points, job) {
  const { bound_train: train, bound_held_out: held } = job.progress;
  const last = points.at(-1);
  if (!Number.isFinite(held) || isOver(job) || (last && last[1] === train && last[2] === held)) return;
  points.push([Math.max(0, Math.round((Date.now() - Date.parse(job.started_at)) / 1000)), train, held]);
  sessionStorage.setItem(`curve ${job.id}`, JSON.stringify(points));
}
