"""Part of a report: figures, verdict, and the verdict as a sentence.

green           no problem found
amber           check before sharing the rows
red             do not share the rows as they are
not_measured    no statement possible; the sentence has the reason
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GREEN, AMBER, RED, NOT_MEASURED = "green", "amber", "red", "not_measured"
SHOWN = "shown"
"""Verdict of a figure that does not count towards any part's verdict."""
MOST_VISIBLE = 0.65
"""If only larger AUCs are detectable, the part is not measured."""
MORE_UNSEEN = (
    "Hold more rows out of training (report_share), or give a holdout: rows of the same source that"
    " were not used in training."
)
"""Advice if unseen rows are too few."""


@dataclass(frozen=True)
class Figure:
    """One figure of a report.

    Attributes:
        name: Key, in lower case.
        label: Label for readers.
        value: None if it could not be measured.
        floor: The same measure between two samples of real rows of the same size.
        interval: Confidence interval, at the level that `note` or the part's settings state.
        amber: Threshold of the verdict amber, in the direction of `worse`.
        red: Threshold of the verdict red.
        worse: `higher` or `lower`.
        note: Explanation, or why there is no value.
        unit: `share` (0 to 1), `nats`, or empty.
        judged: The verdict, if it is not given by the thresholds.
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
        """Verdict by the thresholds; `not_measured` without a value, `shown` without thresholds."""
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
        """Returns the figure as JSON; numbers that are not finite become null."""
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
    """One of the four parts of a report.

    Attributes:
        verdict: `green`, `amber`, `red` or `not_measured`.
        sentence: The findings.
        advice: What to do about them.
        figures: All figures, including those that are only shown.
        tables: Tables by name, as rows of JSON values.
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
    """Returns a part without figures, for the given reason."""
    return Part(NOT_MEASURED, f"Not measured: {reason}.", advice)


def percent(share: float, decimals: int = 0) -> str:
    """Returns a share as a percentage.

    >>> percent(0.984, 1)
    '98.4 %'
    """
    return f"{100 * share:.{decimals}f} %"


def worst(verdicts: Any) -> str:
    """Returns the worst measured verdict; `not_measured` if none was measured."""
    found = set(verdicts)
    return next((v for v in (RED, AMBER, GREEN) if v in found), NOT_MEASURED)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
