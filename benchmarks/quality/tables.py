"""The tables of the benchmark: where they lie, how they are split, what their columns are.

The kinds say how a column is measured, and what the peers are told of it. gcvae is told nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
        key: A column that numbers the rows, which is left out, as are rows with a missing target.
    """

    files: tuple[str, ...]
    target: str
    kinds: Mapping[str, str]
    n_train: int | None = None
    key: str | None = None

    @property
    def levels(self) -> list[str]:
        """The columns of levels, without the target."""
        of_levels = ("categorical", "boolean", "ordinal")
        found = [name for name, kind in self.kinds.items() if kind in of_levels]
        return [name for name in found if name != self.target]


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
_OF_PROTOCOLS = {
    "default": _Source(
        ("default.csv.gz",),
        "default payment next month",
        _kinds(
            integer="LIMIT_BAL AGE BILL_AMT1 BILL_AMT2 BILL_AMT3 BILL_AMT4 BILL_AMT5 BILL_AMT6 "
            "PAY_AMT1 PAY_AMT2 PAY_AMT3 PAY_AMT4 PAY_AMT5 PAY_AMT6",
            categorical="SEX EDUCATION MARRIAGE PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6",
        )
        | {"default payment next month": "categorical"},
        key="ID",
    ),
    "beijing": _Source(
        ("beijing.csv.gz",),
        "pm2.5",
        _kinds(
            integer="pm2.5 DEWP Is Ir",
            continuous="TEMP PRES Iws",
            categorical="year month day hour cbwd",
        ),
        key="No",
    ),
    "bank": _Source(
        ("bank_full.csv.gz",),
        "y",
        _kinds(
            integer="age balance day duration campaign pdays previous",
            categorical="job marital education default housing loan contact month poutcome y",
        ),
    ),
}
_ORDERS = "orders"
TABLE_NAMES = (*_SOURCES, _ORDERS)
PROTOCOL_TABLES = ("adult", "default", "shoppers", "magic", "beijing", "bank")
"""The tables of `benchmarks.protocols`."""
_Parts = tuple[pd.DataFrame, pd.DataFrame]
_Split = Callable[[pd.DataFrame, _Source | None], _Parts]


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
        return _published_table(name, folder, _split)
    return _table_of_file(name, _split, TABLE_NAMES)


def load_protocol_table(name: str, folder: Path) -> BenchmarkTable:
    """One of `PROTOCOL_TABLES`, or of a file, split 9:1 as published, unless it has two files.

    Rows are shuffled with seed 1234, or the next one that leaves no level to the test rows alone.

    Raises:
        NoTableError: There is no such table, folder or file.
    """
    if name in PROTOCOL_TABLES:
        return _published_table(name, folder, _nine_tenths)
    return _table_of_file(name, _nine_tenths, PROTOCOL_TABLES)


def _table_of_file(name: str, split: _Split, known: tuple[str, ...]) -> BenchmarkTable:
    path, _, target = name.partition(":")
    if not path.endswith((".csv", ".csv.gz", ".parquet")):
        raise NoTableError(f"there is no table {name!r}, but {', '.join(known)}, and files")
    train, test = split(_read(Path(path)), None)
    schema = infer_schema(train).schema
    if target and target not in schema:
        raise NoTableError(f"{path} has no column {target!r}")
    return BenchmarkTable(Path(path).name.split(".")[0], train, test, schema, target or None)


def _published_table(name: str, folder: Path, split: _Split) -> BenchmarkTable:
    source = (_SOURCES | _OF_PROTOCOLS)[name]
    if not folder.is_dir():
        raise NoTableError(f"there is no folder {folder}; set GCVAE_DATA_DIR to the tables' folder")
    frames = [_read(folder / file) for file in source.files]
    if source.key is not None:
        known = ~frames[0][source.target].isin(["", "NA"])
        frames[0] = frames[0][known].drop(columns=source.key).reset_index(drop=True)
    train, test = frames if len(frames) == 2 else split(frames[0], source)
    given = {"columns": [{"name": name, "kind": kind} for name, kind in source.kinds.items()]}
    return BenchmarkTable(name, train, test, infer_schema(train, given).schema, source.target)


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise NoTableError(f"there is no table {path}")
    frame = read_table(path)
    frame.attrs.clear()  # line numbers, which no longer hold once rows are shuffled
    return frame


def _split(frame: pd.DataFrame, source: _Source | None) -> _Parts:
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    n = (source and source.n_train) or len(frame) * 2 // 3
    return shuffled[:n], shuffled[n:].reset_index(drop=True)


def _nine_tenths(frame: pd.DataFrame, source: _Source | None) -> _Parts:
    levels = source.levels if source else []
    order, n, seed = np.arange(len(frame)), int(len(frame) * 0.9), 1234
    while True:
        np.random.RandomState(seed).shuffle(order)  # the generator of the published split
        train, test = (frame.iloc[part].reset_index(drop=True) for part in (order[:n], order[n:]))
        if all(train[name].nunique() == frame[name].nunique() for name in levels):
            return train, test
        seed += 1
