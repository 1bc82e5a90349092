"""A file that need not fit into memory gives the model that its rows give in memory, to the bit."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given

from gcvae import Synthesizer, TableReader, infer_schema, read_table
from gcvae.codec.rare_levels import GroupedLevelCodec
from gcvae.errors import CancelledError, InputError
from gcvae.files.source_columns import source_columns
from gcvae.files.typed_columns import TypedTable, rows_at, typed_columns, value_codes
from gcvae.profiling import infer
from gcvae.schema.columns import TableSchema
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.preparation import PreparedTable, prepared_table, table_digest
from gcvae.training.progress import Progress
from gcvae.training.settings import configure
from tests.gcvae.conditioned_tables import table as conditioned_table
from tests.gcvae.test_generated_tables import Table, tables
from tests.lengths import tries

QUICK = {"max_steps": 12, "d_hidden": 8, "d_latent": 2, "annealing": 0.0}
WINDOW_BYTES = 2_000
HARD_RULES = {
    "rules": [
        {"rule": "low <= high", "keep": "hard"},
        {"rule": "gain >= 0 or age > 10", "keep": "hard"},
        {"rule": "combinations(grade, member)", "keep": "hard"},
    ],
    "find_rules": True,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Tables of many blocks; and at the end nothing is left of what they needed on disk."""
    monkeypatch.setattr("gcvae.files.typed_columns.CHUNK_ROWS", 64)
    monkeypatch.setattr("gcvae.codec.correspondence._MOST_ROWS", 300)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not [path for path in folder.iterdir() if path.name.startswith("gcvae-")]


def mixed_table(n: int = 700) -> pd.DataFrame:
    """Missing cells, dates, names, keys, a constant, a copy, rare levels, ordered numbers."""
    rng = np.random.default_rng(4)
    frame = conditioned_table(n)
    frame["key"] = np.arange(n) + 1000
    frame["name"] = [f'person \u00e9{i}, "x"' for i in rng.permutation(n)]
    frame["town"] = [f"town {i}" for i in np.minimum(rng.geometric(0.02, n), 90)]
    frame["unit"] = "kg"
    frame["grade again"] = frame["grade"]
    frame["low"] = rng.integers(0, 50, n)
    frame["high"] = frame["low"] + rng.integers(0, 50, n)
    seconds = pd.to_timedelta(rng.integers(0, 10**7, n), unit="s")
    frame["seen"] = (pd.Timestamp("2020-01-01") + seconds).strftime("%Y-%m-%d %H:%M:%S")
    weight = np.round(rng.normal(70, 9, n), 3).astype(str)
    frame["weight"] = np.where(rng.random(n) < 0.1, "?", weight)
    frame["rooms"] = rng.integers(1, 7, n)
    return frame


def write(frame: pd.DataFrame, path: Path) -> Path:
    """A table as a file of the kind that the name says."""
    if path.suffix == ".parquet":
        frame.assign(
            high=frame["high"].astype("Int64").mask(np.arange(len(frame)) % 9 == 0),
            seen=pd.to_datetime(frame["seen"]),
            member=(frame["member"] == "yes"),
        ).to_parquet(path, row_group_size=150)
    else:
        frame.to_csv(path, index=False)
    return path


def reader(path: Path) -> TableReader:
    return TableReader(path, window_bytes=WINDOW_BYTES)


def model_file(table: pd.DataFrame | TableReader, **choices: Any) -> bytes:
    """The bytes of the fitted model, but for the time it took."""
    fitted = Synthesizer.fit(table, seed=3, device="cpu", **choices)
    fitted.training_record["seconds"] = 0.0
    return fitted.to_bytes()


@pytest.mark.parametrize(
    ("preset", "ending"),
    [
        ("fast", ".csv"),
        ("fast", ".parquet"),
        ("gcvae", ".csv"),
        ("paper-gcvae", ".parquet"),
    ],
)
def test_a_file_gives_the_model_of_its_rows_to_the_byte(
    preset: str, ending: str, tmp_path: Path
) -> None:
    path = write(mixed_table(), tmp_path / f"table{ending}")
    choices = {"preset": preset, "settings": QUICK, "schema": HARD_RULES}
    assert model_file(reader(path), **choices) == model_file(read_table(path), **choices)


def test_the_mixed_table_has_a_column_of_every_sort(tmp_path: Path) -> None:
    fitted = Synthesizer.fit(mixed_table(), preset="fast", settings=QUICK)
    kinds = {str(column.kind) for column in fitted.schema}
    assert kinds == {
        "integer", "continuous", "ordinal", "categorical", "boolean", "datetime", "identifier",
        "constant",
    }  # fmt: skip
    assert fitted.codec.copies == {"grade again": "grade"}
    assert any(column.missing.allowed for column in fitted.schema)
    assert codec_of(fitted, "town").withheld.any()
    told = Synthesizer.fit(mixed_table(), preset="fast", settings=QUICK | {"rare_level_rows": 1})
    town = codec_of(told, "town")
    assert town.n_codes < len(told.schema["town"].levels or ())
    assert not town.withheld.any()


def codec_of(fitted: Synthesizer, name: str) -> GroupedLevelCodec:
    [found] = [column for column in fitted.codec.columns if column.name == name]
    assert isinstance(found, GroupedLevelCodec)
    return found


def written(cells: pd.DataFrame, path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(cells.columns)
        writer.writerows(cells.to_numpy().tolist())
    return path


def facts(prepared: PreparedTable) -> list[Any]:
    """What a model is trained on."""
    rows = prepared.rows.take(torch.arange(len(prepared.rows)))
    return [
        prepared.schema.to_json(),
        prepared.codec.to_json(),
        prepared.hard_rules.to_json(),
        table_digest(prepared.typed),
        rows.codes.tolist(),
        rows.values.numpy().tobytes(),
        [counts.tolist() for counts in prepared.rows.code_counts],
        prepared.rows.log_units.numpy().tobytes(),
    ]


@tries(10)
@given(table=tables())
def test_every_file_is_prepared_as_its_rows_are(table: Table) -> None:
    config = configure("default")
    with tempfile.TemporaryDirectory(prefix="test-") as folder:
        if table.is_typed:
            path = Path(folder) / "table.parquet"
            table.frame.to_parquet(path)
        else:
            path = written(table.frame, Path(folder) / "table.csv")
        answers = []
        for rows in (path, reader(path)):
            try:
                given = read_table(rows) if isinstance(rows, Path) else rows
                with prepared_table(given, table.given, config) as prepared:
                    found = prepared.typed
                    frame = rows_at(found, slice(None))
                    answers.append((facts(prepared), frame.dtypes.to_dict(), frame.astype(str)))
            except InputError as error:
                answers.append((type(error), [str(problem) for problem in error.problems]))
        one, other = answers
        assert one[:2] == other[:2]
        if len(one) == 3:
            pd.testing.assert_frame_equal(one[2], other[2])


@tries(20)
@given(table=tables())
def test_values_that_a_schema_was_made_of_are_those_that_are_read_by_it(table: Table) -> None:
    """Cells that were judged are not read again: what is kept of them is the same."""
    kept: list[pd.DataFrame] = []

    def keep(schema: TableSchema, typed: TypedTable, line_of: object) -> tuple[TableSchema, Any]:
        kept.append(rows_at(typed, slice(None)))
        for name in typed.columns:
            codes = pd.factorize(kept[0][name])[0]
            assert value_codes(typed, name).tolist() == codes.tolist()
        return schema, []

    with tempfile.TemporaryDirectory(prefix="test-") as folder, pytest.MonkeyPatch.context() as m:
        path = written(table.frame, Path(folder) / "table.csv")
        m.setattr(infer, "with_rules", keep)
        try:
            schema = infer_schema(reader(path), table.given).schema
        except InputError:
            return
        with source_columns(reader(path)) as source, typed_columns(source, schema) as typed:
            pd.testing.assert_frame_equal(kept[0], rows_at(typed, slice(None)))


@pytest.mark.parametrize(
    ("change", "schema"),
    [
        ({"weight": "heavy"}, {"columns": [{"name": "weight", "kind": "continuous"}]}),
        (
            {"seen": "yesterday"},
            {"columns": [{"name": "seen", "datetime_format": "%Y-%m-%d %H:%M:%S"}]},
        ),
        ({"low": "99", "high": "3"}, HARD_RULES),
        ({}, {"columns": [{"name": "size", "kind": "integer"}]}),
        ({}, {"columns": [{"name": "weight", "missing": {"allowed": False}}]}),
        (
            {},
            {
                "rules": [{"rule": "combinations(weight, height)", "keep": "hard"}],
                "find_rules": True,
            },
        ),
        ({"town": "x" * 2000}, {}),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_wrong_is_said_as_of_a_table_in_memory(
    change: dict[str, str], schema: dict[str, Any], ending: str, tmp_path: Path
) -> None:
    frame = mixed_table(300).astype(str)
    frame.loc[0, "name"] = "two\nlines"
    for name, cell in change.items():
        frame.loc[250, name] = cell
    path = tmp_path / f"table{ending}"
    frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    with pytest.raises(InputError) as whole:
        infer_schema(read_table(path), schema)
    with pytest.raises(InputError) as streamed:
        infer_schema(reader(path), schema)
    assert type(streamed.value) is type(whole.value)
    assert streamed.value.problems == whole.value.problems
    if change and ending == ".csv" and schema:
        assert streamed.value.problems[0].line == 253  # the header, and a cell of two lines


def test_the_preparation_tells_how_far_it_is(tmp_path: Path) -> None:
    path = write(mixed_table(), tmp_path / "table.csv")
    told: list[Progress] = []
    Synthesizer.fit(reader(path), preset="fast", settings=QUICK, progress=told.append)
    preparing = [progress.fraction for progress in told if progress.phase == "preparing"]
    assert preparing == sorted(preparing)
    assert len(set(preparing)) > 50
    assert preparing[0] == 0.0
    assert preparing[-1] <= told[len(preparing)].fraction < 1.0
    assert next(p.phase for p in told[len(preparing) :]) == "training"


@pytest.mark.parametrize("phase", ["preparing", "training"])
def test_a_cancelled_fit_leaves_no_files(phase: str, tmp_path: Path) -> None:
    """What is left on disk is looked at after every test here."""
    path = write(mixed_table(), tmp_path / "table.csv")

    def stop(progress: Progress) -> None:
        if progress.phase == phase and list(Path(tempfile.gettempdir()).glob("gcvae-table-*/*")):
            raise CancelledError

    with pytest.raises(CancelledError):
        Synthesizer.fit(reader(path), preset="fast", settings=QUICK, progress=stop)


class _Checkpoints(CheckpointStore):
    """Keeps a run's checkpoint in memory."""

    interval_seconds = 0.0
    data: bytes | None = None

    def load(self) -> bytes | None:
        return self.data

    def restored(self, *, is_continued: bool) -> None:
        assert is_continued

    def save(self, data: bytes) -> None:
        self.data = data


def test_a_run_on_a_file_continues_one_on_its_rows(tmp_path: Path) -> None:
    """A checkpoint is of the table, wherever its rows lie."""
    path, store = write(mixed_table(), tmp_path / "table.csv"), _Checkpoints()
    runs: list[list[int]] = []

    def stop(progress: Progress) -> None:
        if progress.phase == "training":
            runs[-1].append(progress.epoch)
            if store.data is not None and progress.epoch >= 2:
                raise CancelledError

    settings = QUICK | {"max_steps": 4000, "patience_steps": 4000}
    for table in (read_table(path), reader(path)):
        runs.append([])
        with pytest.raises(CancelledError):
            Synthesizer.fit(
                table, preset="fast", settings=settings, progress=stop, checkpoints=store
            )
    first, second = runs
    assert first[0] == 0
    # The file's run begins where the other came to, or a step before: that may be another pass.
    assert second[0] in (first[-1], first[-1] - 1)


def test_encoded_rows_are_compact(tmp_path: Path) -> None:
    """One byte a code; eight a number, or a place among rare levels; none for other levels."""
    frame = mixed_table()[["grade", "member", "since", "seen"]]
    with prepared_table(frame, None, configure("fast")) as prepared:
        rows = prepared.rows
        assert rows.codes.dtype is torch.int8
        assert rows.values.shape == (700, 3)
        assert rows.n_bytes == 700 * (4 + 3 * 8)


@pytest.fixture
def disk(make_disk: Callable[[int], Path]) -> Path:
    """A disk of a quarter megabyte."""
    return make_disk(256 << 10)


@pytest.mark.parametrize("rows", [700, 1_600, 4_000])
def test_a_full_disk_is_said_and_left_empty(
    rows: int, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever in the preparation it fills up."""
    path = write(mixed_table(rows), tmp_path / "table.csv")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    expected = re.escape(f"no space left in {disk} for the table's columns; TMPDIR names another")
    with pytest.raises(OSError, match=expected):
        Synthesizer.fit(reader(path), preset="fast", settings=QUICK)
    assert not list(disk.iterdir())
