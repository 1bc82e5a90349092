"""The whole way on one table: upload, train, sample, score, map; over REST, as users go it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gcvae_cli.errors import CommandError, ServerError, UnfinishedJobError
from gcvae_cli.outputs import opened_output, write_text
from gcvae_cli.ports import free_port
from gcvae_cli.progress import progress_bar, training_note
from gcvae_client import Client, ClientError, JobError

Document = dict[str, Any]

_READY_SECONDS = 60.0
_GRACE_SECONDS = 40.0
_MAPS = {"total": "dependencies", "expected": "dependencies-copula"}
_DIABETES = "diabetes.csv"
_RESULTS = {
    "synthetic.csv": "as many synthetic rows as the table has",
    "scores.csv": "how likely the model finds each row of the table",
    "comparison.png": "real against synthetic, column by column",
    "dependencies.png": "which columns depend on which, in the model's rows",
    "dependencies.json": "the same in numbers",
    "dependencies-copula.png": "what is left of it once z is known: the decoder's copula",
    "dependencies-copula.json": "the same in numbers",
    "job.json": "the training job as the service tells it",
}
_DIABETES_SCHEMA: Document = {"columns": [{"name": "sex", "kind": "categorical"}]}


def run_demo(table: Path | None, output: Path, *, settings: Mapping[str, Any], seed: int) -> None:
    """Goes the whole way and leaves the results in `output`; ends the service it started.

    Args:
        table: None takes scikit-learn's diabetes table, in its original units.
        settings: Training settings in the place of the preset's own.

    Raises:
        ServerError: the service does not start.
        UnfinishedJobError: training failed or was cancelled.
        CommandError: the service refused the table.
    """
    output.mkdir(parents=True, exist_ok=True)
    _clear(output, table)
    schema = None if table is not None else _DIABETES_SCHEMA
    source = table if table is not None else _write_diabetes(output / _DIABETES)
    with _client_errors(), _embedded_service(output / "service") as url, Client(url) as client:
        print(f"service   {url}", flush=True)
        _cancel_what_was_left(client)
        dataset = _upload(client, source, schema)
        model = _train(client, dataset, settings, seed, output)
        _sample(client, model, dataset["rows"], seed, output)
        _score(client, model, source, seed, output)
        _draw_maps(client, model, output)
    _draw_comparison(source, dataset["schema"], output)
    _tell_results(output)


def _clear(output: Path, table: Path | None) -> None:
    """Takes away an earlier demo's results, so that none stands beside this one's."""
    for name in (*_RESULTS, _DIABETES):
        path = output / name
        if table is None or path.resolve() != table.resolve():
            path.unlink(missing_ok=True)


def _write_diabetes(path: Path) -> Path:
    """Writes scikit-learn's diabetes table: 442 patients, ten measurements, the disease later."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(scaled=False, as_frame=True).frame
    whole = [name for name in frame if (frame[name] == frame[name].round()).all()]
    with opened_output(str(path)) as stream:
        frame.astype(dict.fromkeys(whole, "int64")).to_csv(stream, index=False, lineterminator="\n")
    return path


@contextmanager
def _embedded_service(data_dir: Path) -> Iterator[str]:
    """A `gcvae serve` of our own and its URL; ended, with everything it started, afterwards."""
    data_dir.mkdir(parents=True, exist_ok=True)
    port = free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "gcvae_cli", "serve", "--port", str(port)]
    command += ["--data-dir", str(data_dir), "--parent", str(os.getpid())]
    log = data_dir / "service.log"
    with log.open("w") as stream:
        # A session of its own: Ctrl-C comes to the demo alone, which then ends the service.
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    with Client(url, retries=0) as client:
        while not client.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"the service did not start; {log} says why")
            time.sleep(0.2)


def _cancel_what_was_left(client: Client) -> None:
    """An earlier demo may have been killed in the midst of training; its job would come first."""
    for status in ("queued", "running"):
        for job in client.jobs(status=status):
            client.cancel(job)


def _upload(client: Client, source: Path, schema: Document | None) -> Document:
    dataset = client.upload(source, schema=schema)
    print(f"uploaded  {source.name}: {dataset['rows']:,} rows, {dataset['columns']} columns")
    for warning in dataset["warnings"]:
        print(f"          note: {warning}")
    sys.stdout.flush()
    return dataset


def _train(
    client: Client, dataset: Document, settings: Mapping[str, Any], seed: int, output: Path
) -> Document:
    started_at = time.monotonic()
    model = client.train(dataset["id"], seed=seed, **settings)
    print(f"training  {model['id']} …", flush=True)
    try:
        with progress_bar("training") as bar:
            job = client.wait(model, lambda job: bar.move(*_reading(job)))
    except BaseException:
        with suppress(ClientError):
            client.cancel(model)
        raise
    write_text(str(output / "job.json"), json.dumps(job, indent=2, ensure_ascii=False))
    trained = client.model(model["id"])
    seconds = time.monotonic() - started_at
    bound = trained["bound_held_out"]
    print(f"trained   in {seconds:.0f} s, held-out bound {bound:.2f} nats per row", flush=True)
    return trained


def _reading(job: Document) -> tuple[float, str]:
    """Where the bar stands, and the words beside it."""
    progress = job["progress"]
    return progress["fraction"] or 0.0, training_note(progress) or str(job["status"])


def _sample(client: Client, model: Document, rows: int, seed: int, output: Path) -> None:
    client.sample(model["id"], rows, seed=seed, to=output / "synthetic.csv")
    print(f"sampled   {rows:,} synthetic rows", flush=True)


def _score(client: Client, model: Document, source: Path, seed: int, output: Path) -> None:
    with progress_bar("scoring") as bar:
        client.score(
            model["id"],
            source,
            seed=seed,
            format="csv",
            to=output / "scores.csv",
            on_progress=lambda job: bar.move(*_reading(job)),
        )
    print("scored    every row of the table", flush=True)


def _draw_maps(client: Client, model: Document, output: Path) -> None:
    for kind, name in _MAPS.items():
        client.dependencies(model["id"], kind, format="png", to=output / f"{name}.png")
        client.dependencies(model["id"], kind, format="json", to=output / f"{name}.json")
    print("mapped    the dependencies", flush=True)


def _draw_comparison(source: Path, schema: Document, output: Path) -> None:
    from gcvae.schema import TableSchema
    from gcvae.tables import parse_table, read_table
    from gcvae_cli.comparison import draw_comparison

    columns = TableSchema.from_json(schema)
    real, synthetic = (
        parse_table(read_table(path), columns) for path in (source, output / "synthetic.csv")
    )
    with opened_output(str(output / "comparison.png")) as stream:
        draw_comparison(real, synthetic, columns, stream)


def _tell_results(output: Path) -> None:
    print(f"\n{output}/ holds")
    for name, meaning in _RESULTS.items():
        print(f"  {name:<28}{meaning}")
    print("\nTo go on with this model, start the service on the same records:")
    print(f"  {_own_command()} serve --data-dir {output / 'service'}")


def _own_command() -> str:
    """How this command can be called again from here."""
    beside_python = Path(sys.executable).with_name("gcvae")
    if beside_python.is_relative_to(Path.cwd()):
        return str(beside_python.relative_to(Path.cwd()))
    return str(beside_python) if beside_python.exists() else "gcvae"


@contextmanager
def _client_errors() -> Iterator[None]:
    """Turns what the client raises into one line."""
    try:
        yield
    except JobError as error:
        raise UnfinishedJobError(str(error)) from error
    except ClientError as error:
        raise CommandError(str(error)) from error
