"""What the tests of the library share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gcvae.scoring import blank_references


@pytest.fixture(scope="module")
def few_references() -> Iterator[None]:
    """Rows with blanks are ranked among few rows: for tests of laws that hold for any number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blank_references, "BLANK_REFERENCE_ROWS", 40)
        yield
