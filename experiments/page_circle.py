"""The sections of the half circle, without and with wedges: Table 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.half_circle import LEARNING
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
    """The section of the half circle."""
    table_lines = [line for line in lines if "learning" not in line]
    rows = _rows(table_lines, _PAPER, with_share=True)
    return "\n".join(
        [
            "## Half circle (Table 1)\n",
            "*Claim*: a principal direction in the covariance lets the VAE-ROC follow a curve that "
            "a diagonal covariance can not.\n",
            "*Run*: 280 points to train on, 60 each to choose σ and to test; 100 hidden units, "
            f"K = 2, whole batches, {budget['circle_steps']:,} updates and half as many again "
            "while the step falls to zero. The paper has 50 restarts, and takes the best of them "
            "by its *test* points. As many points as are to choose σ choose the weights, the "
            "library's own among both. Nats per test point: by Parzen windows on "
            f"{budget['drawn_rows']:,} drawn points, and, of the best, by importance "
            "weighting.\n",
            table(_HEAD, rows),
            "",
            f"![VAE]({at}/half-circle-paper-vae.png)",
            f"![VAE-ROC]({at}/half-circle-paper-vae-roc.png)\n",
            "Black: the decoder's means on a 15 × 15 grid of the prior's quantiles; dotted: three "
            "deviations; grey: the training points.\n",
            _learning(lines, budget),
            *_circle_verdict(table_lines),
        ]
    )


def _learning(lines: list[Line], budget: dict[str, Any]) -> str:
    """How restarts depend on the way to learn, by validation points."""
    rows = []
    for learning in LEARNING:
        of_way = [line for line in lines if line.get("learning") == learning]
        if learning == [*LEARNING][-1]:
            of_way = [
                line for line in lines if line["model"] == "VAE-ROC" and "learning" not in line
            ]
        if of_way:
            found = [line["validation"] for line in of_way]
            rows.append((learning, str(len(found)), spread(found), f"{min(found):.2f}"))
    head = ("VAE-ROC", "restarts", "validation points, mean ± deviation", "worst")
    return (
        "*Why restarts fall into local optima*: they do so less where large steps fall to zero. "
        f"With steps of one size and {budget['circle_steps']:,} updates restarts end lower and "
        "farther apart. What learns best by *validation* points makes the table "
        f"above.\n\n{table(head, rows)}\n"
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
        f"*Verdict*: on average over restarts the claim {word}: the VAE-ROC is {signed(gain, 2)} "
        f"nats from the VAE. With {roc.mean():.2f} on average and {best:.2f} best by validation it "
        f"{'reaches' if reach else 'does not reach'} {_ASKED_MEAN:.2f} and {_ASKED_BEST:.2f}, the "
        f"paper's level. {np.mean(vae < 1.0):.0%} of the VAE's restarts and "
        f"{np.mean(roc < 1.0):.0%} of the VAE-ROC's stay below one nat. Best by validation "
        f"the VAE has {best_of_vae:.2f}: "
        + (
            "the direction saves restarts here rather than nats.\n"
            if best_of_vae > best - 0.05
            else "restarts do not make up for the direction.\n"
        )
    ]


def wedges(lines: list[Line], budget: dict[str, Any], at: Path) -> str:
    """The section of the half circle with wedges."""
    return "\n".join(
        [
            "## Half circle with wedges (Table 1) and the ℓ2 penalty\n",
            "*Claim*: with three wedges on the half circle the VAE's density seeps out; the "
            "VAE-ROC has the half circle in μ and the wedges in a, and the more ℓ2 weighs, the "
            "narrower its contours are.\n",
            "*Run*: the paper does not give the wedges. Here they are filled triangles on the half "
            "circle at 45°, 90° and 135°, 0.4 wide at the foot and 0.6 high outward, 100 points "
            "each, beside 280 of the half circle; a fifth as many to choose by and to judge by. "
            "So figures compare with each other and not with the paper's. Networks and updates "
            "are the half circle's. λ weighs the squared ℓ2 norm of a, in deviations of the "
            "columns.\n",
            table(_HEAD[:-1], _rows(lines, _PAPER_WEDGES, with_share=False)),
            "",
            *(f"![{name}]({at}/{picture_of(name)})" for name in MODELS),
            "\nOf each model the best by validation: means on a 25 × 25 grid and three "
            "deviations. By eye: the VAE fills the inside of the half circle. Without a penalty "
            "the VAE-ROC keeps out of it: long contours cross one wedge, and the means go into the "
            "other two. With λ = 0.1 some contours lie across the inside, with λ = 5 many do, as "
            "the VAE's.\n",
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
        f"*Verdict*: on average over restarts the claim {word}: the VAE-ROC is {signed(gain, 2)} "
        "nats from the VAE by Parzen windows. Mean norms of a: "
        f"{', '.join(f'{name} {norm:.3f}' for name, norm in norms.items())}; so the penalty "
        f"{'shrinks a as claimed' if narrower else 'does not shrink a step by step'}.\n"
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
