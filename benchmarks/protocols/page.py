"""The page of results: ours beside published figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.pages_of_results import table_of
from benchmarks.quality.models import PRESET_NAMES
from benchmarks.quality.page import failures, provenance, spread
from benchmarks.quality.results import Results, Run

_HEAD = Path(__file__).with_name("page_head.md")
_NONE = ("", "", "")
TABPC = {
    "adult": ("0.572", "0.580", "0.603"),
    "default": ("0.869", "0.704", "0.799"),
    "shoppers": ("0.553", "0.632", "0.672"),
    "magic": ("0.570", "0.613", "0.620"),
    "beijing": ("0.715", "0.614", "0.737"),
}
"""AUC against training rows of TabPC, TabDiff, TabSyn: 1 - half the score of arXiv 2603.23016."""
TABPC_NMI = {
    "adult": "0.993", "default": "0.989", "shoppers": "0.993", "magic": "0.993", "beijing": "0.993",
}  # fmt: skip
"""wNMI of TabPC, from the same paper."""
TABBYFLOW = {
    "adult": ("0.607", "0.503"),
    "default": ("0.613", "0.506"),
    "magic": ("0.551", "0.508"),
    "bank": ("0.562", "0.504"),
}
"""AUC against held-out rows of TabbyFlow (arXiv 2506.05940) and of real rows, in a re-run."""
_TRAINING = """## Against training rows

The figures of TabPC, TabDiff (arXiv 2410.20626) and TabSyn (arXiv 2310.09656) are from TabPC's
paper (arXiv 2603.23016).
"""
_HELD_OUT = """## Against held-out rows

The figures of TabbyFlow (arXiv 2506.05940) and of *real rows, re-run* are from a public repetition
of TabbyFlow's experiments, not from a paper.
"""
_OTHERS = """## Columns and pairs

Higher is better. Figures in parentheses compare one half of the training rows with the other half;
these tables have only half as many rows.
"""
_UTILITY = """## Utility

Figures in parentheses are from training on real rows. `auc` and `r2` are better if higher.
`rmse_log` is the root mean squared error of log max(y, 1), where y is `pm2.5`, the target of
Beijing; lower is better.
"""
_ROWS_HELD_OUT = "test rows|gcvae|TabbyFlow|real rows|real rows, re-run|permuted|gcvae: dependence"
_PAIRS = "Shape|Trend|Trend, real bins|wNMI|wNMI of TabPC"


def render_page(results: Results, command: str) -> str:
    """Returns the page, in Markdown; a line for each table and preset."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in results.runs:
        groups.setdefault((run["table"], run["model"]), []).append(run)
    rows = [
        (name, preset, about, groups[name, preset])
        for name, about in results.tables.items()
        for preset in PRESET_NAMES
        if (name, preset) in groups
    ]

    def part(text: str, heads: str, cells: Callable[..., list[str]]) -> str:
        lines = [
            [name if preset == "default" else f"{name}, {preset}", *cells(name, about, runs)]
            for name, preset, about, runs in rows
        ]
        return f"{text}\n{table_of(['table', *heads.split('|')], lines)}\n"

    return "\n".join(
        [
            _HEAD.read_text(encoding="utf-8").format(command=command),
            part(_TRAINING, "rows|gcvae|TabPC|TabDiff|TabSyn|real halves|permuted", _training),
            part(_HELD_OUT, _ROWS_HELD_OUT, _held_out),
            part(_OTHERS, _PAIRS, _others),
            part(_UTILITY, "utility", _utility),
            *failures(results.runs),
            provenance(results.runs),
        ]
    )


def _training(name: str, about: dict[str, Any], runs: list[Run]) -> list[str]:
    real = [f"{about['halves']['detection']:.3f}", f"{about['permuted']:.3f}"]
    return [f"{about['rows']:,}", _mean(runs, "detection"), *TABPC.get(name, _NONE), *real]


def _held_out(name: str, about: dict[str, Any], runs: list[Run]) -> list[str]:
    peer, peer_real = TABBYFLOW.get(name, ("", ""))
    gap = spread(runs, lambda run: run["held_out"] - run["held_out_marginals"], 3)
    ours = [_mean(runs, "held_out"), peer, f"{about['held_out_real']:.3f}", peer_real]
    return [f"{about['test_rows']:,}", *ours, f"{about['held_out_permuted']:.3f}", gap]


def _others(name: str, about: dict[str, Any], runs: list[Run]) -> list[str]:
    def cell(key: str) -> str:
        return f"{_mean(runs, key)} ({about['halves'][key]:.3f})"

    pairs = ("shape", "trend", "trend_real_bins", "weighted_nmi")
    return [*map(cell, pairs), TABPC_NMI.get(name, "")]


def _utility(name: str, about: dict[str, Any], runs: list[Run]) -> list[str]:
    found = [
        f"{key} {spread(runs, lambda run, k=key: run['efficacy'][k], 3)} ({real:.3f})"
        for key, real in (about["efficacy"] or {}).items()
    ]
    return [", ".join(found)]


def _mean(runs: list[Run], key: str) -> str:
    return spread(runs, lambda run: run[key], 3)
