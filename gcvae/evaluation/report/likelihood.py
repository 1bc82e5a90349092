"""Likelihood part of a report: log-likelihood of unseen rows, compared with simpler models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import kstest

from gcvae.arrays import Numbers
from gcvae.evaluation.report.parts import MORE_UNSEEN, Figure, Part, not_measured, worst

LEAST_ROWS = 30
UNLIKE = "Take unseen rows at random from the same source as the training rows."


@dataclass(frozen=True)
class RowLikelihoods:
    """Log-likelihoods of n training rows (members) and n unseen rows, in nats. Shape: (n,) each.

    Attributes:
        members: Log-likelihood of members under the model.
        unseen: Log-likelihood of unseen rows under the model; -inf if it cannot generate the row.
        percentiles: Percentile of each unseen row's score among the held-out rows, 0 to 100.
        independent: Log-likelihood of unseen rows under a model of independent columns.
        copula: Log-likelihood of unseen rows under a Gaussian copula without latent variables.
    """

    members: Numbers
    unseen: Numbers
    percentiles: Numbers
    independent: Numbers
    copula: Numbers


def likelihood_part(
    rows: RowLikelihoods | None, reason: str = "", mismatch: str | None = None
) -> Part:
    """Returns the likelihood part of a report, which tells how well the model describes new rows.

    Args:
        rows: Log-likelihoods; None if they could not be computed, for a `reason` given as a clause.
        mismatch: Why unseen rows are not comparable with training rows, as a clause; else None.
    """
    if rows is None:
        return not_measured(reason, "Give a model and a holdout.")
    finite = np.isfinite(rows.unseen) & np.isfinite(rows.independent) & np.isfinite(rows.copula)
    if finite.sum() < LEAST_ROWS:
        n = f"{int(finite.sum())} of {len(rows.unseen)} unseen rows"
        return not_measured(f"only {n} have a likelihood; {LEAST_ROWS} are needed", MORE_UNSEEN)
    members, unseen = (x[np.isfinite(x)] for x in (rows.members, rows.unseen))
    compared = rows.unseen[finite]
    figures = (
        Figure(
            "unseen_nats",
            "Log-likelihood of unseen rows, nats per row (higher is better)",
            float(unseen.mean()),
            interval=_around(unseen),
            unit="nats",
        ),
        _gain(
            "over_independent",
            "Gain over a model of independent columns",
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
    if mismatch is not None:
        return replace(not_measured(mismatch, UNLIKE), figures=figures)
    verdict = worst(figure.verdict for figure in figures)
    return Part(verdict, *_sentences(figures), figures=figures)


def _around(values: Numbers) -> tuple[float, float]:
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - 1.96 * error, float(values.mean()) + 1.96 * error


def _gain(name: str, label: str, model: Numbers, other: Numbers, red: bool = False) -> Figure:
    """Returns the figure of the model's mean log-likelihood of unseen rows minus that of a simpler
    model, `other`. If it is not above 0, the verdict is red if `red` is True, else amber."""
    gains = model - other
    return Figure(
        name,
        f"{label}, nats per unseen row",
        float(gains.mean()),
        interval=_around(gains),
        amber=None if red else 0.0,
        red=0.0 if red else None,
        worse="lower",
        note="difference in log-likelihood of the same rows; it should be above 0",
        unit="nats",
    )


def _gap(members: Numbers, unseen: Numbers) -> Figure:
    """Returns the figure of the mean log-likelihood of training rows (members) minus that of unseen
    rows: a large difference is a sign of memorisation."""
    error = math.hypot(
        float(members.std(ddof=1)) / math.sqrt(len(members)),
        float(unseen.std(ddof=1)) / math.sqrt(len(unseen)),
    )
    gap = float(members.mean() - unseen.mean())
    amber = max(2 * error, 0.05 * float(unseen.std()))
    return Figure(
        "gap",
        "Log-likelihood of training rows minus that of unseen rows, nats per row",
        gap,
        floor=0.0,
        interval=(gap - 1.96 * error, gap + 1.96 * error),
        amber=amber,
        red=max(amber, 0.5 * float(unseen.std())),
        note="amber beyond noise and 5 % of the standard deviation of scores, red beyond 50 %",
        unit="nats",
    )


def _calibration(percentiles: Numbers) -> Figure:
    """Returns the figure of the largest deviation of percentiles from a uniform distribution."""
    found = percentiles[np.isfinite(percentiles)] / 100
    if len(found) < LEAST_ROWS:
        note = "too few rows" if len(found) else "a minimal model gives no percentiles"
        return Figure("percentiles", "Error of score percentiles", None, note=note)
    return Figure(
        "percentiles",
        "Largest error of score percentiles",
        float(kstest(found, "uniform").statistic),
        floor=0.87 / math.sqrt(len(found)),
        amber=0.1 + 1.36 / math.sqrt(len(found)),
        note="floor: average error of as many rows with correct percentiles",
        unit="share",
    )


def _impossible(unseen: Numbers) -> Figure:
    return Figure(
        "impossible",
        "Unseen rows that the model cannot generate",
        float(np.mean(~np.isfinite(unseen))),
        amber=0.05,
        note="because of a category that is not in the model, or a broken hard rule",
        unit="share",
    )


def _sentences(figures: tuple[Figure, ...]) -> tuple[str, str]:
    found = {figure.name: figure.verdict for figure in figures}
    if found["over_independent"] == "red":
        return (
            "The model describes unseen rows worse than a model of independent columns: the"
            " dependencies that it has learned do not hold in new rows.",
            "Train longer or on more rows, and check the data-quality warnings of the table.",
        )
    if found["gap"] in ("amber", "red"):
        return (
            "The model describes its training rows better than unseen rows: it has memorised"
            " something of them.",
            "This concerns the model and its scores. The part “Privacy” shows what attacks gain.",
        )
    if "amber" in found.values():
        marked = "; ".join(
            _SENTENCES[name] for name, verdict in found.items() if verdict == "amber"
        )
        return (
            f"The model describes unseen rows, but {marked}.",
            "Review the amber figures before you rely on scores and percentiles.",
        )
    return (
        "The model describes unseen rows better than simpler models do, and hardly worse than its"
        " training rows.",
        "No action needed.",
    )


_SENTENCES = {
    "over_plain_copula": "a simpler model (a plain Gaussian copula) describes them as well",
    "percentiles": "the percentiles of their scores are inaccurate",
    "impossible": "it cannot generate some of them",
}
"""Clause for each figure whose verdict is amber."""
