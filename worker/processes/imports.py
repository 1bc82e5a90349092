"""Imports the modules that jobs need.

The fork server imports this module before it forks the processes of jobs, so that these processes
start quickly.
"""

import sys
from importlib import import_module

from catalog import JobKind

_LIBRARY = ("gcvae.synthesizer", "gcvae.files.table_reader", "gcvae.cells.values")
_IMPORTED_LATE = (
    "torch._dynamo",
    "gcvae.training.reporting.model_report",
    "sklearn.ensemble",
    "gcvae.linked.database_synthesizer",
)
"""Modules that jobs would otherwise import during their work, such as torch's compiler."""

for _name in (*_LIBRARY, "worker.processes.child", *(f"worker.work.{kind}" for kind in JobKind)):
    import_module(_name)
if "torch" in sys.modules:
    for _name in _IMPORTED_LATE:
        import_module(_name)
