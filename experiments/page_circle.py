"""Writes the page's sections on the half circle, without and with wedges (the paper's Table 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.half_circle_wedges import MODELS, picture_of
from experiments.markdown import signed, spread, table

Line = dict[str, Any]

_PAPER = {"VAE": "1.250 ± 0.02", "VAE-ROC": "1.431 ± 0.01"}
_PAPER_WEDGES = {"VAE": "0.293 ± 0.05", "VAE-ROC": "0.416 ± 0.02"}
_ASKED_MEAN, _ASKED_BEST = 1.40, 1.43
_HEAD = (
    "model", "restarts", "paper, best", "mean ± deviation", "best by validation",
    "importance weighting", "below 1 nat",
)  # fmt: skip


def half_circle(lines: list[Line], budget: dict[str, Any], at: Path) -> str:
    """Returns the section on the half circle in Markdown.

    Args:
        lines: Results of the restarts.
        budget: Budget of the run, as JSON.
        at: Folder of the pictures, relative to the page.
    """
    table_lines = [line for line in lines if "learning" not in line]
    rows = _rows(table_lines, _PAPER, with_share=True)
    return "\n".join(
        [
            "## Half circle (Table 1)\n",
            "*Claim*: a principal direction in the covariance lets the VAE-ROC follow a curve that "
            "a diagonal covariance cannot.\n",
            "*Run*: there are 280 training points, 60 validation points, which choose the kernel "
            "width σ and the best restart, and 60 test points. The networks have 100 hidden units "
            f"and K = 2. They are trained for {budget['circle_steps']:,} updates, and for half as "
            "many while the learning rate falls to zero. The paper takes the best of 50 restarts "
            "by its *test* points. Figures are nats per test point, by Parzen windows on "
            f"{budget['drawn_rows']:,} samples, except importance weighting. The last column is "
            "the share of restarts below one nat.\n",
            table(_HEAD, rows),
            "",
            f"![VAE]({at}/half-circle-paper-vae.png)",
            f"![VAE-ROC]({at}/half-circle-paper-vae-roc.png)\n",
            "Black points are decoder means on a 15 × 15 grid of z, dotted lines are three "
            "standard deviations, and grey points are training points.\n",
            *_circle_verdict(table_lines),
        ]
    )


def _circle_verdict(lines: list[Line]) -> list[str]:
    found = {
        model: np.array([line["test"] for line in lines if line["model"] == model])
        for model in _PAPER
    }
    if not all(len(test) for test in found.values()):
        return []
    roc, vae = found["VAE-ROC"], found["VAE"]
    best, best_of_vae = (
        _best([line for line in lines if line["model"] == model])["test"]
        for model in ("VAE-ROC", "VAE")
    )
    gain = roc.mean() - vae.mean()
    word = "holds" if gain > 0 else "does not hold"
    reach = roc.mean() >= _ASKED_MEAN and best >= _ASKED_BEST
    return [
        f"*Verdict*: the claim {word}. The VAE-ROC gains {signed(gain, 2)} nats on average over "
        f"restarts. Its mean is {roc.mean():.2f}, and its best restart by validation has "
        f"{best:.2f}; it {'reaches' if reach else 'does not reach'} the paper's level "
        f"({_ASKED_MEAN:.2f} and {_ASKED_BEST:.2f}). {np.mean(vae < 1.0):.0%} of the VAE's "
        f"restarts and {np.mean(roc < 1.0):.0%} of the VAE-ROC's stay below one nat. The best VAE "
        f"by validation has {best_of_vae:.2f}.\n"
    ]


def wedges(lines: list[Line], budget: dict[str, Any], at: Path) -> str:
    """Returns the section on the half circle with wedges in Markdown; arguments as in
    `half_circle`."""
    return "\n".join(
        [
            "## Half circle with wedges (Table 1) and the ℓ2 penalty\n",
            "*Claim*: with three wedges on the half circle, the VAE puts density outside the "
            "data. The VAE-ROC represents the half circle by μ and the wedges by a, and an ℓ2 "
            "penalty narrows its contours.\n",
            "*Run*: the paper does not describe the wedges. We use triangles at 45°, 90° and 135° "
            "with 100 points each, so the figures cannot be compared with the paper's. λ is the "
            "weight of the squared ℓ2 norm of a.\n",
            table(_HEAD[:-1], _rows(lines, _PAPER_WEDGES, with_share=False)),
            "",
            *(f"![{name}]({at}/{picture_of(name)})" for name in MODELS),
            "\nThe pictures show the best restart of each model by validation. The contours of the "
            "VAE fill the inside of the half circle, and those of the VAE-ROC do not. With growing "
            "λ, contours cross the inside again.\n",
            *_wedges_verdict(lines),
        ]
    )


def _wedges_verdict(lines: list[Line]) -> list[str]:
    tests = {
        name: np.array([line["test"] for line in lines if line["model"] == name]) for name in MODELS
    }
    if not all(len(test) for test in tests.values()):
        return []
    gain = tests["VAE-ROC"].mean() - tests["VAE"].mean()
    word = "holds" if gain > 0 else "does not hold"
    norms = {
        name: np.mean([line["norm_of_a"] for line in lines if line["model"] == name])
        for name in MODELS
        if name != "VAE"
    }
    narrower = [*norms.values()] == sorted(norms.values(), reverse=True)
    return [
        f"*Verdict*: the claim {word}. The VAE-ROC gains {signed(gain, 2)} nats on average over "
        "restarts. The mean norms of a are "
        f"{'; '.join(f'{norm:.3f} for {name}' for name, norm in norms.items())}. The penalty "
        f"{'shrinks a as claimed' if narrower else 'does not shrink a with every step of λ'}.\n"
    ]


def _rows(lines: list[Line], printed: dict[str, str], *, with_share: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for model in dict.fromkeys(line["model"] for line in lines):
        runs = [line for line in lines if line["model"] == model]
        test = np.array([run["test"] for run in runs])
        if model == "the truth itself":
            row: tuple[str, ...] = (
                "points of the truth",
                "–",
                "–",
                f"{test[0]:.3f}",
                "–",
                "–",
                "–",
            )
        else:
            best = _best(runs)
            row = (
                model, str(len(runs)), printed.get(model, "–"), spread(test),
                f"{best['test']:.3f}", f"{best['nats']:.3f}", f"{np.mean(test < 1.0):.0%}",
            )  # fmt: skip
        rows.append(row if with_share else row[:-1])
    return rows


def _best(runs: list[Line]) -> Line:
    return max(runs, key=lambda run: float(run["validation"]))
