"""The client against a real service."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gcvae import Synthesizer
from gcvae_client import (
    BusyError,
    Client,
    ConflictError,
    IncompleteError,
    InvalidError,
    JobCancelledError,
    JobFailedError,
    NotFoundError,
    ProblemError,
    UnreachableError,
    WaitTimeoutError,
)
from tests.running_service import Running, library, train, work, working
from tests.servers.serving import SilentHandler, serving
from tests.wordings import refuses


def test_the_client_loads_neither_torch_nor_pandas() -> None:
    code = "import sys, gcvae_client; print({'torch', 'pandas', 'numpy', 'gcvae'} & {*sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert loaded.stdout.strip() == b"set()"


@pytest.mark.parametrize("schema", [None, {"columns": [{"name": "size", "kind": "continuous"}]}])
@pytest.mark.parametrize("as_path", [True, False])
def test_a_table_is_uploaded_from_a_file_or_from_bytes(
    client: Client, table: bytes, tmp_path: Path, schema: dict[str, Any] | None, as_path: bool
) -> None:
    path = tmp_path / "shades.csv"
    path.write_bytes(table)
    dataset = client.upload(path if as_path else table, schema=schema, name=None)
    assert dataset["rows"] == 60
    assert dataset["name"] == ("shades" if as_path else "table")
    assert client.dataset(dataset["id"]) == dataset
    assert dataset["id"] in [item["id"] for item in client.datasets()]
    assert client.profile(dataset["id"])["rows"] == 60
    first = client.first_rows(dataset["id"], 2)
    assert len(first) == 2
    assert all(list(row) == [c["name"] for c in dataset["schema"]["columns"]] for row in first)
    renamed = client.rename(dataset["id"], "another name")
    assert (renamed["id"], renamed["name"]) == (dataset["id"], "another name")
    assert client.rules(dataset["id"]) == client.profile(dataset["id"])["rules"]
    replaced = client.replace_schema(dataset["id"], {"columns": []})
    assert replaced["id"] == dataset["id"]
    client.delete(dataset)
    with pytest.raises(NotFoundError):
        client.dataset(dataset["id"])


@pytest.mark.parametrize("as_path", [True, False])
def test_a_model_goes_from_one_service_to_another_and_draws_the_same_rows(
    client: Client, model: dict[str, Any], tmp_path: Path, as_path: bool
) -> None:
    path = client.download_model(model["id"], tmp_path / "shades.gcvae")
    brought = client.import_model(path if as_path else path.read_bytes())
    assert (brought["status"], brought["dataset_id"]) == ("ready", None)
    assert brought["name"] == ("shades" if as_path else "model")
    assert client.sample(brought, 9, seed=2).equals(client.sample(model, 9, seed=2))
    assert client.import_model(path, name="mine")["name"] == "mine"
    with refuses(InvalidError):
        client.import_model(path.read_bytes()[:-1])


def test_a_model_is_taken_away_minimal_and_made_to_say_less_of_rows(
    client: Client, service: Running, table: bytes, tmp_path: Path
) -> None:
    model = client.import_model(library(service, train(service, table)).to_bytes())
    path = model.download(tmp_path / "minimal.gcvae", minimal=True, scoring="flag")
    taken = Synthesizer.load(path)
    assert (taken.training_record["is_minimal"], taken.scoring) == (True, "flag")
    rows = [{"size": 1.5, "colour": "red"}]
    assert "percentile" in client.score(model, rows, draws=3).columns
    named = model.rename("of cars")
    assert (named["name"], named["scoring"]) == ("of cars", "full")
    assert model.restrict_scoring("flag")["scoring"] == "flag"
    assert client.score(model, rows, draws=3).columns.to_list() == ["is_rare"]
    model.restrict_scoring("off")
    with refuses(ProblemError) as raised:
        client.score(model, rows)
    assert raised.value.status == 403
    with refuses(ConflictError):
        client.restrict_scoring(model, "full")
    dataset = client.upload(table)
    untrained = client.train(dataset, scoring="off", max_steps=5)
    assert untrained["scoring"] == "off"
    client.cancel(untrained)


def test_a_dataset_has_a_ledger_and_a_cap(client: Client, table: bytes) -> None:
    dataset = client.upload(table + b"9.5,red\n")
    cap = {"epsilon": 2.0, "delta": 1e-6}
    assert dataset.cap_privacy(cap)["cap"] == cap
    assert dataset.refresh()["privacy"]["cap"] == cap
    with refuses(ProblemError):
        dataset.train()
    private = dataset.train(differential_privacy={"epsilon": 1.5, "delta": 1e-6})
    told = client.privacy(dataset, delta=1e-5)
    assert [spent["model_id"] for spent in told["spendings"]] == [private["id"]]
    assert (told["delta"], told["rho_set_aside"] > 0) == (1e-5, True)
    client.cancel(private)
    assert client.privacy(dataset)["spendings"] == []
    assert client.cap_privacy(dataset, None)["cap"] is None


def test_a_refusal_says_what_is_wrong_and_where(client: Client) -> None:
    with refuses(InvalidError) as refusal:
        client.upload(b"a,b\n1,2\n3\n")
    assert refusal.value.status == 422
    assert refusal.value.type == "urn:gcvae:problem:invalid-table"
    assert refusal.value.errors[0]["line"] == 3
    assert refusal.value.request_id


def test_a_model_is_trained_waited_for_and_taken_away(
    client: Client, service: Running, table: bytes, tmp_path: Path
) -> None:
    model = client.train(client.upload(table)["id"], preset="paper-vae", max_steps=10, seed=1)
    told: list[dict[str, Any]] = []
    followed: list[dict[str, Any]] = []
    follower = threading.Thread(target=lambda: followed.extend(client.events(model)))
    waiter = threading.Thread(target=lambda: told.append(client.wait(model, told.append)))
    follower.start()
    waiter.start()
    work(service, model["job_id"])
    waiter.join(30)
    follower.join(30)
    assert told[-1]["status"] == followed[-1]["status"] == "succeeded"
    assert client.model(model["id"])["status"] == "ready"
    path = client.download_model(model["id"], tmp_path / "model.gcvae")
    assert Synthesizer.load(path).preset == "paper-vae"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.gcvae"]
    client.delete(model["id"])
    assert model["id"] not in [item["id"] for item in client.models()]


def test_a_job_that_did_not_succeed_raises(client: Client, table: bytes, service: Running) -> None:
    model = client.train(client.upload(table)["id"])
    with refuses(WaitTimeoutError):
        client.wait(model, timeout_seconds=0)
    assert client.cancel(model)["status"] == "cancelled"
    with pytest.raises(JobCancelledError):
        client.wait(model["job_id"])
    assert client.retry(model)["status"] == "queued"
    folder = service.settings.home_dir / "store" / "datasets" / model["dataset_id"]
    (folder / "table.csv").unlink()
    work(service, model["job_id"])
    with pytest.raises(JobFailedError) as failure:
        client.wait(model, timeout_seconds=60)
    assert failure.value.job["error"]["message"] in str(failure.value)
    with refuses(ConflictError):
        client.cancel(model)
    with refuses(ConflictError):
        client.sample(model["id"], 5)


def test_samples_come_as_bytes_or_in_a_file(
    client: Client, model: dict[str, Any], tmp_path: Path
) -> None:
    content = client.sample(model["id"], 50, seed=2, format="csv")
    path = client.sample(model["id"], 50, seed=2, to=tmp_path / "rows.csv")
    assert isinstance(content, bytes)
    assert content.startswith(b"size,colour\n")
    assert Path(str(path)).read_bytes() == content


def test_what_is_too_much_for_one_answer_is_waited_for(
    client: Client, service: Running, model: dict[str, Any], table: bytes, tmp_path: Path
) -> None:
    rows = table + table.split(b"\n", 1)[1]
    with working(service):
        sample = client.sample(model["id"], 101, to=tmp_path / "rows.csv")
        scores = client.score(model["id"], rows, draws=5, format="json")
        encodings = client.encode(model["id"], rows, format="csv")
    assert len(bytes(encodings).splitlines()) == 121
    assert len(Path(str(sample)).read_text().splitlines()) == 102
    assert isinstance(scores, bytes)
    assert len(json.loads(scores)["scores"]) == 120


def test_rows_are_scored_as_documents_bytes_or_file(
    client: Client, model: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"size,colour\n3.5,red\n")
    found = [
        client.score(model["id"], rows, draws=5, format="json")
        for rows in ([{"size": 3.5, "colour": "red"}], path.read_bytes(), path)
    ]
    assert found[0] == found[1] == found[2]
    as_csv = client.score(model["id"], path, draws=5, format="csv")
    assert isinstance(as_csv, bytes)
    assert as_csv.startswith(b"log_likelihood,")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.csv.gz", "rows"])
def test_a_file_whose_name_says_no_form_is_refused_before_the_service_is_asked(
    client: Client, model: dict[str, Any], tmp_path: Path, name: str
) -> None:
    with pytest.raises(ValueError, match=r"must end in \.csv, \.parquet, \.json, \.jsonl"):
        client.sample(model["id"], 3, to=tmp_path / name)
    assert not (tmp_path / name).exists()
    assert client.sample(model["id"], 3, format="csv", to=tmp_path / name) == tmp_path / name


def test_dependencies_come_as_document_or_picture(
    client: Client, model: dict[str, Any], tmp_path: Path
) -> None:
    found = client.dependencies(model["id"], "total")
    assert isinstance(found, dict)
    assert found["columns"] == ["size", "colour"]
    picture = client.dependencies(model["id"], to=tmp_path / "map.png")
    assert Path(str(picture)).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"must end in \.json, \.png, \.svg"):
        client.dependencies(model["id"], to=tmp_path / "map.gif")
    with refuses(InvalidError):
        client.dependencies(model["id"], "local")
    local = client.dependencies(model["id"], row={"size": 3.5}, seed=2)
    assert isinstance(local, dict)
    assert local["kind"] == "local"
    assert client.dependencies(model["id"], z=[0, 0], format="svg").startswith(b"<?xml")


def test_rows_are_encoded_and_the_manifold_is_drawn(
    client: Client, model: dict[str, Any], table: bytes, tmp_path: Path
) -> None:
    one = [{"size": 3.5, "colour": "red"}]
    found = json.loads(bytes(client.encode(model["id"], one, format="json")))
    assert [*found["encodings"][0]] == ["mean", "standard_deviation"]
    as_csv = client.encode(model["id"], table, format="csv", to=tmp_path / "z.csv")
    assert len(Path(str(as_csv)).read_text().splitlines()) == 61
    manifold = client.manifold(model["id"], steps=3)
    assert isinstance(manifold, dict)
    assert [column["name"] for column in manifold["columns"]] == ["size", "colour"]
    assert client.manifold(model["id"], steps=3, format="png").startswith(b"\x89PNG")


def test_a_service_that_is_not_there_is_told(client: Client) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", retries=0) as nobody:
        assert not nobody.is_ready()
        with refuses(UnreachableError, names=str(port)):
            nobody.dataset("ds_x")
    assert client.is_ready()


def test_what_is_no_id_is_not_deleted(client: Client) -> None:
    with pytest.raises(ValueError, match="job_x"):
        client.delete("job_x")


def test_a_creating_call_is_sent_again_with_the_same_key() -> None:
    busy = (429, {"Retry-After": "0"}, b'{"type": "urn:gcvae:problem:busy"}')
    made = (202, {}, b'{"id": "mdl_1"}')
    with scripted([None, busy, made]) as (url, requests), Client(url, retries=2) as client:
        assert client.train("ds_1") == {"id": "mdl_1"}
    assert len(requests) == 3
    assert len({request["Idempotency-Key"] for request in requests}) == 1


def test_a_call_gives_up_after_its_retries() -> None:
    busy = (503, {"Retry-After": "0"}, b'{"title": "Full", "detail": "come back"}')
    with (
        scripted([busy] * 3) as (url, requests),
        Client(url, retries=2) as client,
        refuses(BusyError) as refusal,
    ):
        client.dataset("ds_1")
    assert refusal.value.retry_after_seconds == 0
    assert len(requests) == 3


def test_a_call_that_may_not_be_repeated_is_sent_once() -> None:
    with (
        scripted([None]) as (url, requests),
        Client(url) as client,
        pytest.raises(UnreachableError),
    ):
        client.cancel("job_1")
    assert len(requests) == 1


def test_a_download_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    cut = (200, {"Content-Length": "1000"}, b"only this")
    with (
        scripted([cut]) as (url, _),
        Client(url) as client,
        pytest.raises(IncompleteError),
    ):
        client.download_model("mdl_1", tmp_path / "model.gcvae")
    assert list(tmp_path.iterdir()) == []


Answer = tuple[int, dict[str, str], bytes] | None


@contextmanager
def scripted(answers: list[Answer]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that gives these answers in turn; None hangs up. And the headers it was sent."""
    requests: list[dict[str, str]] = []
    waiting = iter(answers)

    class Handler(SilentHandler):
        def handle_one(self) -> None:
            requests.append(dict(self.headers))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = next(waiting)
            self.close_connection = True
            if answer is None:
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_one  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}", requests


def test_a_table_is_read_in_the_encoding_that_is_named(client: Client, tmp_path: Path) -> None:
    text = "größe,farbe\n" + "".join(f"{i % 7}.5,{('grün', 'rot')[i % 2]}\n" for i in range(99))
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-16"))
    for schema in (None, {"columns": [{"name": "größe", "kind": "continuous"}]}):
        dataset = client.upload(path, schema=schema, encoding="utf-16")
        assert dataset["encoding"] == "utf-16"
        assert dataset["schema"]["columns"][1]["levels"] == ["grün", "rot"]


def test_some_columns_are_completed_and_kept_blanks_stay(
    client: Client, service: Running, table: bytes
) -> None:
    names = ['size, "net"', "颜色"]
    model = train(service, table.replace(b"size,colour", '"size, ""net""",颜色'.encode(), 1))
    rows = [{names[0]: None, names[1]: "red"}, {names[0]: 3.5, names[1]: None}] * 3
    for columns, kept in ((names[:1], None), (names[1:], names[:1])):
        options = {"columns": columns, "keep_missing": kept, "format": "jsonl"}
        completed = client.impute(model["id"], rows, **options)
        assert isinstance(completed, bytes)
        for row, given in zip(map(json.loads, completed.splitlines()), rows, strict=True):
            for name in names:
                assert (row[name] is None) == (given[name] is None and name not in columns)
