"""Whole numbers that name rows are told from quantities, whatever their column is called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema
from tests.lengths import first_of

Numbers = npt.NDArray[np.int64]
BARELY = {"max_steps": 5, "evaluate_every_steps": 5}
N = 1000


def drawn(low: int, high: int, n: int = N, seed: int = 0) -> Numbers:
    """Numbers that are given out once each."""
    return np.random.default_rng(seed).choice(high - low, n, replace=False) + low


def reading(name: str, numbers: Numbers, *, as_text: bool = True) -> tuple[str, bool]:
    """The kind that a column gets, and whether a note asks for it."""
    frame = pd.DataFrame({"z": np.arange(len(numbers)) % 2, name: numbers})
    found = infer_schema(frame.astype({name: str}) if as_text else frame, rules=False)
    notes = [w for w in found.warnings if w.startswith(f"column {name!r}: has whole numbers that")]
    return str(found.schema[name].kind), any('"kind": "identifier"' in note for note in notes)


BY_YEARS = np.concatenate([year * 100_000 + drawn(1, 900, 200) for year in range(2020, 2025)])


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("rechnung", drawn(20_000, 20_000 + 8 * N)),
        ("policy", np.sort(drawn(100_000, 130_000))),
        ("x", BY_YEARS),
        ("значение", 500_000 + np.cumsum(np.random.default_rng(1).geometric(1 / 6, N))),
        ("値", np.append(drawn(0, 5 * N), [7, 7, 9, 9])),
        ("x", 10**15 + drawn(0, 10 * N)),
    ],
    ids=["shuffled", "sorted", "years", "gaps", "two copies", "large"],
)
def test_numbers_that_are_given_out_once_each_are_keys_whatever_their_name(
    numbers: Numbers, name: str, as_text: bool
) -> None:
    assert reading(name, numbers, as_text=as_text)[0] == "identifier"


NUMBER_NAMES = (
    "invoice_no;InvoiceNo;Kundennr;Kunden-Nr.;Rechnungsnummer;numero_cliente;número;№;номер"
    ";номер счета;番号;客户编号;رقم;rechnung;policy;conta_cliente;EAN"
)


@pytest.mark.parametrize("name", NUMBER_NAMES.split(";"))
def test_a_name_decides_where_numbers_are_too_sparse_to_tell(name: str) -> None:
    assert reading(name, drawn(10_000_000, 100_000_000)) == ("identifier", False)


@pytest.mark.parametrize("name", ["x", "order_value", "mean", "заметка"])
def test_without_a_name_sparse_numbers_are_quantities_with_a_note(name: str) -> None:
    assert reading(name, drawn(10_000_000, 100_000_000)) == ("integer", True)


def test_a_day_and_a_time_are_no_key() -> None:
    days = pd.Series(pd.date_range("2019-02-01", periods=N)).dt.strftime("%Y%m%d").astype(int)
    seconds = days.to_numpy() * 1_000_000 + 61_500
    for times in (seconds, seconds // 100, seconds * 1000 + drawn(0, 1000)):
        assert reading("x", times, as_text=False) == ("integer", False)


def test_sparse_numbers_of_nine_digits_and_of_few_years_get_a_note() -> None:
    numbers = np.concatenate([year * 10**8 + drawn(0, 10**8, 200) for year in (2020, 2022, 2023)])
    assert reading("x", numbers) == ("integer", True)


def test_what_its_user_says_needs_no_note() -> None:
    numbers = drawn(10_000_000, 100_000_000)
    frame = pd.DataFrame({"z": np.arange(N) % 2, "x": numbers})
    for kind in ("integer", "identifier"):
        found = infer_schema(frame, {"columns": [{"name": "x", "kind": kind}]})
        assert found.schema["x"].kind == kind
        assert not [w for w in found.warnings if "are as distinct as keys" in w]


def quantities(n: int, seed: int) -> dict[str, Numbers]:
    """Quantities of whole numbers, most of them different in each row."""
    random = np.random.default_rng(seed)
    return {
        "amount in cents": np.round(random.lognormal(9, 1.2, n)).astype(int),
        "price": np.round(random.lognormal(4, 1.2, n)).astype(int) * 100 + 99,
        "population": np.round(random.lognormal(10, 1.5, n)).astype(int),
        "views": np.round((random.pareto(1.1, n) + 1) * 1e4).astype(int),
        "seconds": 1_600_000_000 + np.sort(random.choice(20 * n, n, replace=False)),
        "milliseconds": 1_600_000_000_000 + random.integers(0, 10**11, n),
        "elapsed": np.sort(random.integers(0, 50 * n, n)),
        "every minute": np.arange(n) * 60,
        "meter": np.cumsum(random.poisson(9, n)),
        "odometer": 10_000 + np.cumsum(random.poisson(300, n) + 1),
        "salary": np.round(random.normal(50_000, 12_000, n)).astype(int),
        "turnover": np.round(random.gamma(3, 20_000, n)).astype(int) * 1000,
        "balance": np.round(random.normal(0, 1e6, n)).astype(int),
        "evenly": random.integers(0, 20 * n, n),
        "month": np.array([y * 100 + m for y in range(1900, 2000) for m in range(1, 13)])[:n],
    }


@pytest.mark.parametrize("n", first_of(300, 60, 1200, 10_000))
@pytest.mark.parametrize("seed", range(3))
def test_quantities_stay_quantities(n: int, seed: int) -> None:
    for name, numbers in quantities(n, seed).items():
        assert reading(name, numbers, as_text=False)[0] == "integer", name


def test_days_as_whole_numbers_of_a_frame_are_no_keys() -> None:
    days = pd.date_range("1999-12-01", periods=90).strftime("%Y%m%d").astype(int).to_numpy()
    assert reading("day", days, as_text=False) == ("integer", False)


def test_few_rows_are_told_by_the_name_alone() -> None:
    assert reading("order_id", drawn(1000, 9000, 30))[0] == "identifier"
    assert reading("item_id", np.repeat(drawn(1000, 9000, 30), 2)[:40])[0] == "integer"
    assert reading("rechnung", drawn(1000, 9000, 30))[0] == "integer"


def test_drawn_keys_are_new_and_each_its_own_also_of_a_saved_model(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "z": np.arange(N) % 2,
            "x": drawn(20_000, 20_000 + 8 * N),
            "номер": drawn(10_000_000, 100_000_000),
            "amount": quantities(N, 0)["amount in cents"],
        }
    )
    fitted = Synthesizer.fit(frame, preset="paper-vae", seed=0, settings=BARELY)
    fitted.save(tmp_path / "m.gcvae")
    rows = Synthesizer.load(tmp_path / "m.gcvae").sample(3 * N, 1)
    pd.testing.assert_frame_equal(rows, fitted.sample(3 * N, 1))
    for name in ("x", "номер"):
        assert rows[name].dtype == np.int64
        assert rows[name].is_unique
        assert not set(rows[name]) & set(frame[name])
