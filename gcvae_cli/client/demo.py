"""Demonstrates all steps on one table over REST: upload, train, sample, score, map, report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from gcvae.figures.figures import require_matplotlib
from gcvae_cli.client.errors import client_errors
from gcvae_cli.errors import ServerError
from gcvae_cli.outputs import opened_output, write_text
from gcvae_cli.ports import free_port
from gcvae_client import Client, ClientError, NotFoundError

Document = dict[str, Any]

_READY_SECONDS = 60.0
_GRACE_SECONDS = 40.0
_MAPS = {"total": "dependencies", "expected": "dependencies-copula"}
_OUTPUT = Path("demo-out")
_DIABETES = "diabetes.csv"
_TABLE_ENDINGS = (".gz", ".csv", ".parquet")
_OWNER = "table.txt"
"""File that contains the path of the table whose results are in the folder, so that a repeated demo
finds its folder again."""
_RESULTS = {
    "synthetic.csv": "as many synthetic rows as the table has",
    "scores.csv": "log-likelihood of each row of the table",
    "comparison.png": "real vs synthetic, column by column",
    "dependencies.png": "dependencies between columns in synthetic rows",
    "dependencies.json": "the same as numbers",
    "dependencies-copula.png": "dependencies of the decoder's copula, given z",
    "dependencies-copula.json": "the same as numbers",
    "report.html": "report on fidelity, utility and privacy, for a browser",
    "job.json": "the record of the training job",
}
_REPORT_SHARE = 0.1
"""Share of the rows that training sets aside for the report, also for a small table."""
_DIABETES_SCHEMA: Document = {"columns": [{"name": "sex", "kind": "categorical"}]}


def run_demo(
    table: Path | None,
    output: Path | None,
    *,
    encoding: str | None,
    settings: Mapping[str, Any],
    seed: int,
) -> None:
    """Starts a service, uploads a table, trains, generates, scores and maps, saves the results, and
    ends the service.

    Args:
        table: Path of a table; None for scikit-learn's diabetes table, in its original units.
        output: Folder for the results; None for `demo-out`, or a folder in it if a table is given.
        encoding: Encoding of a text file; None for UTF-8.
        settings: Settings that override those of the preset.

    Raises:
        ServerError: The service does not start.
        UnfinishedJobError: Training failed or was cancelled.
        CommandError: The service refused the table.
        ModuleNotFoundError: The server, an optional package, is not installed.
        MissingPackageError: matplotlib is not installed.
    """
    require_matplotlib()
    import_module("service.settings")  # fails here instead of in the service
    if output is None:
        output = _OUTPUT if table is None else folder_of(table, _OUTPUT)
    output.mkdir(parents=True, exist_ok=True)
    _clear(output, table)
    schema = None if table is not None else _DIABETES_SCHEMA
    source = table if table is not None else _write_diabetes(output / _DIABETES)
    with client_errors(), embedded_service(output / "service") as url, Client(url) as client:
        print(f"service   {url}", flush=True)
        _cancel_what_was_left(client)
        dataset = _upload(client, source, schema, encoding)
        model = _train(client, dataset, settings, seed, output)
        _sample(client, model, dataset["rows"], seed, output)
        _score(client, model, source, encoding, seed, output)
        _draw_maps(client, model, output)
        _report(client, model, output)
    _draw_comparison(source, encoding, dataset["schema"], output)
    _tell_results(output)


def folder_of(table: Path, among: Path) -> Path:
    """Returns the folder for a table's results, and creates it if it does not exist.

    It is named after the table's file without extension. If that folder contains anything else than
    results of the same table, a number is appended: `orders`, `orders-2`.

    Args:
        table: Path of the table.
        among: Parent folder of the result folders.
    """
    owner = os.fsencode(f"{table.resolve()}\n")
    for name in _names_of(table):
        folder = among / name
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / _OWNER).write_bytes(owner)
            return folder
        if _owner_of(folder) == owner:
            return folder
    raise AssertionError("there is always another number")


def _names_of(table: Path) -> Iterator[str]:
    name = table.name
    for ending in _TABLE_ENDINGS:
        name = name[: -len(ending)] if name.lower().endswith(ending) else name
    name = name if name.strip(".") else "table"  # `..` would be the parent folder
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _owner_of(folder: Path) -> bytes | None:
    try:
        return (folder / _OWNER).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _clear(output: Path, table: Path | None) -> None:
    for name in (*_RESULTS, _DIABETES):
        path = output / name
        if table is None or path.resolve() != table.resolve():
            path.unlink(missing_ok=True)


def _write_diabetes(path: Path) -> Path:
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(scaled=False, as_frame=True).frame
    whole = [name for name in frame if (frame[name] == frame[name].round()).all()]
    with opened_output(str(path)) as stream:
        frame.astype(dict.fromkeys(whole, "int64")).to_csv(stream, index=False, lineterminator="\n")
    return path


@contextmanager
def embedded_service(data_dir: Path) -> Iterator[str]:
    """Context manager that starts `gcvae serve` on a free port, yields its URL, and ends it.

    Args:
        data_dir: Folder for the data and the log of the service.

    Raises:
        ServerError: The service does not start.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    port = free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "gcvae_cli", "serve", "--port", str(port)]
    command += ["--data-dir", str(data_dir), "--parent", str(os.getpid())]
    log = data_dir / "service.log"
    with log.open("w") as stream:
        # In a new session, Ctrl-C does not reach the service; the demo ends it.
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
                raise ServerError(f"the service did not start; see {log}")
            time.sleep(0.2)


def _cancel_what_was_left(client: Client) -> None:
    """An earlier demo may have been killed during training."""
    for status in ("queued", "running"):
        for job in client.jobs(status=status):
            client.cancel(job)


def _upload(
    client: Client, source: Path, schema: Document | None, encoding: str | None
) -> Document:
    dataset = client.upload(source, schema=schema, encoding=encoding)
    print(f"uploaded  {source.name}: {dataset['rows']:,} rows, {dataset['columns']} columns")
    for warning in dataset["warnings"]:
        print(f"          warning: {warning}")
    sys.stdout.flush()
    return dataset


def _train(
    client: Client, dataset: Document, settings: Mapping[str, Any], seed: int, output: Path
) -> Document:
    started_at = time.monotonic()
    model = client.train(dataset["id"], seed=seed, **{"report_share": _REPORT_SHARE, **settings})
    print(f"training  {model['id']} …", flush=True)
    try:
        job = client.wait(model)
    except BaseException:
        with suppress(ClientError):
            client.cancel(model)
        raise
    write_text(str(output / "job.json"), json.dumps(job, indent=2, ensure_ascii=False))
    trained = client.model(model["id"])
    seconds = time.monotonic() - started_at
    bound = trained["bound_held_out"]
    print(
        f"trained   in {seconds:.0f} s, held-out log-likelihood {bound:.2f} nats per row",
        flush=True,
    )
    return trained


def _sample(client: Client, model: Document, rows: int, seed: int, output: Path) -> None:
    client.sample(model["id"], rows, seed=seed, to=output / "synthetic.csv")
    print(f"sampled   {rows:,} synthetic rows", flush=True)


def _score(
    client: Client, model: Document, source: Path, encoding: str | None, seed: int, output: Path
) -> None:
    options: Document = {"encoding": encoding, "seed": seed, "format": "csv"}
    client.score(model["id"], source, to=output / "scores.csv", **options)
    print("scored    every row of the table", flush=True)


def _draw_maps(client: Client, model: Document, output: Path) -> None:
    first = next(iter(_MAPS))  # all in the same order, so that the pictures can be compared
    for kind, name in _MAPS.items():
        for format in ("png", "json"):
            file = output / f"{name}.{format}"
            client.dependencies(model, kind, order=first, format=format, to=file)
    print("mapped    the dependencies", flush=True)


def _report(client: Client, model: Document, output: Path) -> None:
    """Saves the report of the model and prints its verdicts.

    The service makes a report after a training that set rows aside; otherwise one is requested.
    """
    file = output / "report.html"
    try:
        client.report(model, to=file)
    except NotFoundError:
        client.wait(client.make_report(model))
        client.report(model, to=file)
    document = client.report(model)
    assert isinstance(document, dict)
    verdicts = (f"{part} {document[part]['verdict'].replace('_', ' ')}" for part in _PARTS)
    print(f"reported  {', '.join(verdicts)}", flush=True)


_PARTS = ("fidelity", "utility", "likelihood", "privacy")


def _draw_comparison(source: Path, encoding: str | None, schema: Document, output: Path) -> None:
    from gcvae.cells.values import parse_table
    from gcvae.files.tables import read_table
    from gcvae.schema.columns import TableSchema
    from gcvae_cli.client.comparison import draw_comparison

    columns = TableSchema.from_json(schema)
    real, synthetic = (
        parse_table(frame, columns)
        for frame in (
            read_table(source, encoding=encoding),
            read_table(output / "synthetic.csv"),
        )
    )
    with opened_output(str(output / "comparison.png")) as stream:
        draw_comparison(real, synthetic, columns, stream)


def _tell_results(output: Path) -> None:
    print(f"\n{output}/ holds")
    for name, meaning in _RESULTS.items():
        print(f"  {name:<28}{meaning}")
    print("\nTo continue with this model, start the service with the same data folder:")
    print(f"  {_own_command()} serve --data-dir {output / 'service'}")


def _own_command() -> str:
    """Returns the command to start gcvae: its path if it lies in Python's folder, else `gcvae`."""
    beside_python = Path(sys.executable).with_name("gcvae")
    if beside_python.is_relative_to(Path.cwd()):
        return str(beside_python.relative_to(Path.cwd()))
    return str(beside_python) if beside_python.exists() else "gcvae"
