// The page of webhooks: URLs that the service tells of events, and the log of their deliveries.

import { ask, pause, Problem, read } from "./api.js";
import { dataTable, deleteButton, head, submitting, when, workButton } from "./components.js";
import { fill, h } from "./elements.js";
import { count, exactTime } from "./words.js";

const EVERY_MILLISECONDS = 3_000;
const EVENTS = [["job.ended", "Job ended"], ["report.ready", "Report ready"], ["key.expiring", "API key expires within a week"], ["run.ended", "Run of a schedule ended"]];

export async function show({ place, signal, reveal }) {
  const told = h("div");
  const list = h("div.stack");
  const draw = async () => fill(list, ...(await cards(told, draw, signal)));
  fill(place,
    head({ crumbs: [["Jobs", "/jobs"]], title: "Webhooks", facts: ["The service calls these URLs when something happens in this workspace, such as the end of a job"] }),
    form(told, draw), told, list);
  for (;;) {
    if (!list.contains(document.activeElement)) await draw();  // a button that has the focus stays
    reveal();
    await pause(EVERY_MILLISECONDS, signal);
  }
}

function form(told, draw) {
  const url = h("input", { type: "url", required: true, maxlength: 2000, placeholder: "https://…" });
  const boxes = EVENTS.map(([value, text]) => [value, h("input", { type: "checkbox", checked: true }), text]);
  const button = h("button.main", { type: "submit" }, "Add webhook");
  const onsubmit = submitting(button, told, async () => {
    const events = boxes.filter(([, box]) => box.checked).map(([value]) => value);
    if (!events.length) throw new Problem({ title: "No event is chosen", detail: "Choose at least one event.", status: 0 });
    const made = await read("/v1/webhooks", { method: "POST", json: { url: url.value.trim(), events } });
    url.value = "";
    await draw();
    fill(told, secretBox(made.secret));
  });
  return h("form.card.stack", { onsubmit },
    h("label.field", {}, "URL", url),
    h("fieldset.row", {}, h("legend", {}, "Events"), boxes.map(([, box, text]) => h("label.check", {}, box, text))),
    h("div.row", {}, button));
}

function secretBox(secret) {
  return h("div.card.stack", { role: "status" },
    h("h2", {}, "The webhook was added"),
    h("p", {}, "This secret signs its events. It is shown only now; copy it to the receiver."),
    h("code", {}, secret));
}

async function cards(told, draw, signal) {
  const { items } = await read("/v1/webhooks", { signal });
  if (!items.length) return [h("p.soft", {}, "There are no webhooks.")];
  return Promise.all(items.map(async (one) => card(one, await read(`/v1/webhooks/${one.id}/deliveries?limit=10`, { signal }), told, draw)));
}

function card(one, log, told, draw) {
  const path = `/v1/webhooks/${one.id}`;
  const post = (kind, text, what) => workButton(kind, text, told, async () => {
    await ask(`${path}/${what}`, { method: "POST" });
    await draw();
  });
  const remove = deleteButton(path, told, "Delete this webhook?", "No further events are sent to it, and its log is deleted.", "Delete", draw);
  return h("section.card.stack", {},
    h("h2", {}, new URL(one.url).host),
    h("p.tiny", {}, h("code", {}, one.url)),
    h("p.soft", {}, EVENTS.filter(([value]) => one.events.includes(value)).map(([, text]) => text).join(", ")),
    h("div.row", {}, post("button", "Send a test event", "ping"), remove),
    log.items.length
      ? dataTable(`Deliveries to ${one.url}`, ["Event", "About", "Status", ["Attempts", "number"], "Time", ""],
        log.items.map((entry) => [entry.type, h("code.tiny", {}, entry.subject), state(entry), count(entry.attempts), when(entry.created_at),
          post("button.small", "Send again", `deliveries/${entry.id}/retry`)]))
      : h("p.soft", {}, "Nothing was sent yet."));
}

/** Returns what became of a delivery: delivered, given up, or waiting for its next attempt. */
function state(entry) {
  if (entry.delivered_at) return h("span.status.good", {}, `delivered (${entry.status_code})`);
  if (!entry.next_attempt_at) return h("span.status.bad", {}, `given up: ${entry.error}`);
  if (!entry.error) return h("span.status.busy", {}, "waiting");
  return h("span.status.busy", {}, `${entry.error}; next attempt: ${exactTime(entry.next_attempt_at)}`);
}
