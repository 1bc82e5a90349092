"""Data frames go to a service and come back; resources are named by their documents."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gcvae_client import Client, InvalidError, ModelNotReadyError
from gcvae_client.frames import plain, read_frame, row_documents, table_bytes
from tests.lengths import first_of
from tests.running_service import Running, library, train, working
from tests.wordings import refuses

N_ROWS = 60


def orders() -> pd.DataFrame:
    """Rows of every type that a frame has, blanks among them, under an index of their own."""
    number = np.arange(N_ROWS)
    frame = pd.DataFrame(
        {
            "Preis": np.round(5.0 + number % 17 * 1.25, 2),
            "quantity": pd.array(1 + number % 31, dtype="Int16"),
            "ordered": pd.Timestamp("2024-01-05") + pd.to_timedelta(number % 29, unit="D"),
            "类别": pd.Categorical(np.where(number % 3, "lamp", "rug")),
            "gift": number % 5 == 0,
        },
        index=pd.Index(1000 + number, name="row"),
    )
    frame.loc[frame.index[::7], "Preis"] = np.nan
    frame.loc[frame.index[::11], "quantity"] = pd.NA
    return frame


@pytest.fixture(scope="session")
def orders_model(service: Running) -> dict[str, Any]:
    """A ready model of those rows."""
    buffer = io.BytesIO()
    orders().to_parquet(buffer, index=False)
    return train(service, buffer.getvalue())


def pa_table(frame: pd.DataFrame) -> pa.Table:
    """The frame's columns, without its index."""
    return pa.Table.from_pandas(frame, preserve_index=False)


FRAMES = {
    "pandas": orders,
    "polars": lambda: pl.from_pandas(orders()),
    "arrow": lambda: pa_table(orders()),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("schema", [None, {"columns": [{"name": "gift", "kind": "boolean"}]}])
def test_a_frame_is_uploaded_with_its_types(
    client: Client, kind: str, schema: dict[str, Any] | None
) -> None:
    dataset = client.upload(FRAMES[kind](), name="orders", schema=schema)
    kinds = {column["name"]: column["kind"] for column in dataset["schema"]["columns"]}
    assert (dataset["rows"], dataset["name"], dataset["format"]) == (N_ROWS, "orders", "parquet")
    assert kinds["ordered"] == "datetime"
    assert kinds["类别"] == "categorical"
    assert list(kinds) == list(orders())


def test_a_sample_is_a_frame_of_the_tables_types(
    client: Client, service: Running, orders_model: dict[str, Any]
) -> None:
    drawn = client.sample(orders_model, 50, seed=3)
    assert isinstance(drawn, pd.DataFrame)
    assert drawn.attrs["seed"] == 3
    expected = library(service, orders_model).sample(50, seed=3)
    assert drawn["ordered"].dtype.kind == "M"
    assert drawn["quantity"].dtype == "Int16"  # and no float, though some are blank
    assert drawn["quantity"].isna().any()
    pd.testing.assert_frame_equal(drawn, expected, check_dtype=False, check_categorical=False)
    assert isinstance(client.sample(orders_model, 5).attrs["seed"], int)
    assert isinstance(client.sample(orders_model, 5, format="jsonl"), bytes)


def test_a_file_has_the_format_that_its_name_ends_in(
    client: Client, orders_model: dict[str, Any], tmp_path: Path
) -> None:
    path = client.sample(orders_model, 9, seed=1, to=tmp_path / "rows.parquet")
    assert pd.read_parquet(path).equals(client.sample(orders_model, 9, seed=1))
    path = client.sample(orders_model, 9, seed=1, to=tmp_path / "rows.jsonl")
    assert path.read_text().count("\n") == 9
    path = client.score(orders_model, orders(), draws=2, to=tmp_path / "scores.csv")
    assert path.read_text().startswith("log_likelihood,")


@pytest.mark.parametrize("kind", first_of("polars", "arrow", "pandas"))
def test_rows_of_a_frame_are_scored_completed_and_encoded_in_such_a_frame(
    client: Client, service: Running, orders_model: dict[str, Any], kind: str
) -> None:
    frame = FRAMES[kind]()
    scores = client.score(orders_model, frame, draws=5, seed=1)
    completed = client.impute(orders_model, frame, seed=1)
    encodings = client.encode(orders_model, frame)
    assert {type(scores), type(completed), type(encodings)} == {type(frame)}
    if kind == "pandas":
        for found in (scores, completed, encodings):
            assert found.index.equals(frame.index)
        assert (completed["ordered"] == frame["ordered"]).all()
        known = frame["Preis"].notna()
        assert (completed["Preis"][known] == frame["Preis"][known]).all()
        assert completed.notna().all(axis=None)
    as_pandas = scores if kind == "pandas" else scores.to_pandas()
    rows = orders().reset_index(drop=True)
    expected = library(service, orders_model).log_likelihood(rows, draws=5, seed=1)
    np.testing.assert_allclose(as_pandas["log_likelihood"], expected["log_likelihood"])


def test_several_completions_of_a_frame_are_numbered(
    client: Client, orders_model: dict[str, Any]
) -> None:
    completed = client.impute(orders_model, orders().head(9), draws=2)
    assert completed["draw"].tolist() == [1, 2] * 9


def test_frames_beyond_the_inline_limit_are_waited_for(
    client: Client, service: Running, orders_model: dict[str, Any]
) -> None:
    twice = pd.concat([orders(), orders()])
    with working(service):
        scores = client.score(orders_model, twice, draws=2)
        drawn = client.sample(orders_model, 101, seed=5)
    assert scores.index.equals(twice.index)
    assert (len(drawn), drawn.attrs["seed"]) == (101, 5)


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_are_drawn_around_a_frame_of_known_cells(
    client: Client, orders_model: dict[str, Any], kind: str
) -> None:
    known = orders()[["ordered", "类别", "quantity"]].head(9)
    given = {"polars": pl.from_pandas, "arrow": pa_table}.get(kind, lambda f: f)(known)
    drawn = client.sample(orders_model, given_rows=given, seed=2)
    assert type(drawn) is type(given)
    found = drawn if kind == "pandas" else drawn.to_pandas()
    assert found["ordered"].dt.date.tolist() == known["ordered"].dt.date.tolist()
    has_quantity = known["quantity"].notna().to_numpy()
    told = known["quantity"].astype(object)[has_quantity].tolist()
    assert found["quantity"][has_quantity].tolist() == told


def test_cells_and_conditions_may_be_dates_and_numbers_of_numpy(
    client: Client, orders_model: dict[str, Any]
) -> None:
    day = pd.Timestamp("2024-01-09")
    rows = [{"Preis": np.float64(7.5), "ordered": day, "quantity": np.int64(3), "gift": np.True_}]
    text = [{"Preis": 7.5, "ordered": "2024-01-09", "quantity": 3, "gift": True}]
    asked = {"draws": 3, "format": "csv"}
    assert client.score(orders_model, rows, **asked) == client.score(orders_model, text, **asked)
    given = {"ordered": {"min": date(2024, 1, 9)}, "quantity": np.arange(3, 9), "类别": {"rug"}}
    drawn = client.sample(orders_model, 20, given=given, seed=1)
    assert (drawn["ordered"] >= day).all()
    assert drawn["quantity"].between(3, 8).all()
    assert client.dependencies(orders_model, row={"ordered": day, "Preis": pd.NA})["tau"]


def test_a_frame_of_strings_comes_back_as_strings_which_are_conditions_too(
    client: Client, service: Running
) -> None:
    number = np.arange(N_ROWS)
    texts = {"churn": np.where(number % 10 < 3, "Y", "N"), "code": (number % 4 + 7).astype(str)}
    texts |= {"price": np.where(number % 3, "24.50", "3.00"), "zero": (number % 2).astype(str)}
    rows = pd.DataFrame({name: cells.astype(object) for name, cells in texts.items()})
    rows["code"] = rows["code"].str.zfill(3)
    buffer = io.BytesIO()
    rows.to_parquet(buffer, index=False)
    trained = train(service, buffer.getvalue())
    asked = {"churn": "Y", "price": "24.50", "zero": "0"}
    some = client.sample(trained, 9, given=asked, seed=1)
    assert (some[list(asked)] == pd.Series(asked)).all(axis=None)
    known, blanked = rows[["churn", "price"]].head(9), rows.head(9).copy()
    blanked.loc[3:, ["churn", "price", "zero"]] = None
    for kind in (lambda frame: frame, pl.from_pandas, pa_table):
        around = client.sample(trained, given_rows=kind(known), seed=1)
        filled = client.impute(trained, kind(blanked), seed=1)
        for found in (client.sample(trained, 100, seed=1), around, filled):
            cells = found if isinstance(found, pd.DataFrame) else found.to_pandas()
            assert all(set(cells[name]) <= set(rows[name]) for name in rows)
        told = around if isinstance(around, pd.DataFrame) else around.to_pandas()
        assert told[list(known)].astype(object).equals(known)


def test_a_column_of_several_types_is_refused_by_name(client: Client) -> None:
    mixed = pd.DataFrame({"a": [1, 2], "mixed": [1, "x"]})
    with pytest.raises(ValueError, match="mixed") as refusal:
        client.upload(mixed)
    assert "astype(str)" in str(refusal.value)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pl.DataFrame(),
        pd.DataFrame({"a": [], "b": []}),
        pl.DataFrame({"a": []}),
    ],
)
def test_a_frame_without_cells_is_refused_by_what_it_lacks(client: Client, frame: Any) -> None:
    with refuses(InvalidError):
        client.upload(frame)


def test_resources_are_named_by_their_documents(
    client: Client, service: Running, table: bytes, model: dict[str, Any], tmp_path: Path
) -> None:
    dataset = client.upload(table)
    trained = client.train(dataset, max_steps=5)
    assert trained["dataset_id"] == dataset["id"]
    assert client.dataset(dataset) == dataset
    assert client.profile(dataset)["dataset_id"] == dataset["id"]
    assert [found["id"] for found in client.models(dataset)] == [trained["id"]]
    assert client.job(trained)["id"] == client.job(trained["id"])["id"] == trained["job_id"]
    assert client.cancel(trained["id"])["status"] == "cancelled"
    job = client.wait(model)
    assert job["kind"] == "train"
    assert client.wait(model["id"])["id"] == job["id"]
    for named in (model, model["id"], job):
        assert client.sample(named, 4, seed=1).equals(client.sample(model["id"], 4, seed=1))
        assert client.model(named) == client.model(model["id"])
    brought = client.import_model(client.download_model(job, tmp_path / "m.gcvae"))
    assert client.wait(brought) == brought
    assert client.wait(brought["id"]) == brought
    with pytest.raises(ValueError, match="imported"):
        client.cancel(brought)
    client.delete(dataset)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rows": 3}, TypeError),
        ({}, TypeError),
        (None, TypeError),
        ([1], TypeError),
        ({"id": "ds_1"}, ValueError),
        ("ds_1", ValueError),
        ({"id": "job_1", "model_id": None}, ValueError),
    ],
)
def test_what_names_no_model_is_told_before_the_service_is_asked(
    given: Any, error: type[Exception]
) -> None:
    client = Client("http://127.0.0.1:1", retries=0)
    with refuses(error):
        client.sample(given, 5)


@pytest.mark.parametrize("given", ["mdl_1", {"id": "mdl_1"}, {"id": "job_1"}, {"rows": 3}, 3])
def test_what_names_no_dataset_is_told_before_the_service_is_asked(given: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="a dataset"):
        Client("http://127.0.0.1:1", retries=0).train(given)


def test_a_model_that_is_not_ready_says_how_to_wait(client: Client, table: bytes) -> None:
    model = client.train(client.upload(table))
    with refuses(ModelNotReadyError) as refusal:
        client.sample(model, 5)
    assert refusal.value.status == 409
    client.cancel(model)
    with refuses(ModelNotReadyError):
        client.score(model, table)


def test_a_client_says_which_service_it_talks_to_and_no_key() -> None:
    assert (
        repr(Client("http://127.0.0.1:1", api_key="gcv_secret")) == "Client('http://127.0.0.1:1')"
    )


BLOCKED = """
import sys
for name in {blocked}:
    sys.modules[name] = None
from gcvae_client import Client, MissingPackageError
client = Client({url!r})
{code}
"""


def _without(client_url: str, blocked: list[str], code: str) -> str:
    """What a program prints that cannot import some packages."""
    program = BLOCKED.format(blocked=blocked, url=client_url, code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_pandas_bytes_and_files_are_given_and_a_frame_says_what_is_missing(
    service: Running, model: dict[str, Any], tmp_path: Path
) -> None:
    code = f"""
model = {model["id"]!r}
print(client.sample(model, 3, format="csv").count(b"\\n"))
print(client.score(model, [{{"size": 3.5, "colour": "red"}}], to={str(tmp_path / "s.csv")!r}).name)
try:
    client.sample(model, 3)
except MissingPackageError as error:
    print(error)
print({{"pandas", "numpy", "pyarrow", "polars"}} & {{k for k, v in sys.modules.items() if v}})
"""
    told = _without(service.url, ["pandas", "pyarrow", "polars", "numpy"], code).splitlines()
    assert told[:2] == ["4", "s.csv"]
    assert "pip install pandas" in told[2]
    assert told[3] == "set()"


def test_without_pyarrow_frames_go_as_csv_and_come_with_their_dates(
    service: Running, client: Client, orders_model: dict[str, Any]
) -> None:
    code = f"""
import pandas as pd
model = {orders_model["id"]!r}
rows = client.sample(model, 30, seed=4)
print(rows["ordered"].dtype.kind, rows["Preis"].dtype.kind, rows.shape)
print(client.score(model, rows, draws=2).shape[0], client.upload(rows)["format"])
print(rows.to_csv(index=False))
"""
    first, second, *table = _without(service.url, ["pyarrow"], code).splitlines()
    assert first == "M f (30, 5)"
    assert second == "30 csv"
    expected = client.sample(orders_model, 30, seed=4).to_csv(index=False).split()
    assert [line.replace("True", "true") for line in table if line] == [
        line.replace("True", "true") for line in expected
    ]


def test_a_refusal_of_a_frames_rows_is_the_services(
    client: Client, orders_model: dict[str, Any]
) -> None:
    with refuses(InvalidError):
        client.score(orders_model, orders().assign(Farbe="red"))


def test_dates_for_never_are_dates_in_every_format() -> None:
    """Those of JSON are text, and pandas has no nanoseconds for them."""
    rows = [{"bis": "31.12.9999"}, {"bis": None}, {"bis": "01.02.2024"}]
    file = io.BytesIO(json.dumps(rows).encode())
    found = read_frame(file, "json", None, lambda: {"bis": "%d.%m.%Y"})
    assert found["bis"].dtype == "datetime64[us]"
    assert found["bis"][0] == datetime(9999, 12, 31)
    assert found["bis"].isna().tolist() == [False, True, False]
    assert row_documents(found, lambda: {"bis": "%d.%m.%Y"}) == rows
    long_ago = plain(date(1, 1, 1), "von", lambda: {"von": "%Y-%m-%d"})
    assert long_ago == "0001-01-01"


def test_periods_go_to_a_service_and_completed_rows_have_them(
    client: Client, service: Running
) -> None:
    number = np.arange(N_ROWS)
    frame = pd.DataFrame(
        {
            "month": pd.period_range("2020-01", periods=N_ROWS, freq="M"),
            "quarter": pd.Series(pd.PeriodIndex.from_ordinals(200 + number % 7, freq="Q")),
            "x": np.where(number % 9, number / 7, np.nan),
        }
    )
    model = train(service, table_bytes(frame))
    kinds = {column["name"]: column["kind"] for column in model["schema"]["columns"]}
    assert (kinds["month"], kinds["quarter"]) == ("datetime", "datetime")
    completed = client.impute(model, frame, seed=1)
    assert completed[["month", "quarter"]].equals(frame[["month", "quarter"]])
    drawn = client.sample(model, given_rows=frame[["month"]].head(9), seed=1)
    assert drawn["month"].equals(frame["month"].head(9))
    asked = client.sample(model, 5, seed=1, given={"month": frame["month"].iloc[3]})
    assert (asked["month"].dt.to_period("M") == frame["month"].iloc[3]).all()


def test_offsets_and_durations_go_through_a_service(client: Client, service: Running) -> None:
    number = np.arange(N_ROWS)
    times = pd.date_range("2024-03-30 20:00", periods=N_ROWS, freq="37min", tz="Europe/Berlin")
    took = pd.to_timedelta(number * 3_777, unit="s")
    frame = pd.DataFrame({"time": times, "took": took, "x": np.sin(number).round(3)})
    model = train(service, frame.to_csv(index=False).encode())
    start = times[40].tz_convert("Asia/Tokyo")
    table = client.sample(model, 9, seed=1, given={"time": {"min": start}}, format="csv")
    drawn = pd.read_csv(io.BytesIO(table))
    assert drawn["time"].str.endswith("+02:00").all()
    assert (pd.to_datetime(drawn["time"]) >= start).all()
    assert (pd.to_timedelta(drawn["took"]).astype(str) == drawn["took"]).all()
    found = client.sample(model, 9, seed=1, given={"time": {"min": start}})
    moments = pd.to_datetime(drawn["time"], utc=True).dt.tz_localize(None)
    assert found["time"].tolist() == moments.tolist()
    assert found["took"].tolist() == pd.to_timedelta(drawn["took"]).dt.total_seconds().tolist()
