"""The tables of the benchmark: where they lie, how they are split, what their columns are.

The kinds say how a column is measured, and what the peers are told of it. gcvae is told nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.known_truth.orders import ROWS, draw_orders
from gcvae import infer_schema, read_table
from gcvae.schema.columns import TableSchema


class NoTableError(Exception):
    """A table is unknown, or its file is not there."""


@dataclass(frozen=True)
class BenchmarkTable:
    """A table split into rows to learn from and rows to judge by.

    Attributes:
        name: In results and pages.
        train: Cells as text.
        test: Cells as text.
        schema: For measuring, with the kinds of this file.
        target: The column that utility predicts; None for no utility.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    schema: TableSchema
    target: str | None


@dataclass(frozen=True)
class _Source:
    """Where a table comes from.

    Attributes:
        files: The training and the test file, or one to be split.
        target: The column that utility predicts.
        kinds: Of the columns, as the published comparisons have them; where there are none they
            are inferred.
        n_train: Rows to learn from, of one file; None for two of three.
    """

    files: tuple[str, ...]
    target: str
    kinds: Mapping[str, str]
    n_train: int | None = None


def _kinds(**columns: str) -> dict[str, str]:
    """The kind of each column, from each kind's column names in one text."""
    return {name: kind for kind, names in columns.items() for name in names.split()}


_SOURCES = {
    "adult": _Source(
        ("adult_train.csv", "adult_test.csv"),
        "income",
        _kinds(
            integer="age fnlwgt education_num capital_gain capital_loss hours_per_week",
            categorical="workclass education marital_status occupation relationship race sex "
            "native_country income",
        ),
    ),
    "shoppers": _Source(
        ("shoppers.csv",),
        "Revenue",
        _kinds(
            integer="Administrative Informational ProductRelated",
            continuous="Administrative_Duration Informational_Duration ProductRelated_Duration "
            "BounceRates ExitRates PageValues SpecialDay",
            categorical="Month OperatingSystems Browser Region TrafficType VisitorType",
            boolean="Weekend Revenue",
        ),
    ),
    "magic": _Source(
        ("magic.csv",),
        "class",
        _kinds(
            continuous="fLength fWidth fSize fConc fConc1 fAsym fM3Long fM3Trans fAlpha fDist",
            categorical="class",
        ),
    ),
    "auto": _Source(
        ("auto_mpg.csv",),
        "mpg",
        _kinds(
            continuous="mpg displacement acceleration",
            integer="horsepower weight",
            ordinal="cylinders model_year",
            categorical="origin",
        ),
        n_train=294,
    ),
    "flights": _Source(("flights.csv",), "arr_delay", {}),
}
_ORDERS = "orders"
TABLE_NAMES = (*_SOURCES, _ORDERS)


def data_folder() -> Path:
    """Where the published tables lie: GCVAE_DATA_DIR, or `shared/data` beside the repository."""
    given = os.environ.get("GCVAE_DATA_DIR")
    return Path(given) if given else Path(__file__).parents[3] / "shared" / "data"


def load_table(name: str, folder: Path) -> BenchmarkTable:
    """A table of the benchmark, or of a file: `path.csv:target`, split 2:1, with inferred kinds.

    Rows of one file are shuffled with seed 0 before they are split.

    Raises:
        NoTableError: There is no such table, folder or file.
    """
    if name == _ORDERS:
        train, test = draw_orders(seed=0), draw_orders(ROWS // 2, seed=1)
        return BenchmarkTable(name, train, test, infer_schema(train).schema, "total")
    if name in _SOURCES:
        return _published_table(name, _SOURCES[name], folder)
    path, _, target = name.partition(":")
    if not path.endswith((".csv", ".csv.gz", ".parquet")):
        raise NoTableError(f"there is no table {name!r}, but {', '.join(TABLE_NAMES)}, and files")
    train, test = _split(_read(Path(path)), None)
    schema = infer_schema(train).schema
    if target and target not in schema:
        raise NoTableError(f"{path} has no column {target!r}")
    return BenchmarkTable(Path(path).name.split(".")[0], train, test, schema, target or None)


def _published_table(name: str, source: _Source, folder: Path) -> BenchmarkTable:
    if not folder.is_dir():
        raise NoTableError(f"there is no folder {folder}; set GCVAE_DATA_DIR to the tables' folder")
    frames = [_read(folder / file) for file in source.files]
    train, test = frames if len(frames) == 2 else _split(frames[0], source.n_train)
    given = {"columns": [{"name": name, "kind": kind} for name, kind in source.kinds.items()]}
    return BenchmarkTable(name, train, test, infer_schema(train, given).schema, source.target)


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise NoTableError(f"there is no table {path}")
    frame = read_table(path)
    frame.attrs.clear()  # line numbers, which no longer hold once rows are shuffled
    return frame


def _split(frame: pd.DataFrame, n_train: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    n = len(frame) * 2 // 3 if n_train is None else n_train
    return shuffled[:n], shuffled[n:].reset_index(drop=True)
