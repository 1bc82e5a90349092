"""Fifty fixed conditions against the rules of three tables: `python -m benchmarks.conditions`.

For each condition 200 rows are generated. A row counts as broken if it breaks a rule that every row
of the table keeps. The effective sample size is what the 200 rows are worth as independent ones.
Conditions that contradict a rule have to be refused.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.rules import TABLES, RuledTable
from gcvae import Synthesizer
from gcvae.cells.values import format_table
from gcvae.errors import GcvaeError

_ROWS = 200
Given = Mapping[str, Any]

CONDITIONS: Mapping[str, list[Given]] = {
    "shop": [
        {"net_amount": 69.90},
        {"gross_amount": 83.18},
        {"gross_amount": {"min": 100, "max": 120}},
        {"net_amount": {"min": 50, "max": 60}, "quantity": 2},
        {"net_amount": {"min": 200}, "discount_pct": 10},
        {"gross_amount": {"min": 80, "max": 90}, "country": "FR"},
        {"weekday": "Sunday"},
        {"quarter": "Q3"},
        {"weekday": "Monday", "quarter": "Q1"},
        {"ship_date": "2025-03-03"},
        {"order_date": "2025-06"},
        {"order_date": "2025-Q2", "weekday": "Friday"},
        {"ship_date": {"min": "2025-05-01", "max": "2025-05-10"}, "weekday": "Saturday"},
        {"refund_amount": {"min": 50}},
        {"refund_amount": {"min": 20, "max": 40}, "category": "Kitchen"},
        {"vat_rate": 0.19},
        {"vat_rate": 0.2, "gross_amount": {"min": 100}},
        {"category": "Sport", "net_amount": {"min": 100, "max": 300}},
        {"product": "Chef Knife", "quantity": 3},
        {"discount_pct": [5, 10], "weekday": ["Saturday", "Sunday"]},
        {"unit_price": 139.00, "net_amount": {"max": 300}},
        {"refund_amount": None, "quarter": "Q4", "country": "DE"},
    ],
    "staff": [
        {"age": 27},
        {"age": {"min": 50, "max": 55}},
        {"bonus": {"min": 2000, "max": 3000}},
        {"bonus": 2940.00},
        {"is_active": False},
        {"is_active": True, "age": {"max": 30}},
        {"leave_date": {"min": "01.01.2020"}},
        {"department": "Sales", "grade": "G3"},
        {"title": "Store Manager", "salary": {"min": 45000}},
        {"hire_date": "2016"},
        {"salary": 31000, "grade": "G1"},
        {"bonus": {"min": 1000}, "age": {"min": 40}, "is_active": True},
    ],
    "flights": [
        {"month": 7},
        {"month": 2, "day": 14},
        {"hour": 6},
        {"dep_delay": {"min": 60}},
        {"arr_delay": {"min": -5, "max": 5}},
        {"dep_time": 558},
        {"dep_time": {"min": 600, "max": 700}, "origin": "JFK"},
        {"sched_dep_time": 600},
        {"sched_dep_time": {"min": 1700, "max": 1800}, "month": 12},
        {"arr_time": {"min": 2300}},
        {"dep_delay": None},
        {"air_time": None, "month": 3},
        {"airline": "JetBlue Airways", "dep_delay": {"min": 30, "max": 90}},
        {"distance": {"min": 2000}, "hour": {"min": 8, "max": 10}},
        {"time_hour": "2013-07-04"},
        {"carrier": "UA", "month": 5, "day": {"min": 10, "max": 12}, "hour": 9},
    ],
}
CONTRADICTIONS: Mapping[str, list[Given]] = {
    "shop": [
        {"order_date": "2025-03-03", "weekday": "Sunday"},
        {"order_date": "2025-05-10", "ship_date": "2025-05-01"},
        {"net_amount": 100.0, "gross_amount": 50.0},
        {"product": "Chef Knife", "category": "Sport"},
        {"product": "Chef Knife", "category": ["Sport", "Shoes"]},
    ],
    "staff": [
        {"birth_date": "13.07.1998", "age": 44},
        {"is_active": True, "leave_date": "01.02.2024"},
    ],
    "flights": [{"carrier": "B6", "airline": "United Air Lines Inc."}, {"month": 2, "day": 30}],
}


def measure(model: Synthesizer, table: RuledTable, given: Given) -> dict[str, Any]:
    """Returns the figures of one condition."""
    started = time.process_time()
    try:
        sampler = model.sampler(seed=1, given=dict(given))
        summary = sampler.summary(_ROWS)
        rows = pd.concat(list(sampler.blocks(_ROWS)), ignore_index=True)
    except GcvaeError as error:
        seconds = time.process_time() - started
        return {"given": given, "seconds": seconds, "refused": str(error)}
    seconds = time.process_time() - started
    return {
        "given": given,
        "seconds": seconds,
        "effective_sample_size": summary["effective_sample_size"],
        "broken": _broken(table, format_table(rows, model.schema)),
    }


def _broken(table: RuledTable, rows: pd.DataFrame) -> dict[str, int]:
    """Returns how many rows break each rule that every row of the table keeps."""
    broken = {}
    for name, keeps in table.rules.items():
        applies, kept = keeps(table.train)
        if kept[applies].all():
            applies, kept = keeps(rows)
            if (applies & ~kept).any():
                broken[name] = int((applies & ~kept).sum())
    return broken


def main() -> None:
    """Prints the figures of each condition, and writes them where it is asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(CONDITIONS))
    parser.add_argument("--rows", type=int, default=6000, help="to learn from, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="the figures as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    for name in arguments.tables.split(","):
        conditions = CONDITIONS[name]
        table = TABLES[name](arguments.rows)
        model = Synthesizer.fit(table.train, seed=arguments.seed, device="cpu")
        found = [measure(model, table, given) for given in conditions]
        refused = [measure(model, table, given) for given in CONTRADICTIONS[name]]
        results[name] = {"conditions": found, "contradictions": refused}
        for figures in (*found, *refused):
            _show(name, figures)
    every = [one for table in results.values() for one in table["conditions"]]
    sizes = [one.get("effective_sample_size", 0.0) for one in every]
    seconds = [one["seconds"] for one in every]
    n_broken = sum(sum(one.get("broken", {}).values()) for one in every)
    print(
        f"{len(every)} conditions: {n_broken} times a rule broken; "
        f"effective sizes of {_ROWS}: median {np.median(sizes):.0f}, least {min(sizes):.0f}; "
        f"CPU s: median {np.median(seconds):.2f}, most {max(seconds):.2f}"
    )
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")


def _show(name: str, figures: Mapping[str, Any]) -> None:
    outcome = figures.get("refused") or (
        f"{figures['effective_sample_size']:.0f} of {_ROWS}, broken: {figures['broken'] or 'none'}"
    )
    print(f"{name} {json.dumps(figures['given'])}: {figures['seconds']:.2f} CPU s, {outcome}")


if __name__ == "__main__":
    main()
