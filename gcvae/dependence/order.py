"""Orders of columns that put strongly dependent ones side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_COLUMNS_WITH_LEAVES_IN_ORDER = 200


def clustered_order(tau: NDArray[np.float64]) -> list[int]:
    """Column indices such that strongly dependent columns stand side by side.

    Average linkage on 1 - |tau|, or on the measure that stands for it; leaves ordered to keep
    neighbours close; NaN counts as no dependence. Shape: (D, D) -> (D,).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(tau) < 3:
        return list(range(len(tau)))
    strength = np.clip(np.abs(np.nan_to_num(tau)), 0.0, 1.0)
    distance = squareform(1.0 - strength, checks=False)
    tree = linkage(distance, method="average")
    if len(tau) <= _MOST_COLUMNS_WITH_LEAVES_IN_ORDER:
        tree = optimal_leaf_ordering(tree, distance)
    return [int(i) for i in leaves_list(tree)]
