"""Alpha-precision and beta-recall: whether synthetic rows lie where real rows do, and vice versa.

    P(alpha)  share of synthetic rows whose distance to the centre of the real rows is at most the
              alpha-quantile of the real rows' distances
    R(beta)   share of real rows whose nearest synthetic row is closer than their fifth nearest real
              row, and belongs to the share beta of synthetic rows closest to their centre

Each is integrated to 1 - 2 * integral |P(alpha) - alpha| d alpha; 1 is best.

Source: Alaa et al., How faithful is your synthetic data? (2022), without a learned embedding: in
the space of `gcvae.evaluation.report.row_space`, with the mean as centre.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.evaluation.report.row_space import Points, fit_space, nearest
from gcvae.schema.columns import TableSchema

_LEVELS = np.linspace(0.0, 1.0, 31)
_NEIGHBOURS = 5


def coverage(real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema) -> tuple[float, float]:
    """Returns the integrated (alpha-precision, beta-recall) of two tables of equal size."""
    space = fit_space(real, schema)
    points = space.embed(real), space.embed(drawn)
    return _precision(*points), _recall(*points)


def _precision(real: Points, drawn: Points) -> float:
    centre = real.mean(axis=0)
    of_real, of_drawn = (_distances_to_centre(points, centre) for points in (real, drawn))
    radii = np.quantile(of_real, _LEVELS)
    return _integrated(np.array([(of_drawn <= radius).mean() for radius in radii]))


def _recall(real: Points, drawn: Points) -> float:
    own = nearest(real, real, _NEIGHBOURS + 1)[0][:, -1]
    to_drawn, numbers = nearest(real, drawn)
    from_centre = _distances_to_centre(drawn, drawn.mean(axis=0))
    radii = np.quantile(from_centre, _LEVELS)
    is_near = to_drawn[:, 0] <= own
    shares = [(is_near & (from_centre[numbers[:, 0]] <= radius)).mean() for radius in radii]
    return _integrated(np.array(shares))


def _distances_to_centre(points: Points, centre: npt.NDArray[np.float32]) -> Numbers:
    found: Numbers = np.sqrt(((points - centre) ** 2).sum(axis=1)).astype(float)
    return found


def _integrated(shares: Numbers) -> float:
    gaps = np.abs(shares - _LEVELS)
    return float(1.0 - 2.0 * np.trapezoid(gaps, _LEVELS))
