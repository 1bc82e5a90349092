"""Orders columns so that strongly dependent columns are next to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_COLUMNS_WITH_LEAVES_IN_ORDER = 200


def clustered_order(tau: NDArray[np.float64]) -> list[int]:
    """Returns column indices in an order that puts dependent columns next to each other.

    The order is that of the leaves of a hierarchical clustering with average linkage and distance
    1 - |tau|; up to 200 columns have optimal leaf ordering.

    Args:
        tau: Kendall's tau of each pair, or another measure from -1 to 1; NaN counts as 0. Shape:
            (D, D).
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
