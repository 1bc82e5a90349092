// Calls of the public REST API, which are the only source of data on the pages.

const PAGE_HEADER = { "X-Gcvae-Page": "1" };

/** Error response of the API (its problem+json in `document`), or a failed connection. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail ?? document.title);
    this.document = document;
    this.status = document.status;
  }
}

/** Sends a request to the API and returns the response; throws a Problem if it is an error. */
export async function ask(path, { method = "GET", json, body, headers = {}, signal } = {}) {
  const options = { method, headers: { ...PAGE_HEADER, ...headers }, signal, credentials: "same-origin" };
  if (json !== undefined) {
    options.body = JSON.stringify(json);
    options.headers["Content-Type"] ??= "application/json";
  } else if (body !== undefined) {
    options.body = body;
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** Returns the whole body of a response as "text" or "blob"; throws a Problem if it breaks off. */
export async function bodyOf(response, form = "text") {
  try {
    return await response[form]();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const detail = "The service ended its answer early, or the connection was lost. Try again; if it happens again, tell the operator.";
    throw new Problem({ title: "The answer broke off", detail, status: 0, request_id: response.headers.get("X-Request-Id") });
  }
}

/** Returns the parsed JSON of a response, or null if it is empty. Infinite numbers, which JSON lacks, are supported. */
export async function read(path, options) {
  const response = await ask(path, options);
  return response.status === 204 ? null : parsed(await bodyOf(response));
}

export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(text.replace(/([:,[]\s*-?)Infinity/g, "$11e999"));
  }
}

async function problemOf(response) {
  try {
    return new Problem(await response.json());
  } catch {
    const detail = `The service answered with status ${response.status} without an explanation. Try again; if it happens again, tell the operator.`;
    return new Problem({ title: "Unexpected answer", detail, status: response.status });
  }
}

function unreachable() {
  return new Problem({
    title: "The service cannot be reached",
    detail: "Check that it is running, then try again.",
    status: 0,
  });
}

/** Uploads a body and reports the progress, by XMLHttpRequest because fetch does not report it. */
export function upload(path, body, headers, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries({ ...PAGE_HEADER, ...headers })) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.upload.onload = () => onProgress(1);
    request.onerror = () => reject(unreachable());
    request.onload = () => {
      let document;
      try {
        document = parsed(request.responseText);
      } catch {
        document = { title: "Unexpected answer", detail: `The service answered with status ${request.status} without an explanation. Try again; if it happens again, tell the operator.`, status: request.status };
      }
      if (request.status < 300) resolve(document);
      else reject(new Problem(document));
    };
    request.send(body);
  });
}

/** Returns the media type of a table, determined by the name of its file. */
export function tableType(name) {
  if (/\.parquet$/i.test(name)) return "application/vnd.apache.parquet";
  if (/\.zip$/i.test(name)) return "application/zip";
  return /\.gz$/i.test(name) ? "application/gzip" : "text/csv";
}

/** Polls a job until it ends, at most once a second and not while the page is hidden. */
export async function follow(jobId, signal, onJob) {
  for (;;) {
    const job = await read(`/v1/jobs/${jobId}`, { signal });
    onJob?.(job);
    if (isOver(job)) return job;
    await pause(1000, signal);
    while (document.hidden) await pause(1000, signal);
  }
}

export function isOver(job) {
  return ["succeeded", "failed", "cancelled"].includes(job.status);
}

/** Waits; throws an AbortError when the user leaves the page. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const left = () => {
      clearTimeout(timer);
      reject(new DOMException("left", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", left);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", left, { once: true });
  });
}

/** Returns the response with the rows; if it is 202, waits for the job and downloads its result. */
export async function rowsOf(response, path, signal, onJob) {
  if (response.status !== 202) return response;
  const result = await resultOf(response, signal, onJob);
  return ask(`${path}/${result.id}/content`, { signal });
}

/** Returns the result of a job that a response has queued, after the job has succeeded. */
export async function resultOf(response, signal, onJob) {
  const result = await response.json();
  const job = await follow(result.job_id, signal, onJob);
  if (job.status !== "succeeded") {
    const title = job.status === "failed" ? "The job failed" : "The job was cancelled";
    throw new Problem({ title, detail: job.error?.message ?? "The job stopped without an error message. Try again; if it fails again, tell the operator.", status: 0, job_id: job.id });
  }
  return result;
}

/** Lets the browser save a blob as a file with this name. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
