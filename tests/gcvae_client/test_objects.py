"""Datasets, models and jobs as objects, the bar of what is waited for, and the client awaited."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from gcvae_client import AsyncClient, Client, ClientError, Dataset, Job, Model, NotFoundError
from gcvae_client.objects import ClientMethod
from gcvae_client.progress_bar import line_of
from tests.running_service import Running, working
from tests.wordings import refuses


def test_a_table_goes_in_and_rows_come_out_without_an_id(
    client: Client, service: Running, table: bytes, tmp_path: Path
) -> None:
    dataset = client.upload(table, name="Größen <b>")
    assert isinstance(dataset, Dataset)
    with working(service):
        model = dataset.train(max_steps=5).wait()
        assert len(model.sample(101, seed=1)) == 101
    assert isinstance(model, Model)
    assert model == client.model(model.id)
    assert model.refresh() == model
    assert [found.id for found in dataset.models()] == [model.id]
    assert isinstance(model.job(), Job)
    assert model.job().wait()["status"] == "succeeded"
    assert model.score([{"size": 3.5, "colour": "red"}], draws=2).shape[0] == 1
    assert model.dependencies("total")["columns"] == ["size", "colour"]
    assert model.download(tmp_path / "m.gcvae").stat().st_size == model["artifact_bytes"]
    for shown in (repr(model), repr(dataset), repr(model.job())):
        assert "\n" not in shown
    assert repr(dataset) == f"<Dataset {dataset.id}: 'Größen <b>', 60 rows × 2 columns>"
    assert "ready" in repr(model)
    assert "60 rows × 2 columns" in repr(model)
    assert "nats per row" in repr(model)
    page = model._repr_html_()
    assert model.id in page
    assert "Größen &lt;b&gt;" in page
    model.delete()
    with pytest.raises(NotFoundError):
        model.refresh()


def test_an_object_is_its_document_and_its_methods_are_the_clients(
    client: Client, table: bytes
) -> None:
    dataset = client.upload(table)
    assert isinstance(dataset, dict)
    assert dataset == dict(dataset) == next(iter(client.datasets()))
    model = dataset.train(max_steps=5)
    assert "model.wait()" in repr(model)
    assert model.cancel()["status"] == "cancelled"
    for kind in (Dataset, Model, Job):
        calls = {method.call for method in vars(kind).values() if isinstance(method, ClientMethod)}
        assert calls
        assert all(callable(getattr(client, call)) for call in calls)
    assert [*inspect.signature(model.sample).parameters][:2] == ["rows", "seed"]


RUNNING = {
    "kind": "train",
    "status": "running",
    "progress": {"phase": "training", "fraction": 0.5, "seconds_left": 8.4},
}


def test_a_bar_says_how_far_a_job_is_and_how_long_it_takes() -> None:
    assert line_of(RUNNING).endswith(" 50 % · training · 8 s left")
    queued = {"kind": "sample", "status": "queued", "progress": None}
    assert line_of(queued).endswith("0 % · queued")


def test_waiting_shows_a_bar_where_it_is_asked_and_none_where_nobody_looks(
    client: Client, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    client.wait(model)
    assert capsys.readouterr().err == ""
    client.wait(model, progress=True)
    assert "100 % · succeeded" in capsys.readouterr().err


def test_the_client_is_awaited(service: Running, table: bytes) -> None:
    async def way() -> None:
        async with AsyncClient(service.url) as client:
            dataset = await client.upload(table)
            model = await client.train(dataset, max_steps=5)
            done, answers = await asyncio.gather(
                client.wait(model), client.is_ready(), return_exceptions=False
            )
            assert (done["status"], answers) == ("succeeded", True)
            assert len(await client.sample(model, 7)) == 7
            assert dataset["id"] in [found["id"] async for found in client.datasets()]
            events = [event["status"] async for event in client.events(done)]
            assert events[-1] == "succeeded"
            with refuses(ClientError):
                model.sample(7)
            with pytest.raises(NotFoundError):
                await client.model("mdl_0")
            await client.delete(model)

    with working(service):
        asyncio.run(way())


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert calls(AsyncClient) == calls(Client)


MEMORY = """
import sys
import numpy as np, pandas as pd, pyarrow.parquet
from gcvae_client.frames import read_frame
def of_status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")  # the highest is counted from here on
before = of_status("VmRSS")
with open(sys.argv[1], "rb") as file:
    frame = read_frame(file, "parquet", None, dict)
peak = of_status("VmHWM") - before
assert len(frame) == 1_000_000
frame.iloc[0, 0] = 5.0
print(peak / frame.memory_usage(deep=True).sum())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the highest memory is read from /proc")
def test_a_million_rows_become_a_frame_in_less_than_twice_its_memory(tmp_path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    generator = np.random.default_rng(0)
    columns = {f"n{i}": generator.normal(size=1_000_000) for i in range(8)}
    names = np.array([f"customer {i}" for i in range(1_000_000)], dtype=object)
    columns |= {f"w{i}": names[generator.permutation(1_000_000)] for i in range(2)}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=100_000)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "rows.parquet")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 2.0
