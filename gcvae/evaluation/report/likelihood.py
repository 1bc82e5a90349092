"""Likelihood part: log-likelihood of unseen rows under the model and under simpler models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import kstest

from gcvae.arrays import Numbers
from gcvae.evaluation.report.parts import MORE_UNSEEN, Figure, Part, not_measured, worst

LEAST_ROWS = 30
UNLIKE = "Take unseen rows at random from the same source as the rows of training."


@dataclass(frozen=True)
class RowLikelihoods:
    """log p of equal numbers of members and unseen rows, in nats. Shape: (n,) each.

    Attributes:
        members: Of members under the model.
        unseen: Of unseen rows under the model; -inf if the model can not generate the row.
        percentiles: Percentiles of unseen rows among the held-out rows, 0 to 100.
        independent: Of unseen rows under independent columns.
        copula: Of unseen rows under a plain Gaussian copula.
    """

    members: Numbers
    unseen: Numbers
    percentiles: Numbers
    independent: Numbers
    copula: Numbers


def likelihood_part(
    rows: RowLikelihoods | None, reason: str = "", mismatch: str | None = None
) -> Part:
    """Returns the likelihood part of a report.

    Args:
        rows: Log-likelihoods; None if there are none.
        reason: Why there are none.
        mismatch: Why unseen rows are not comparable, if so.
    """
    if rows is None:
        return not_measured(reason, "Give a model and a holdout.")
    finite = np.isfinite(rows.unseen) & np.isfinite(rows.independent) & np.isfinite(rows.copula)
    if finite.sum() < LEAST_ROWS:
        n = f"{int(finite.sum())} of {len(rows.unseen)} unseen rows"
        return not_measured(f"{n} have a likelihood; {LEAST_ROWS} are needed", MORE_UNSEEN)
    members, unseen = (x[np.isfinite(x)] for x in (rows.members, rows.unseen))
    compared = rows.unseen[finite]
    figures = (
        Figure(
            "unseen_nats",
            "Score of unseen rows: log-likelihood, nats per row; higher is better",
            float(unseen.mean()),
            interval=_around(unseen),
            unit="nats",
        ),
        _gain(
            "over_independent",
            "Gain over independent columns",
            compared,
            rows.independent[finite],
            red=True,
        ),
        _gain(
            "over_plain_copula", "Gain over a plain Gaussian copula", compared, rows.copula[finite]
        ),
        _gap(members, unseen),
        _calibration(rows.percentiles[np.isfinite(rows.unseen)]),
        _impossible(rows.unseen),
    )
    verdict = worst(figure.verdict for figure in figures)
    if mismatch is not None:
        return Part("not_measured", f"Not measured: {mismatch}.", UNLIKE, figures)
    return Part(verdict, *_sentences(figures), figures=figures)


def _around(values: Numbers) -> tuple[float, float]:
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - 1.96 * error, float(values.mean()) + 1.96 * error


def _gain(name: str, label: str, model: Numbers, other: Numbers, red: bool = False) -> Figure:
    """Returns the log-likelihood gain of the model over another, nats per unseen row; good above
    0."""
    gains = model - other
    return Figure(
        name,
        f"{label}, nats per unseen row",
        float(gains.mean()),
        interval=_around(gains),
        amber=None if red else 0.0,
        red=0.0 if red else None,
        worse="lower",
        note="the same rows under both; 95 % interval",
        unit="nats",
    )


def _gap(members: Numbers, unseen: Numbers) -> Figure:
    """Returns the log-likelihood gap between training and unseen rows, a sign of memorisation."""
    error = math.hypot(
        float(members.std(ddof=1)) / math.sqrt(len(members)),
        float(unseen.std(ddof=1)) / math.sqrt(len(unseen)),
    )
    gap = float(members.mean() - unseen.mean())
    amber = max(2 * error, 0.05 * float(unseen.std()))
    return Figure(
        "gap",
        "By so much rows of training score higher than unseen ones, nats per row",
        gap,
        floor=0.0,
        interval=(gap - 1.96 * error, gap + 1.96 * error),
        amber=amber,
        red=max(amber, 0.5 * float(unseen.std())),
        note="beyond noise and a twentieth of the spread of scores amber, beyond half of it red",
        unit="nats",
    )


def _calibration(percentiles: Numbers) -> Figure:
    """Returns the largest deviation of the unseen rows' percentiles from a uniform distribution."""
    found = percentiles[np.isfinite(percentiles)] / 100
    if len(found) < LEAST_ROWS:
        note = "too few rows" if len(found) else "the model gives none: its file is minimal"
        return Figure("percentiles", "Percentiles of scores are off by", None, note=note)
    return Figure(
        "percentiles",
        "Percentiles of scores are off by, at most",
        float(kstest(found, "uniform").statistic),
        floor=0.87 / math.sqrt(len(found)),
        amber=0.1 + 1.36 / math.sqrt(len(found)),
        note="floor: what as many rows that are ranked rightly have on average",
        unit="share",
    )


def _impossible(unseen: Numbers) -> Figure:
    return Figure(
        "impossible",
        "Share of unseen rows that the model can not draw",
        float(np.mean(~np.isfinite(unseen))),
        amber=0.05,
        note="a level that training did not have, or a hard rule that is broken",
        unit="share",
    )


def _sentences(figures: tuple[Figure, ...]) -> tuple[str, str]:
    found = {figure.name: figure.verdict for figure in figures}
    if found["over_independent"] == "red":
        return (
            "The model describes unseen rows worse than the columns do each by itself: what it has"
            " learned of how they depend on each other does not hold.",
            "Train longer, or on more rows; look at the table's warnings.",
        )
    if found["gap"] in ("amber", "red"):
        return (
            "The model knows the rows that it was trained on better than rows that it has not"
            " seen: it has learned something of them by heart.",
            "This is about the model and its scores: “Is it safe?” says what attacks make of it.",
        )
    if "amber" in found.values():
        marked = "; ".join(
            _SENTENCES[name] for name, verdict in found.items() if verdict == "amber"
        )
        return (
            f"The model describes rows that it has not seen, but {marked}.",
            "Look at the figures that are marked before you rely on scores and percentiles.",
        )
    return (
        "The model describes rows that it has not seen better than simpler models do, and hardly"
        " worse than the rows that it learned from.",
        "Nothing to do.",
    )


_SENTENCES = {
    "over_plain_copula": "a simple model (a plain Gaussian copula) describes them as well",
    "percentiles": "the percentiles that it gives them are off",
    "impossible": "some of them it could never draw",
}
"""Sentences for figures with a verdict other than green."""
