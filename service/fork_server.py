"""What the server imports that processes of inline work are forked from: torch, once for all.

To import it is to do it, for that is how such a server is told. It hears of its parent's end only
once all is imported, which takes seconds: so long a thread looks. None is left when it forks.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module

_POLL_SECONDS = 0.1


def _end_with_parent(parent_pid: int, imported: threading.Event) -> None:
    while not imported.wait(_POLL_SECONDS):
        if os.getppid() != parent_pid:
            os._exit(1)


_imported = threading.Event()
_watch = threading.Thread(target=_end_with_parent, args=(os.getppid(), _imported), daemon=True)
_watch.start()
try:
    for _name in ("gcvae.synthesizer", "gcvae.tables", "service.inline_work"):
        import_module(_name)
finally:
    _imported.set()
    _watch.join()
