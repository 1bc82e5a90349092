"""Writes the page's section on the pictures of copulas in the paper's appendix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.markdown import table


def copula(lines: list[dict[str, Any]], budget: dict[str, Any], at: Path) -> str:
    """Returns the section on the pictures of copulas in Markdown; its verdict compares correlations
    by the formula."""
    del budget  # nothing is trained
    rows = [
        (
            line["case"],
            f"({line['a'][0]:g}, {line['a'][1]:g})",
            f"{line['omega']:g}",
            f"{line['rho']:.3f}",
            f"{line['drawn']:.3f}",
        )
        for line in lines
    ]
    same = {f"{line['rho']:.3f}" for line in lines if line["case"] == "concordance"}
    word = "holds" if len(same) == 1 else "does not hold"
    return "\n".join(
        [
            "## The copula's direction, noise and norm (appendix)\n",
            "*Claim*: equal signs of a are concordance, opposite ones discordance, zero is "
            "independence; stretching one entry of a changes nothing; noise weakens dependence, "
            "and the norm of a strengthens it.\n",
            "*Run*: points of the copula Ψ = ωI + aaᵀ, ρ = a₁a₂ / √((ω + a₁²)(ω + a₂²)).\n",
            table(("case", "a", "ω", "ρ", "of samples"), rows),
            f"\n![samples]({at}/copula.png)\n",
            "*Verdict*: direction, noise and norm are as claimed. That stretching an entry of a "
            f"changes nothing {word}: ρ is {' and '.join(sorted(same))}.\n",
        ]
    )
