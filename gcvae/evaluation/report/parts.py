"""A part of a report: its figures, its verdict, and that verdict in plain words.

green           no objection found
amber           review before sharing
red             do not share as it is
not_measured    not measured; the sentence has the reason
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GREEN, AMBER, RED, NOT_MEASURED = "green", "amber", "red", "not_measured"
SHOWN = "shown"
"""Of a figure that has no part in any verdict."""
MOST_VISIBLE = 0.65
"""Where only areas larger than this would have been seen, that nothing was found says nothing."""
MORE_UNSEEN = (
    "Hold more rows out of training (report_share), or give a holdout: rows of the same source that"
    " were not used in training."
)
"""What to do where unseen rows are too few."""


@dataclass(frozen=True)
class Figure:
    """One number of a report.

    Attributes:
        name: Its key, in lower case.
        label: What it is, in plain words.
        value: None where it could not be measured.
        floor: The same measure between two samples of real rows of the same size.
        interval: Lower and upper end, at the level that `note` or the part's settings say.
        amber: The value from which on, in the direction of `worse`, the verdict is amber.
        red: The same of red.
        worse: `higher` or `lower`.
        note: What one should know of it, or why there is none.
        unit: `share` (0 to 1), `nats`, or nothing.
        judged: The verdict, where thresholds alone do not give it.
    """

    name: str
    label: str
    value: float | None
    floor: float | None = None
    interval: tuple[float, float] | None = None
    amber: float | None = None
    red: float | None = None
    worse: str = "higher"
    note: str = ""
    unit: str = ""
    judged: str | None = None

    @property
    def verdict(self) -> str:
        """By the thresholds; `not_measured` where there is no value, `shown` without them."""
        if self.judged is not None:
            return self.judged
        if self.value is None:
            return NOT_MEASURED
        if self.amber is None and self.red is None:
            return SHOWN
        sign = 1.0 if self.worse == "higher" else -1.0
        for threshold, verdict in ((self.red, RED), (self.amber, AMBER)):
            if threshold is not None and sign * self.value >= sign * threshold:
                return verdict
        return GREEN

    def to_json(self) -> dict[str, Any]:
        """Returns the figure as a JSON document; what is no finite number is null."""
        ends = None if self.interval is None else [_finite(end) for end in self.interval]
        return {
            "name": self.name,
            "label": self.label,
            "value": _finite(self.value),
            "floor": _finite(self.floor),
            "interval": ends,
            "amber": _finite(self.amber),
            "red": _finite(self.red),
            "worse": self.worse,
            "verdict": self.verdict,
            "note": self.note,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class Part:
    """One of the four questions of a report.

    Attributes:
        sentence: What was found, in plain words.
        advice: What to do about it.
        figures: Those that are judged, and those that are only shown.
        tables: More figures, by name: rows of JSON values.
    """

    verdict: str
    sentence: str
    advice: str = ""
    figures: tuple[Figure, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the part as a JSON document."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "advice": self.advice,
            "figures": [figure.to_json() for figure in self.figures],
        } | dict(self.tables)


def not_measured(reason: str, advice: str = "") -> Part:
    """Returns a part of which nothing can be said."""
    return Part(NOT_MEASURED, f"Not measured: {reason}.", advice)


def percent(share: float, decimals: int = 0) -> str:
    """Returns a share in a sentence.

    >>> percent(0.984, 1)
    '98.4 %'
    """
    return f"{100 * share:.{decimals}f} %"


def worst(verdicts: Any) -> str:
    """Returns the worst of some verdicts, of those that were measured; `not_measured` if
    none was."""
    found = set(verdicts)
    return next((v for v in (RED, AMBER, GREEN) if v in found), NOT_MEASURED)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
