"""Kendall's tau on UCI Auto (the paper's figure of rank correlations), by all kinds of dependency
maps.

The paper computes tau from the copula's correlation at one sampled z. That is the dependence that
remains *given* z; generated rows show the total dependence, the rest of which comes from z.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from experiments.budgets import Budget
from experiments.uci import AUTO, UciTable
from gcvae import Synthesizer
from gcvae.dependence.maps import DependencyMap

KINDS = ("total", "expected", "local")
"""Kinds of dependency map that are compared with that of the data."""
GRADIENTS: dict[str, dict[str, object]] = {
    "constant scores": {},
    "full gradient": {"score_gradient": True},
    "exact": {"objective": "exact"},
}


def run(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits a model with each way to train, and draws the maps of the last one.

    Yields:
        A result for each way to train: the number of pairs whose tau has the same sign as in the
        data, and tau of two pairs.
    """
    for name, settings in GRADIENTS.items():
        fitted = _fit(AUTO, folder, budget, settings)
        maps = {kind: _map(fitted, kind) for kind in ("data", *KINDS)}
        if name == "exact":
            for kind in ("data", "total", "local"):
                pictures.mkdir(parents=True, exist_ok=True)
                (pictures / f"tau-{kind}.png").write_bytes(maps[kind].picture("png"))
        yield {
            "training": name,
            "signs_right": {kind: _signs_right(maps["data"], maps[kind]) for kind in KINDS},
            "named": {kind: _named(found) for kind, found in maps.items()},
        }


def _fit(table: UciTable, folder: Path, budget: Budget, settings: dict[str, object]) -> Synthesizer:
    frame = table.read(folder)
    paper = {"d_latent": 2, "max_steps": budget.uci_steps, "patience_steps": budget.patience_steps}
    ordered = {"cylinders": "ordinal", "model_year": "ordinal"}  # so that tau has a sign
    kinds = [
        column | {"kind": ordered.get(column["name"], column["kind"])}
        for column in table.schema(frame)["columns"]
    ]
    return Synthesizer.fit(
        frame,
        schema={"columns": kinds},
        preset="paper-gcvae",
        settings=table.settings | paper | settings,
        seed=0,
        device="cpu",
    )


def _map(fitted: Synthesizer, kind: str) -> DependencyMap:
    """Returns a dependency map; the kind `local` uses the z of a generated row."""
    if kind != "local":
        return fitted.dependencies(kind)
    row = {str(name): cell for name, cell in fitted.sample(1, seed=0).iloc[0].items()}
    return fitted.dependencies("local", row=row)


def _signs_right(real: DependencyMap, other: DependencyMap) -> int:
    """Returns the number of pairs whose tau has the same sign in both maps."""
    pairs = combinations(real.columns, 2)
    return sum(_tau(real, *pair) * _tau(other, *pair) > 0 for pair in pairs)


def _named(found: DependencyMap) -> dict[str, float]:
    """Returns tau of the two pairs that the paper's text names."""
    return {
        "cylinders – model_year": _tau(found, "cylinders", "model_year"),
        "horsepower – weight": _tau(found, "horsepower", "weight"),
    }


def _tau(found: DependencyMap, one: str, other: str) -> float:
    i, j = (found.columns.index(name) for name in (one, other))
    return float(found.tau[i, j])
