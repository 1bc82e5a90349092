"""What the server imports that processes of inline work are forked from: torch, once for all.

It steps back before, and so do all that are forked from it: to fork, which copies the tables of
its memory, and to read a table take the time of those who wait for the API's answers.

To import it is to do it, for that is how such a server learns what to import. It hears of its
parent's end only once all is imported, which takes seconds: so long a thread watches. None is left
when it forks. A parent that ended before the first look is known by its heir, who is of another
group of processes.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module

from runtime.errors import ParentGoneError
from runtime.parentage import watch_parent
from runtime.priority import step_back

_parent = os.getppid()
if os.getpgid(_parent) != os.getpgrp():
    raise ParentGoneError("the service has ended before its fork server began")
step_back()
_imported = threading.Event()
_watch = watch_parent(_parent, _imported)
try:
    for _name in (
        "gcvae.synthesizer",
        "gcvae.cells.values",
        "service.inline.work",
        "service.ingestion",
        "gcvae.profiling.profile",
        "pyarrow.pandas_compat",  # by pyarrow itself, at the first table
    ):
        import_module(_name)
finally:
    _imported.set()
    _watch.join()
