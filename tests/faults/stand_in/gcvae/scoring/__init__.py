"""The library's room of this name, but for the modules beside this file."""

from __future__ import annotations

from pathlib import Path

import catalog

__path__ = [
    str(Path(__file__).parent),
    str(Path(catalog.__file__).parents[1] / "gcvae" / "scoring"),
]
