"""What the tests of the library share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gcvae.dependence import map_kinds
from gcvae.scoring import blank_references


@pytest.fixture(scope="module")
def few_rows() -> Iterator[None]:
    """Rows with blanks are ranked among few rows, and maps are of few: for tests of laws that hold
    for any number of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blank_references, "BLANK_REFERENCE_ROWS", 40)
        patch.setattr(map_kinds, "_MOST_ROWS", map_kinds._FEWEST_ROWS)
        yield
