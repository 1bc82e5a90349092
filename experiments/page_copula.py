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
    found = sorted({f"{line['rho']:.3f}" for line in lines if line["case"] == "concordance"})
    word = "holds" if len(found) == 1 else "does not hold"
    change = f"stays {found[0]}" if len(found) == 1 else f"changes from {' to '.join(found)}"
    return "\n".join(
        [
            "## The copula's direction, noise and norm (appendix)\n",
            "*Claim*: the direction a has an entry for each column. Two columns are concordant if "
            "their entries have equal signs, discordant if the signs differ, and independent if an "
            "entry is zero. A larger noise ω weakens the dependence, and a larger norm of a "
            "strengthens it. Stretching a single entry of a does not change the dependence.\n",
            "*Run*: points are sampled from the copula of two columns with Ψ = ωI + aaᵀ. Its "
            "correlation is ρ = a₁a₂ / √((ω + a₁²)(ω + a₂²)).\n",
            table(("case", "a", "ω", "ρ", "correlation of samples"), rows),
            f"\n![samples]({at}/copula.png)\n",
            "*Verdict*: the claims about direction, noise and norm hold. The claim about "
            f"stretching {word}: in the case *concordance*, an entry is stretched from 2 to 8, and "
            f"ρ {change}.\n",
        ]
    )
