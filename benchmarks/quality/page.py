"""The results as a page of Markdown tables: mean and standard deviation over the seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.models import MODEL_NAMES, OTHERS
from benchmarks.quality.results import Results, Run

_HEAD = Path(__file__).with_name("page_head.md")
"""What the page begins with: the measures and their definitions."""
_COLUMNS = (
    "model",
    "Shape %",
    "two-way TV %",
    "Trend %",
    "C2ST",
    "utility",
    "nats",
    "DCR share",
    "copies % (held out)",
    "fit CPU s",
)


def render_page(results: Results, command: str) -> str:
    """The page."""
    parts = [_HEAD.read_text(encoding="utf-8").format(command=command)]
    for table in results.tables:
        parts.append(_section(results, table))
    parts.append(provenance(results.runs))
    return "\n".join(parts)


def _section(results: Results, table: str) -> str:
    about = results.tables[table]
    runs = [run for run in results.runs if run["table"] == table]
    real = next((run["utility"]["real"] for run in runs if "utility" in run), None)
    lines = [
        f"## {table}",
        "",
        f"{about['rows']:,} training rows, {about['test_rows']:,} test rows, "
        f"{len(about['kinds'])} columns.",
        "",
        _row(_COLUMNS),
        _row(["---", *["---:"] * (len(_COLUMNS) - 1)]),
        _floor_row(about["floors"], real),
        _test_row(about["test"], about["floors"]),
    ]
    groups = _groups(runs)
    lines += [_model_row(label, group, about["floors"]) for label, group in groups]
    lines += failures(runs)
    absent = [name for name in MODEL_NAMES if name in OTHERS and name not in _models(runs)]
    if absent:
        lines += ["", f"Not measured: {', '.join(absent)}."]
    return "\n".join([*lines, ""])


def _models(runs: Iterable[Run]) -> set[str]:
    return {run["model"] for run in runs}


def _groups(runs: list[Run]) -> list[tuple[str, list[Run]]]:
    """The runs of each model and its settings, in the order of the models' list."""
    groups: dict[str, list[Run]] = {}
    places = {name: i for i, name in enumerate(MODEL_NAMES)}
    for run in sorted(runs, key=lambda run: places.get(run["model"], -1)):
        if "failed" not in run:
            settings = f" {json.dumps(run['settings'])}" if run["settings"] else ""
            groups.setdefault(run["model"] + settings, []).append(run)
    return list(groups.items())


def _floor_row(floors: dict[str, Any], real: float | None) -> str:
    shape, trend, pairs = (
        f"{100 * floors[name]['value']:.2f}"
        for name in ("shape_error", "trend_error", "two_way_tv")
    )
    cells = ["*floor; real rows' utility*", shape, pairs, trend, "0.500"]
    return _row([*cells, "" if real is None else f"{real:.3f}", "", "0.500", *[""] * 2])


def _test_row(test: dict[str, Any], floors: dict[str, Any]) -> str:
    errors = _errors([test], floors)
    return _row(["*real test rows*", *errors, f"{test['c2st']:.3f}", *[""] * 5])


def _model_row(label: str, runs: list[Run], floors: dict[str, Any]) -> str:
    return _row(
        [
            label,
            *_errors(runs, floors),
            spread(runs, lambda run: run["c2st"], 3),
            spread(runs, lambda run: run["utility"]["value"], 3),
            _nats(runs),
            spread(runs, lambda run: run["privacy"]["dcr_share"], 3),
            _copies(runs),
            mean(runs, lambda run: run["cost"]["fit"]["cpu_seconds"], 1),
        ]
    )


def _errors(runs: list[Any], floors: dict[str, Any]) -> list[str]:
    """Shape, two-way TV and Trend, the first two with their multiples of the floor."""
    cells = []
    for key, name in (("shape", "shape_error"), ("two_way_tv", "two_way_tv")):
        multiple = np.mean([run[key] for run in runs]) / floors[name]["value"]
        cells.append(f"{spread(runs, lambda run, k=key: 100 * run[k], 2)} ({multiple:.2f}×)")
    return [*cells, spread(runs, lambda run: 100 * run["trend"], 2)]


def _nats(runs: list[Run]) -> str:
    text = spread(runs, lambda run: run["cost"]["nats_per_row"], 3)
    n_impossible = max(run["cost"]["n_impossible_rows"] for run in runs)
    rows = "row" if n_impossible == 1 else "rows"
    text += f"; {n_impossible} impossible {rows}" if n_impossible else ""
    return f"({text})" if text and runs[0]["model"].startswith("paper-") else text


def _copies(runs: list[Run]) -> str:
    made = mean(runs, lambda run: 100 * run["privacy"]["exact_copies"], 2)
    held_out = mean(runs, lambda run: 100 * run["privacy"]["held_out_copies"], 2)
    return f"{made} ({held_out})" if made else ""


def spread(runs: list[Any], figure: Callable[[Any], float | None], decimals: int) -> str:
    """Mean ± standard deviation of the runs that have the figure."""
    text, found = mean(runs, figure, decimals), _found(runs, figure)
    return text if len(found) < 2 else f"{text} ± {np.std(found, ddof=1):,.{decimals}f}"


def mean(runs: list[Any], figure: Callable[[Any], float | None], decimals: int) -> str:
    """Mean of the runs that have the figure; empty if none has."""
    found = _found(runs, figure)
    return f"{np.mean(found):,.{decimals}f}" if found else ""


def _found(runs: list[Any], figure: Callable[[Any], float | None]) -> list[float]:
    found = []
    for run in runs:
        try:
            value = figure(run)
        except KeyError:
            continue
        found += [] if value is None else [value]
    return found


def failures(runs: list[Run]) -> list[str]:
    failed = [run for run in runs if "failed" in run]
    return [
        "",
        *(f"- {run['model']}, seed {run['seed']}: {run['failed']}" for run in failed),
    ] * bool(failed)


def provenance(runs: list[Run]) -> str:
    """When, with which versions and on what the figures were measured."""
    lines = ["## Measured with", "", _row(["model", "versions", "on", "machine"])]
    lines.append(_row(["---"] * 4))
    for model in sorted(_models(runs)):
        own = [run for run in runs if run["model"] == model]
        versions = {
            ", ".join(f"{name} {number}" for name, number in run["versions"].items()) for run in own
        }
        days = sorted({run["measured_at"][:10] for run in own})
        machines = sorted({run["machine"].removesuffix(", 1 thread") for run in own})
        when = " to ".join(dict.fromkeys([days[0], days[-1]]))
        lines.append(_row([model, "; ".join(sorted(versions)), when, "; ".join(machines)]))
    return "\n".join([*lines, ""])


def _row(cells: Iterable[str]) -> str:
    return f"|{'|'.join(cells)}|"
