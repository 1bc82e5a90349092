"""How right the progress of a fit is: the seconds that were said to be left, and those that were.

    python -m benchmarks.progress [--tables auto,magic] [--presets default] [-o FILE]

Whole fits on one thread, by CPU seconds, so that a busy machine takes no part in it. For each it
prints the phases, and said / real at 20 %, 40 %, 60 % and 80 % of the way, the extremes from 20 %
on up to the last second, and the longest time without a change of a hundredth of the fraction.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.quality.tables import NoTableError, data_folder, load_table
from gcvae import Synthesizer
from gcvae.training.progress import fit_progress, training_progress
from gcvae.training.progress.training_progress import Progress

_PLACES = (0.2, 0.4, 0.6, 0.8)
_LAST_SECONDS = 1.0


@dataclass(frozen=True)
class Report:
    """What was told, and when, in CPU seconds from the start."""

    at_seconds: float
    progress: Progress


def main() -> int:
    """Fits and prints. Returns: 0 done, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.progress", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--tables", default="auto,shoppers,magic,adult")
    parser.add_argument("--presets", default="default")
    parser.add_argument("-o", "--output", type=Path, help="JSON of the figures")
    given = parser.parse_args()
    torch.set_num_threads(1)
    fit_progress.clock = training_progress.clock = time.process_time
    results = []
    for name in given.tables.split(","):
        try:
            table = load_table(name, given.data).train
        except NoTableError as error:
            print(error, file=sys.stderr)
            return 2
        for preset in given.presets.split(","):
            results.append({"table": name, "preset": preset} | judged(watched(table, preset)))
            print(json.dumps(results[-1]), flush=True)
    if given.output is not None:
        document = {"date": datetime.now(UTC).date().isoformat(), "fits": results}
        given.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def watched(table: Any, preset: str, **choices: Any) -> list[Report]:
    """All that a fit tells."""
    told: list[Report] = []
    begun_at = time.process_time()

    def note(progress: Progress) -> None:
        told.append(Report(time.process_time() - begun_at, progress))

    Synthesizer.fit(table, preset=preset, device="cpu", progress=note, **choices)
    return told


def judged(told: list[Report]) -> dict[str, Any]:
    """The figures of one fit."""
    end = told[-1].at_seconds
    fractions = [report.progress.fraction for report in told]
    assert fractions == sorted(fractions), "the fraction never falls"
    assert fractions.index(1.0) == len(told) - 1, "it is 1 at the end and not before"
    ratios = [
        (report.at_seconds / end, report.progress.seconds_left / (end - report.at_seconds))
        for report in told
        if report.progress.seconds_left is not None
        and 0.2 * end <= report.at_seconds <= end - _LAST_SECONDS
    ]
    return {
        "seconds": round(end, 1),
        "phases": {phase: round(at, 1) for phase, at in _phases(told).items()},
        "said_by_real": {
            str(place): round(min(ratios, key=lambda one: abs(one[0] - place))[1], 2)
            for place in _PLACES
        },
        "least": round(min(ratio for _, ratio in ratios), 2),
        "most": round(max(ratio for _, ratio in ratios), 2),
        "within_two": round(sum(0.5 <= ratio <= 2.0 for _, ratio in ratios) / len(ratios), 3),
        "longest_stand_seconds": round(_longest_stand(told), 1),
    }


def _phases(told: list[Report]) -> dict[str, float]:
    """When each phase began."""
    begun: dict[str, float] = {}
    for report in told:
        begun.setdefault(report.progress.phase, report.at_seconds)
    return begun


def _longest_stand(told: list[Report]) -> float:
    """The longest time in which the fraction grew by no hundredth."""
    since, longest = told[0], 0.0
    for before, report in pairwise(told):
        if report.progress.fraction - since.progress.fraction >= 0.01:
            longest = max(longest, report.at_seconds - since.at_seconds)
            since = report if report.progress.fraction < 1.0 else before
    return longest


if __name__ == "__main__":
    sys.exit(main())
