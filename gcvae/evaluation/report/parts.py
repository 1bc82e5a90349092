"""Part of a report: its figures, their joint verdict, and sentences for readers.

Verdicts:

green           no problem found
amber           check before sharing the rows
red             do not share the rows as they are
not_measured    no statement is possible; the part's sentence gives the reason
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["green", "amber", "red", "not_measured", "shown"]
"""`shown` is the verdict of a figure that does not contribute to a part's verdict."""
PARTS = "fidelity", "utility", "likelihood", "privacy"
"""Names of the parts of a report."""
MOST_VISIBLE = 0.65
"""If the rows are so few that only an AUC above this one is detectable, a part is not measured."""
MORE_UNSEEN = (
    "Hold more rows out of training (report_share), or give a holdout: rows of the same source that"
    " were not used in training."
)
"""Advice that is shown if there are too few unseen rows."""
NO_UNSEEN = "Give a holdout, or train with report_share=0.1."
"""Advice that is shown if there are no unseen rows."""


@dataclass(frozen=True)
class Figure:
    """One statistic of a report, such as an error or AUC, with the thresholds of its verdict.

    Attributes:
        name: Key of the statistic; `label` is its description for readers.
        value: Measured value; None if it could not be measured.
        floor: The same measure between two real samples of the same size; None if not applicable.
        interval: Confidence interval of the value, 95 % unless the part's `settings` or `note`
            state another level; None if there is none.
        amber: Value from which the verdict is amber, in the direction of `worse`; None for never.
        red: Value from which the verdict is red; None for never.
        worse: Which values are worse: `higher` or `lower`.
        note: Explanation for readers, or the reason why there is no value.
        unit: `share` (0 to 1), `nats`, or empty for a number without a unit.
        judged: The verdict; None if it follows from the thresholds.
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
    judged: Verdict | None = None

    @property
    def verdict(self) -> Verdict:
        """`green`, `amber` or `red` by the thresholds; `not_measured` without a value, `shown` (no
        verdict) without thresholds."""
        if self.judged is not None:
            return self.judged
        if self.value is None:
            return "not_measured"
        if self.amber is None and self.red is None:
            return "shown"
        sign = 1.0 if self.worse == "higher" else -1.0
        if self.red is not None and sign * self.value >= sign * self.red:
            return "red"
        if self.amber is not None and sign * self.value >= sign * self.amber:
            return "amber"
        return "green"

    def to_json(self) -> dict[str, Any]:
        """Returns the statistic as a JSON object; NaN and infinity become None."""
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
    """Part of a report: fidelity, utility, likelihood or privacy.

    Attributes:
        verdict: Verdict on the part.
        sentence: Findings, in sentences for readers.
        advice: What to do about the findings.
        figures: All statistics, including those that do not contribute to the verdict.
        tables: Additional members of the part's JSON object, most of them tables.
    """

    verdict: Verdict
    sentence: str
    advice: str = ""
    figures: tuple[Figure, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the part as a JSON object."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "advice": self.advice,
            "figures": [figure.to_json() for figure in self.figures],
        } | dict(self.tables)


def not_measured(reason: str, advice: str = "") -> Part:
    """Returns a part without statistics; `reason`, a clause, tells why nothing was measured."""
    return Part("not_measured", f"Not measured: {reason}.", advice)


def percent(share: float, decimals: int = 0) -> str:
    """Returns a share (0 to 1) as a string in percent.

    >>> percent(0.984, 1)
    '98.4 %'
    """
    return f"{100 * share:.{decimals}f} %"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the worst of some verdicts; `not_measured` if no verdict is green, amber or red."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("red", "amber", "green")
    return next((verdict for verdict in order if verdict in found), "not_measured")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
