"""How many drawn rows keep the rules of a table: `python -m benchmarks.rules --tables flights`.

For each rule the share of the table's rows that keep it, and of as many drawn rows; then how well
boosted trees tell drawn rows from real ones that the model has not seen (C2ST).

`flights` is the published table, of which two rows of three are learned from. Its rules are in the
README beside it. `orders` is `benchmarks.known_truth.orders`, of 5,000 rows. `shop` and `staff` are
orders.csv and hr.csv, `default` and `magic` the published tables; `prices` and `stones` are
`benchmarks.known_truth.priced`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from benchmarks.known_truth.orders import DISCOUNT_PERCENT, draw_orders
from benchmarks.known_truth.priced import draw_prices, draw_stones
from benchmarks.quality.tables import data_folder
from gcvae import Synthesizer, read_table
from gcvae.arrays import Mask
from gcvae.cells.values import format_table, parse_table
from gcvae.evaluation.fidelity import classifier_two_sample_auc

Keeps = Callable[[pd.DataFrame], tuple[Mask, Mask]]
"""Of rows of text cells: those the rule speaks of, and those that keep it. Shape: (n,), (n,)."""

NEW_YORK = "America/New_York"
MINUTES_OF_A_DAY = 1_440


@dataclass(frozen=True)
class RuledTable:
    """A table, in cells of text, and what holds in it.

    Attributes:
        train: Rows to learn from.
        held_out: Rows of the same source.
        rules: Each by its name; some hold in a share of the rows.
    """

    train: pd.DataFrame
    held_out: pd.DataFrame
    rules: Mapping[str, Keeps]


@dataclass(frozen=True)
class Share:
    """Of the rows that a rule speaks of, how many keep it.

    Attributes:
        table: Of the rows learned from.
        drawn: Of the drawn rows.
        n_drawn: Drawn rows that the rule speaks of.
    """

    table: float
    drawn: float
    n_drawn: int


@dataclass(frozen=True)
class Figures:
    """What one fit gave.

    Attributes:
        shares: Of each rule.
        c2st: Trees on the columns alone, drawn rows against held-out ones.
        fit_cpu_seconds: Of the fit.
    """

    shares: Mapping[str, Share]
    c2st: float
    fit_cpu_seconds: float


# Cells


def _numbers(frame: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    return pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)


def _cents(frame: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    return np.rint(100 * _numbers(frame, name))


def _dates(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    return pd.to_datetime(frame[name], errors="coerce", utc=True)


def _is_blank(frame: pd.DataFrame, name: str) -> Mask:
    cells = frame[name]
    return (cells.isna() | cells.isin(["", "NA"])).to_numpy(dtype=bool)


# Kinds of rules


def _equal(left: Callable[..., Any], right: Callable[..., Any], modulus: int = 0) -> Keeps:
    """Rows in which both sides are numbers, and those in which they are the same one."""

    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        gap = left(frame) - right(frame)
        speaks = ~np.isnan(gap)
        gap = np.mod(gap, modulus) if modulus else gap
        return speaks, np.abs(gap) < 1e-6

    return keeps


def _not_before(start: str, end: str) -> Keeps:
    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        a, b = _dates(frame, start), _dates(frame, end)
        return (a.notna() & b.notna()).to_numpy(dtype=bool), (a <= b).to_numpy(dtype=bool)

    return keeps


def _follows(table: pd.DataFrame, causes: list[str], effect: str) -> Keeps:
    """Whether the effect is the one that most rows of the table have with the causes."""

    def cells(frame: pd.DataFrame, names: list[str]) -> pd.Series[Any]:
        return frame[names].astype(str).agg(" | ".join, axis=1)

    counts = pd.crosstab(cells(table, causes), table[effect].astype(str))
    usual = counts.idxmax(axis=1)

    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        blank = np.any([_is_blank(frame, name) for name in [*causes, effect]], axis=0)
        expected = cells(frame, causes).map(usual)
        known = expected.notna().to_numpy() & ~blank
        return known, (frame[effect].astype(str) == expected).to_numpy()

    return keeps


def _blank_with(cause: str, *effects: str, only_if: bool = True) -> Keeps:
    """Effects are blank where the cause is, and with `only_if` nowhere else."""

    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        of_cause = _is_blank(frame, cause)
        blank = np.stack([_is_blank(frame, name) for name in effects])
        kept = (blank == of_cause).all(axis=0) if only_if else (blank | ~of_cause).all(axis=0)
        return np.ones(len(frame), dtype=bool), kept

    return keeps


def _on_step(name: str, step: float, offset: float = 0.0) -> Keeps:
    return _equal(
        lambda f: np.rint(100 * (_numbers(f, name) - offset)), lambda f: 0, int(step * 100)
    )


# flights


def _clock_minutes(frame: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    """Minutes since midnight of a clock time that is written as 517 for 05:17."""
    written = _numbers(frame, name)
    return np.floor(written / 100) * 60 + np.mod(written, 100)


def _new_york(part: str) -> Callable[[pd.DataFrame], npt.NDArray[np.float64]]:
    def read(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        here = _dates(frame, "time_hour").dt.tz_convert(NEW_YORK)
        parts: pd.Series[float] = getattr(here.dt, part)
        return parts.to_numpy(dtype=np.float64)

    return read


def _clock_rule(end: str, start: str, delay: str) -> Keeps:
    return _equal(
        lambda f: _clock_minutes(f, end) - _clock_minutes(f, start),
        lambda f: _numbers(f, delay),
        MINUTES_OF_A_DAY,
    )


def _whole_hours(frame: pd.DataFrame) -> tuple[Mask, Mask]:
    dates = _dates(frame, "time_hour")
    return dates.notna().to_numpy(), (dates == dates.dt.floor("h")).to_numpy()


def _clock_is_possible(name: str) -> Keeps:
    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        written = _numbers(frame, name)
        return ~np.isnan(written), (np.mod(written, 100) < 60) & (written <= 2400)

    return keeps


def _flights(n_rows: int | None) -> RuledTable:
    table = read_table(data_folder() / "flights.csv")
    table.attrs.clear()  # line numbers, which no longer hold once rows are shuffled
    shuffled = table.sample(frac=1, random_state=0).reset_index(drop=True)
    n = len(table) * 2 // 3
    rules = {
        "hour x 100 + minute = sched_dep_time": _equal(
            lambda f: 100 * _numbers(f, "hour") + _numbers(f, "minute"),
            lambda f: _numbers(f, "sched_dep_time"),
        ),
        "dep_time - sched_dep_time = dep_delay (clock)": _clock_rule(
            "dep_time", "sched_dep_time", "dep_delay"
        ),
        "arr_time - sched_arr_time = arr_delay (clock)": _clock_rule(
            "arr_time", "sched_arr_time", "arr_delay"
        ),
        "carrier -> airline": _follows(table, ["carrier"], "airline"),
        "airline -> carrier": _follows(table, ["airline"], "carrier"),
        "origin, dest -> distance": _follows(table, ["origin", "dest"], "distance"),
        "tailnum -> carrier": _follows(table, ["tailnum"], "carrier"),
        "dep_time blank = dep_delay blank": _blank_with("dep_time", "dep_delay"),
        "dep_time blank -> arrival blank": _blank_with(
            "dep_time", "arr_time", "arr_delay", "air_time", only_if=False
        ),
        "arr_delay blank = air_time blank": _blank_with("arr_delay", "air_time"),
        "time_hour on whole hours": _whole_hours,
        "month of time_hour (New York)": _equal(_new_york("month"), lambda f: _numbers(f, "month")),
        "day of time_hour (New York)": _equal(_new_york("day"), lambda f: _numbers(f, "day")),
        "hour of time_hour (New York)": _equal(_new_york("hour"), lambda f: _numbers(f, "hour")),
        "minute on fives": _on_step("minute", 5),
        "sched_arr_time on fives": _on_step("sched_arr_time", 5),
        "dep_time is a clock time": _clock_is_possible("dep_time"),
        "arr_time is a clock time": _clock_is_possible("arr_time"),
        "sched_arr_time is a clock time": _clock_is_possible("sched_arr_time"),
    }
    return RuledTable(shuffled[:n][:n_rows], shuffled[n:].reset_index(drop=True), rules)


# orders


def _whole_total(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    return _cents(frame, "price") * _numbers(frame, "quantity")


def _discounted_total(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    return np.floor((_whole_total(frame) * (100 - DISCOUNT_PERCENT) + 50) / 100)


def _total_with_or_without_discount(frame: pd.DataFrame) -> tuple[Mask, Mask]:
    total = _cents(frame, "total")
    kept = (total == _whole_total(frame)) | (total == _discounted_total(frame))
    return ~np.isnan(total), kept


def _invoice_form(frame: pd.DataFrame) -> tuple[Mask, Mask]:
    cells = frame["invoice"].astype(str)
    kept = cells.str.fullmatch(r"INV-\d{6}") & ~cells.duplicated(keep=False)
    return np.ones(len(frame), dtype=bool), kept.to_numpy(dtype=bool)


def _orders(n_rows: int | None) -> RuledTable:
    table = draw_orders(seed=0)
    rules = {
        "ordered <= shipped": _not_before("ordered", "shipped"),
        "ordered = shipped": _equal(
            lambda f: (_dates(f, "shipped") - _dates(f, "ordered")).dt.total_seconds().to_numpy(),
            lambda f: 0.0,
        ),
        "ordered <= paid": _not_before("ordered", "paid"),
        "total = price x quantity": _equal(lambda f: _cents(f, "total"), _whole_total),
        "total is that, or less the discount": _total_with_or_without_discount,
        "price ends in .99": _on_step("price", 1, 0.99),
        "price ends in .49": _on_step("price", 1, 0.49),
        "product -> category": _follows(table, ["product"], "category"),
        "country -> currency": _follows(table, ["country"], "currency"),
        "paid blank = method blank": _blank_with("paid", "method"),
        "invoice is INV- and six digits, each once": _invoice_form,
    }
    return RuledTable(table[:n_rows], draw_orders(seed=1), rules)


# Tables of shops, staff and banks


def _at_least(high: str, low: str) -> Keeps:
    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        gap = _numbers(frame, high) - _numbers(frame, low)
        return ~np.isnan(gap), gap > -1e-9

    return keeps


def _rounded(left: Callable[..., Any], right: Callable[..., Any], decimals: int) -> Keeps:
    """Rows in which the right side is the left one, rounded to so many decimals."""

    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        gap = left(frame) - right(frame)
        return ~np.isnan(gap), np.abs(gap) <= (0.5 + 1e-6) * 10.0**-decimals

    return keeps


def _same_word(name: str, word: Callable[[pd.DataFrame], pd.Series[Any]]) -> Keeps:
    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        expected = word(frame)
        return expected.notna().to_numpy(), (frame[name] == expected).to_numpy()

    return keeps


def _same_number(a: str, b: str) -> Keeps:
    """Rows in which both are equal, of those in which they are not 0."""

    def keeps(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        x, y = _numbers(frame, a), _numbers(frame, b)
        return ~np.isnan(x) & ~np.isnan(y), (x == y) & (x != 0)

    return keeps


def _halves(table: pd.DataFrame, rules: Mapping[str, Keeps], n_rows: int | None) -> RuledTable:
    """Two rows of three to learn from, and the others."""
    table.attrs.clear()  # line numbers, which no longer hold once rows are shuffled
    shuffled = table.sample(frac=1, random_state=0).reset_index(drop=True)
    n = len(table) * 2 // 3
    return RuledTable(shuffled[:n][:n_rows], shuffled[n:].reset_index(drop=True), rules)


def _shop(n_rows: int | None) -> RuledTable:
    def ordered(frame: pd.DataFrame) -> pd.Series[Any]:
        return pd.to_datetime(frame["order_date"], errors="coerce")

    def net(frame: pd.DataFrame) -> Any:
        price, quantity = (_numbers(frame, name) for name in ("unit_price", "quantity"))
        return price * quantity * (1 - _numbers(frame, "discount_pct") / 100)

    def full_refund(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        refund, gross = (_numbers(frame, name) for name in ("refund_amount", "gross_amount"))
        return ~np.isnan(refund), refund == gross

    table = read_table(data_folder() / "orders.csv")
    rules = {
        "net = price x quantity x (1 - discount)": _rounded(
            lambda f: _numbers(f, "net_amount"), net, 2
        ),
        "gross = net x (1 + vat)": _rounded(
            lambda f: _numbers(f, "gross_amount"),
            lambda f: _numbers(f, "net_amount") * (1 + _numbers(f, "vat_rate")),
            2,
        ),
        "weekday of the order": _same_word("weekday", lambda f: ordered(f).dt.day_name()),
        "quarter of the order": _same_word(
            "quarter", lambda f: "Q" + ordered(f).dt.quarter.astype("Int64").astype("string")
        ),
        "ordered <= shipped": _not_before("order_date", "ship_date"),
        "refund <= gross": _at_least("gross_amount", "refund_amount"),
        "full refunds": full_refund,
        "country -> VAT": _follows(table, ["country"], "vat_rate"),
        "product -> category": _follows(table, ["product"], "category"),
    }
    return _halves(table, rules, n_rows)


def _staff(n_rows: int | None) -> RuledTable:
    def dates(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
        return pd.to_datetime(frame[name], format="%d.%m.%Y", errors="coerce")

    def age(frame: pd.DataFrame) -> Any:
        born, day = dates(frame, "birth_date"), pd.Timestamp("2026-01-31")
        had_birthday = (born.dt.month < day.month) | (
            (born.dt.month == day.month) & (born.dt.day <= day.day)
        )
        return (day.year - born.dt.year - ~had_birthday).to_numpy(dtype=np.float64)

    def left_later(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        hired, left = dates(frame, "hire_date"), dates(frame, "leave_date")
        return (hired.notna() & left.notna()).to_numpy(), (left >= hired).to_numpy()

    def active(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        is_active = frame["is_active"].astype(str).str.lower() == "true"
        return np.ones(len(frame), dtype=bool), (
            is_active == _is_blank(frame, "leave_date")
        ).to_numpy()

    table = read_table(data_folder() / "hr.csv")
    rate = {"G1": 0.02, "G2": 0.04, "G3": 0.06, "G4": 0.1, "G5": 0.15}
    rules = {
        "age of the birth date": _equal(lambda f: _numbers(f, "age"), age),
        "bonus = rate(grade) x salary": _rounded(
            lambda f: _numbers(f, "bonus"),
            lambda f: f["grade"].map(rate).to_numpy(dtype=np.float64) * _numbers(f, "salary"),
            0,
        ),
        "hired <= left": left_later,
        "active = not left": active,
        "title -> department": _follows(table, ["title"], "department"),
    }
    table.attrs.clear()
    return RuledTable(table[:n_rows], table, rules)


def _default(n_rows: int | None) -> RuledTable:
    table = read_table(data_folder() / "default.csv.gz")
    rules = {
        f"PAY_AMT{i} = BILL_AMT{i + 1}": _same_number(f"PAY_AMT{i}", f"BILL_AMT{i + 1}")
        for i in range(1, 6)
    } | {
        f"BILL_AMT{i} = BILL_AMT{i + 1}": _same_number(f"BILL_AMT{i}", f"BILL_AMT{i + 1}")
        for i in range(1, 6)
    }
    return _halves(table, rules, n_rows)


def _magic(n_rows: int | None) -> RuledTable:
    rules = {
        "Length >= Width": _at_least("fLength", "fWidth"),
        "Conc >= Conc1": _at_least("fConc", "fConc1"),
    }
    return _halves(read_table(data_folder() / "magic.csv"), rules, n_rows)


def _prices(n_rows: int | None) -> RuledTable:
    def of(name: str) -> Callable[[pd.DataFrame], Any]:
        return lambda frame: _numbers(frame, name)

    rules = {
        "sale = price - discount": _rounded(
            of("sale_price"), lambda f: of("price")(f) - of("discount")(f), 2
        ),
        "total = sale x quantity": _rounded(
            of("total"), lambda f: of("sale_price")(f) * of("quantity")(f), 2
        ),
        "margin = sale - cost": _rounded(
            of("margin"), lambda f: of("sale_price")(f) - of("cost")(f), 2
        ),
        "share = discount / price": _rounded(
            of("discount_share"), lambda f: of("discount")(f) / of("price")(f), 4
        ),
        "margin % of sale": _rounded(
            of("margin_pct"), lambda f: 100 * of("margin")(f) / of("sale_price")(f), 1
        ),
        "saved = discount x quantity": _rounded(
            of("saved"), lambda f: of("discount")(f) * of("quantity")(f), 2
        ),
        "list total = price x quantity": _rounded(
            of("list_total"), lambda f: of("price")(f) * of("quantity")(f), 2
        ),
        "profit = margin x quantity": _rounded(
            of("profit"), lambda f: of("margin")(f) * of("quantity")(f), 2
        ),
    }
    return RuledTable(draw_prices(0)[:n_rows], draw_prices(1), rules)


def _stones(n_rows: int | None) -> RuledTable:
    def depth(frame: pd.DataFrame) -> Any:
        x, w, z = (_numbers(frame, name) for name in "xwz")
        return 200 * z / (x + w)

    def near(frame: pd.DataFrame) -> tuple[Mask, Mask]:
        gap = _numbers(frame, "depth") - depth(frame)
        return ~np.isnan(gap), np.abs(gap) <= 0.1

    rules = {"depth = 200 z / (x + w), to 0.1": near}
    return RuledTable(draw_stones(0)[:n_rows], draw_stones(1), rules)


TABLES: Mapping[str, Callable[[int | None], RuledTable]] = {
    "flights": _flights,
    "orders": _orders,
    "shop": _shop,
    "staff": _staff,
    "default": _default,
    "magic": _magic,
    "prices": _prices,
    "stones": _stones,
}


# Measuring


def shares_kept(table: RuledTable, drawn: pd.DataFrame) -> dict[str, Share]:
    """The shares of rows that keep each rule."""
    shares = {}
    for name, keeps in table.rules.items():
        (of_table, in_table), (of_drawn, in_drawn) = keeps(table.train), keeps(drawn)
        shares[name] = Share(
            float(in_table[of_table].mean()),
            float(in_drawn[of_drawn].mean()) if of_drawn.any() else float("nan"),
            int(of_drawn.sum()),
        )
    return shares


def measure(table: RuledTable, preset: str, settings: Mapping[str, Any], seed: int) -> Figures:
    """Fits, draws as many rows as the table has, and judges them."""
    started = time.process_time()
    synthesizer = Synthesizer.fit(
        table.train, preset=preset, settings=settings, seed=seed, device="cpu"
    )
    seconds = time.process_time() - started
    schema, drawn = synthesizer.schema, synthesizer.sample(len(table.train), seed)
    held_out, typed = (_readable(t, synthesizer) for t in (table.held_out, drawn))
    return Figures(
        shares_kept(table, format_table(typed, schema)),
        classifier_two_sample_auc(held_out, typed, schema).value,
        seconds,
    )


def _readable(frame: pd.DataFrame, synthesizer: Synthesizer) -> pd.DataFrame:
    return parse_table(frame.reset_index(drop=True), synthesizer.schema)


def main() -> None:
    """Prints the shares of each table, and writes them where it is asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(TABLES), help=f"of {', '.join(TABLES)}")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rows", type=int, help="rows to learn from, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="the figures as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name in given.tables.split(","):
        table = TABLES[name](given.rows)
        figures = measure(table, given.preset, dict(given.set), given.seed)
        _show(name, len(table.train), figures)
        results[name] = asdict(figures)
    if given.output is not None:
        given.output.write_text(json.dumps(results, indent=1) + "\n")


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _show(name: str, n_rows: int, figures: Figures) -> None:
    print(f"{name}, {n_rows:,} rows: fit {figures.fit_cpu_seconds:.0f} CPU s", flush=True)
    print(f"  {'rule':48s}{'table':>8s}{'drawn':>8s}")
    for rule, share in figures.shares.items():
        print(f"  {rule:48s}{share.table:8.4f}{share.drawn:8.4f}")
    print(f"  C2ST {figures.c2st:.3f}", flush=True)


if __name__ == "__main__":
    main()
