"""Databases by the client: frames by table go in, and frames by table come back."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer
from gcvae_client import AsyncClient, Client, InvalidError, Model, ProblemError
from tests.linked_tables import FILES, KEYS, TRAINING, USERS, VISITS, unzipped
from tests.running_service import Running, work, working
from tests.wordings import refuses

SETTINGS = {name: value for name, value in TRAINING.items() if name != "seed"} | {"seed": 3}


@pytest.fixture(scope="module")
def frames() -> dict[str, pd.DataFrame]:
    users = pd.read_csv(io.StringIO(USERS), sep=";", decimal=",")
    users["joined"] = pd.to_datetime(users["joined"], format="%d.%m.%Y")
    visits = pd.read_csv(io.StringIO(VISITS), parse_dates=["started"])
    return {"users": users, "visits": visits}


@pytest.fixture(scope="module")
def trained(service: Running, frames: dict[str, pd.DataFrame]) -> Model:
    with Client(service.url) as client:
        model = client.upload(frames, name="shop").train(**SETTINGS)
        work(service, model["job_id"])
        return Model(dict(client.model(model)))


@pytest.fixture
def model(client: Client, trained: Model) -> Model:
    return client.model(trained)


def test_frames_come_back_as_frames_whose_keys_hold(
    model: Model, frames: dict[str, pd.DataFrame], service: Running
) -> None:
    assert "2 tables" in repr(model)
    drawn = model.sample(scale=0.2, seed=1)
    assert drawn.keys() == frames.keys()
    assert {n: dict(f.dtypes) for n, f in drawn.items()} == {
        n: dict(f.dtypes) for n, f in frames.items()
    }
    assert len(drawn["users"]) == 12
    assert drawn["visits"]["user_id"].isin(drawn["users"]["id"]).all()
    assert drawn["users"].attrs["seed"] == 1
    artifact = httpx.get(f"{service.url}/v1/models/{model.id}/artifact").content
    own = DatabaseSynthesizer.from_bytes(artifact).sample(scale=0.2, seed=1)
    pd.testing.assert_frame_equal(drawn["visits"], own["visits"])


def test_a_draw_is_taken_in_every_form(model: Model, client: Client, tmp_path: Path) -> None:
    packed = model.sample(parents=5, seed=2, format="csv")
    path = client.sample(model.id, parents=5, seed=2, to=tmp_path / "drawn.zip")
    assert path.read_bytes() == packed
    files = unzipped(packed)
    assert files.keys() == FILES.keys()
    one = model.sample(parents=5, seed=2, table="visits", to=tmp_path / "visits.csv")
    assert one.read_bytes() == files["visits.csv"]
    frame = model.sample(parents=5, seed=2, table="users")
    assert len(frame) == 5
    with pytest.raises(ValueError, match=r"\.zip"):
        model.sample(to=tmp_path / "drawn.csv")


def test_a_large_draw_is_waited_for(model: Model, service: Running) -> None:
    told: list[Any] = []
    with working(service):
        drawn = model.sample(scale=3, seed=1, on_progress=told.append)
    assert {name: len(frame) for name, frame in drawn.items()}["users"] == 180
    assert told[-1]["status"] == "succeeded"


def test_a_folder_and_a_mixture_of_tables_are_databases(
    client: Client, frames: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "users.csv").write_text(USERS)
    frames["visits"].to_parquet(folder / "visits.parquet")
    (folder / "notes.md").write_text("no table")
    for tables, schema, name in (
        (folder, None, "shop"),
        ({"users": folder / "users.csv", "visits": VISITS.encode()}, None, "database"),
        ({"users": USERS.encode(), "visits": frames["visits"]}, KEYS, "database"),
    ):
        dataset = client.upload(tables, schema=schema)
        assert (dataset["name"], dataset["schema"]) == (name, KEYS)
        assert "2 tables, 240 rows" in repr(dataset)
    assert dataset.profile(table="visits")["rows"] == 180
    assert dataset.first_rows(1, table="users") == [
        {"id": "100", "plan": "free", "joined": "01.01.2024", "spend": "0,00"}
    ]
    changed = dataset.patch_schema({"tables": {"visits": {"keep": False}}})
    assert changed["changes"]["summary"] == ["table 'visits': keep is false"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="no table"):
        client.upload(empty)


def test_what_a_database_can_not_do_is_said(
    model: Model, client: Client, frames: dict[str, pd.DataFrame]
) -> None:
    with refuses(InvalidError):
        model.sample(100)
    with refuses(ProblemError) as raised:
        model.score([{"id": 1}])
    assert raised.value.problem["offered"] == [
        *("samples", "scores", "imputations", "report", "artifact")
    ]
    with refuses(InvalidError):
        model.sample(table="user")
    with refuses(InvalidError):
        model.impute(frames["users"])


def test_households_are_scored_and_the_model_is_reported(
    model: Model, client: Client, service: Running, frames: dict[str, pd.DataFrame]
) -> None:
    with working(service):
        blank = frames["visits"].set_axis(range(500, 680))
        blank.iloc[::3, -1] = None
        filled = model.impute({"users": frames["users"], "visits": blank}, seed=2)
        scores = model.score(frames, draws=4, seed=2)
    assert filled["visits"].notna().all(axis=None)
    pd.testing.assert_index_equal(filled["visits"].index, blank.index)
    pd.testing.assert_frame_equal(filled["visits"].iloc[1::3], blank.iloc[1::3], check_dtype=False)
    with refuses(ProblemError):
        model.impute(frames, draws=2)
    for option in ({"tolerance": 0.5}, {"score_missingness": True}):
        with refuses(ProblemError):
            model.score(frames, **option)
    assert len(scores) == 60
    assert list(scores.columns[:3]) == ["table", "row", "log_likelihood"]
    assert scores["anomaly"].between(0, 1).all()
    work(service, model.make_report(seed=1)["job_id"])
    assert set(model.report()["tables"]) <= {"users", "visits"}


@pytest.mark.parametrize("asked", [{"given": {"plan": "free"}}, {"given_rows": [{"id": 1}]}])
def test_conditions_are_refused_and_not_left_out(model: Model, asked: dict[str, Any]) -> None:
    with refuses(InvalidError):
        model.sample(**asked)


async def _drawn(service: Running, model: Model) -> Any:
    async with AsyncClient(service.url) as client:
        return await client.sample(await client.model(model), scale=0.1, seed=1)


def test_the_awaited_client_does_the_same(model: Model, service: Running) -> None:
    drawn = asyncio.run(_drawn(service, model))
    assert len(drawn["users"]) == 6
