"""What the long tests of the library share with the others."""

from __future__ import annotations

from tests.gcvae.conftest import few_rows

__all__ = ["few_rows"]
