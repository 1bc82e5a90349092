"""Units of densities for columns that are modelled in parts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gcvae.arrays import Mask
from gcvae.codec.column_codec import ColumnCodec
from gcvae.rules.reduction import Reduction


def codes_with_units(codec: ColumnCodec, reduction: Reduction) -> Mask:
    """Returns the mask of a part's codes that have a density per unit of the table's column. Shape:
    (K,).

    Missing and sentinel dates have a probability instead.
    """
    counted = np.arange(codec.n_codes) >= codec.has_missing
    rewriting = reduction.rewritten[reduction.owners[codec.name]]
    if rewriting.never and codec.name == rewriting.column:
        codes, _ = codec.encode(pd.Series(rewriting.never))
        has_value = codec.is_real & (codes == codec.n_codes - 1)
        counted[codes[(codes >= 0) & ~has_value]] = False
    return counted
