"""What the server imports that processes of inline work are forked from: torch, once for all.

To import it is to do it, for that is how such a server learns what to import. It hears of its
parent's end only once all is imported, which takes seconds: so long a thread watches. None is left
when it forks.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module

from runtime.parentage import watch_parent

_imported = threading.Event()
_watch = watch_parent(os.getppid(), _imported)
try:
    for _name in ("gcvae.synthesizer", "gcvae.cells.values", "service.inline.work"):
        import_module(_name)
finally:
    _imported.set()
    _watch.join()
