"""The library's surface without torch: it works by hashing, as slowly as it is told to.

Everything but the modules beside this file is the library's own.
"""

from __future__ import annotations

from pathlib import Path

import catalog

__path__ = [str(Path(__file__).parent), str(Path(catalog.__file__).parents[1] / "gcvae")]

from gcvae.synthesizer import Synthesizer

__all__ = ["Synthesizer"]
