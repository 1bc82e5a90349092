"""What a model remembers: attacks on models of halves of real tables, beside what rows are worth.

    python -m benchmarks.memory --tables auto magic --seeds 3 --output RESULTS.json
    python -m benchmarks.memory --tables auto --settings '{"memory": "low", "gap_weight": 2}' ...
    python -m benchmarks.memory --page RESULTS.json

A model of the preset `default` learns from one half of a table, of which it is told the kinds of
the columns, and the report (docs/report.md) attacks it beside the other half: by the model's own
scores, and by the rows that it draws. The seed shuffles the rows before they are cut, and is the
model's and the report's. Each run is a line of the answer as soon as it is done; those that the
results have already are not made again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.pages_of_results import replaced_part, table_of
from benchmarks.quality.measures import utility
from benchmarks.quality.results import processor
from benchmarks.quality.tables import TABLE_NAMES, BenchmarkTable, data_folder, load_table
from gcvae import Synthesizer
from gcvae.cells.values import format_table, parse_table
from gcvae.evaluation.fidelity import classifier_two_sample_auc, two_way_tv
from gcvae.figures.figures import drawing, new_figure, save_figure

PAGE = Path("docs") / "privacy.md"
PART = "memory"
PICTURE = Path("docs") / "images" / "memory-curve.png"
SHOWN = {
    "likelihood": "the model's scores",
    "distance": "distance to synthetic rows",
    "density_ratio": "classifier on synthetic rows",
}
"""Attacks of the report that the page shows; each has a twin on isolated rows (`_isolated`)."""

_WORTH = {
    "C2ST": ("c2st", None),
    "utility / of real rows": ("utility", "utility_real"),
    "two-way TV / of real rows": ("two_way_tv", "two_way_tv_real"),
}
_CURVES = {"c2st": "C2ST: lower is better", "utility": "utility: higher is better"}
_ARMS = {json.dumps({}): "normal", json.dumps({"memory": "low"}): "low"}
_STEADY_ROWS, _MOST_REPEATS = 5_000, 5
"""Small tables repeat the two-sample cross-validation until about so many rows were judged."""
_MEMBERS = ("area", "interval_95", "rows_of_each_class", "verdict")


def run(table: BenchmarkTable, seed: int, settings: Mapping[str, object]) -> dict[str, Any]:
    """The figures of one model of a half, with these settings."""
    rows = pd.concat([table.train, table.test], ignore_index=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    half = len(order) // 2
    members, unseen = (
        rows.iloc[part].reset_index(drop=True) for part in (order[:half], order[half:])
    )
    started_at = time.process_time()
    kinds = [{"name": column.name, "kind": str(column.kind)} for column in table.schema]
    synthesizer = Synthesizer.fit(
        members, schema={"columns": kinds}, settings=settings, seed=seed, progress=False
    )
    cpu_seconds = time.process_time() - started_at
    report = synthesizer.report(members, unseen, seed=seed).to_json()
    attacks = {attack["name"]: attack for attack in report["privacy"]["attacks"]}
    return {
        "table": table.name,
        "seed": seed,
        "settings": dict(settings),
        "rows_of_training": half,
        "cpu_seconds_of_fit": round(cpu_seconds, 1),
        "cpu_seconds": round(time.process_time() - started_at, 1),
        "memory_gap": synthesizer.training_record["memory_gap"],
        "attacks": {
            name: {member: attacks[name][member] for member in _MEMBERS}
            for name in (*SHOWN, *(f"{name}_isolated" for name in SHOWN))
            if name in attacks
        },
        "verdicts": report["privacy"]["leaks"],
        "fidelity": _fidelity(table, synthesizer, members, unseen, seed)
        | {"nats": -_figure(report["likelihood"], "unseen_nats")},
    }


def _fidelity(
    table: BenchmarkTable,
    synthesizer: Synthesizer,
    members: pd.DataFrame,
    unseen: pd.DataFrame,
    seed: int,
) -> dict[str, float]:
    """What drawn rows are worth, beside unseen rows; `…_real`: rows learned in their place.

    Drawn rows, rows learned and unseen rows are as many.
    """
    drawn = format_table(synthesizer.sample(len(members), seed=seed), synthesizer.schema)
    learned, other, drawn = (parse_table(rows, table.schema) for rows in (members, unseen, drawn))
    repeats = int(np.clip(_STEADY_ROWS // (2 * len(members)), 1, _MOST_REPEATS))
    figures = {
        "c2st": classifier_two_sample_auc(other, drawn, table.schema, n_repeats=repeats).value,
        "two_way_tv": two_way_tv(other, drawn, table.schema).value,
        "two_way_tv_real": two_way_tv(other, learned, table.schema).value,
    }
    if table.target is not None:
        found = utility(learned, drawn, other, table.schema, table.target)
        figures |= {"utility": found.value, "utility_real": found.real}
    return figures


def _figure(part: Mapping[str, Any], name: str) -> float:
    return next(float(figure["value"]) for figure in part["figures"] if figure["name"] == name)


def lines_of_page(document: Mapping[str, Any]) -> str:
    """The table of docs/privacy.md: a line for each table and `memory`, means over the seeds."""
    heads = ["table", "training rows", "memory", "seeds", "gap, nats", *SHOWN.values(), *_WORTH]
    lines: list[list[str]] = []
    for (name, settings), found in _runs_of(document).items():
        if settings not in _ARMS:
            continue
        gap = statistics.fmean(one["memory_gap"]["nats"] for one in found)
        cells = [name, f"{found[0]['rows_of_training']:,}", _ARMS[settings], str(len(found))]
        cells += [f"{gap:.2f}", *(_written(pooled(found, attack)) for attack in SHOWN)]
        lines.append(cells + [_told(found, *members) for members in _WORTH.values()])
    return table_of(heads, lines)


def _runs_of(document: Mapping[str, Any]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The runs of each table and each settings, as JSON, those of one table together."""
    runs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for found in sorted(document["runs"], key=lambda one: TABLE_NAMES.index(one["table"])):
        runs.setdefault((found["table"], json.dumps(found["settings"])), []).append(found)
    return runs


def pooled(runs: Sequence[Mapping[str, Any]], attack: str) -> tuple[float, float]:
    """An attack's mean area over the runs, and half of its 95 % interval.

    By the runs' own intervals, as if no row were in two of them.
    """
    found = [run["attacks"][attack] for run in runs]
    halves = [(one["interval_95"][1] - one["interval_95"][0]) / 2 for one in found]
    half = sum(half**2 for half in halves) ** 0.5 / len(found)
    return statistics.fmean(one["area"] for one in found), half


def _written(area: tuple[float, float]) -> str:
    mean, half = area
    return f"{mean:.3f} ({mean - half:.3f}–{mean + half:.3f})"


def _told(runs: Sequence[Mapping[str, Any]], member: str, beside: str | None) -> str:
    """Returns the mean of a figure ± its deviation over seeds; after " / ", that of real rows."""
    values = [run["fidelity"][member] for run in runs if member in run["fidelity"]]
    text = f"{statistics.fmean(values):.3f}"
    text += f" ±{statistics.stdev(values):.3f}" if len(values) > 1 else ""
    if beside is None:
        return text
    return f"{text} / {statistics.fmean(run['fidelity'][beside] for run in runs):.3f}"


def draw_curves(document: Mapping[str, Any], path: Path) -> None:
    """For each table with a sweep of `gap_weight`: C2ST and utility over the area by scores."""
    sweeps: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for (name, settings), found in _runs_of(document).items():
        sweeps.setdefault(name, {})[settings] = found
    sweeps = {n: _same_seeds(sweep) for n, sweep in sweeps.items() if len(sweep) > len(_ARMS)}
    with drawing(sweeps, "png"):
        figure = new_figure(3.6 * len(sweeps), 5.6, "constrained")
        grid = figure.subplots(len(_CURVES), len(sweeps), squeeze=False, sharex="col")
        for column, (name, sweep) in zip(grid.T, sweeps.items(), strict=True):
            n_seeds = len(next(iter(sweep.values())))
            column[0].set_title(f"{name}, {n_seeds} seed{'s' * (n_seeds > 1)}", fontsize=10)
            column[-1].set_xlabel("attack by scores, area", fontsize=9)
            for axes, (member, label) in zip(column, _CURVES.items(), strict=True):
                axes.set_ylabel(label, fontsize=9)
                axes.tick_params(labelsize=8)
                _draw_curve(axes, sweep, member)
        save_figure(figure, path, "png", dpi=150)


def _same_seeds(
    sweep: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[Mapping[str, Any]]]:
    """The runs with the seeds that all settings of a sweep have."""
    seeds = set.intersection(*({run["seed"] for run in found} for found in sweep.values()))
    return {key: [run for run in found if run["seed"] in seeds] for key, found in sweep.items()}


def _draw_curve(axes: Any, sweep: Mapping[str, Sequence[Mapping[str, Any]]], member: str) -> None:
    """A point for each weight, and one for the default, with the 95 % interval of its area."""
    points = []
    for settings, found in sweep.items():
        area, half = pooled(found, "likelihood")
        worth = statistics.fmean(run["fidelity"][member] for run in found)
        weight = found[0]["settings"].get("gap_weight", 1.0)
        points.append((weight, area, half, worth, _ARMS.get(settings)))
    low = sorted(point for point in points if point[4] != "normal")
    axes.plot([p[1] for p in low], [p[3] for p in low], color="#1f4e79", linewidth=1)
    for weight, area, half, worth, arm in points:
        colour = "#c0392b" if arm == "normal" else "#1f4e79"
        axes.errorbar(area, worth, xerr=half, fmt="s" if arm else "o", color=colour,
                      markersize=6 if arm else 4, elinewidth=0.5)  # fmt: skip
        text = arm or f"{weight:g}"
        offset = (4, -11) if arm == "normal" else (4, 5)
        axes.annotate(text, (area, worth), offset, textcoords="offset points", fontsize=8)


def main() -> None:
    """Runs what the command line asks for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["auto", "magic", "shoppers", "adult"],
                        choices=TABLE_NAMES)  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", nargs="+", type=json.loads, default=[{}, {"memory": "low"}],
                        help="of the models, JSON objects")  # fmt: skip
    parser.add_argument("--output", type=Path, help="results; runs are added to those in it")
    parser.add_argument("--page", type=Path, help="results to be shown in docs/privacy.md")
    arguments = parser.parse_args()
    if arguments.page is not None:
        document = json.loads(arguments.page.read_text())
        PAGE.write_text(replaced_part(PAGE.read_text(), PART, lines_of_page(document)))
        draw_curves(document, PICTURE)
        return
    document = {"processor": processor(), "date": str(date.today()), "runs": []}
    if arguments.output is not None and arguments.output.exists():
        document = json.loads(arguments.output.read_text())
    tables = [load_table(name, data_folder()) for name in arguments.tables]
    done = [_identity(found) for found in document["runs"]]
    for seed, table, settings in product(range(arguments.seeds), tables, arguments.settings):
        if (table.name, seed, settings) in done:
            continue
        document["runs"].append(run(table, seed, settings))
        sys.stdout.write(json.dumps(document["runs"][-1]) + "\n")
        sys.stdout.flush()
        if arguments.output is not None:
            arguments.output.write_text(json.dumps(document, indent=1) + "\n")


def _identity(found: Mapping[str, Any]) -> tuple[str, int, Mapping[str, Any]]:
    """What no two runs of the results share."""
    return found["table"], found["seed"], found["settings"]


if __name__ == "__main__":
    main()
