"""What jobs use, imported once for all by the server that their processes are forked from."""

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
"""What is imported in the middle of work: torch's compiler, which the library's optimisers ask for,
statistics, and databases."""

for _name in (*_LIBRARY, "worker.processes.child", *(f"worker.work.{kind}" for kind in JobKind)):
    import_module(_name)
if "torch" in sys.modules:
    for _name in _IMPORTED_LATE:
        import_module(_name)
