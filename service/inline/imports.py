"""Imports slow modules once, in the process from which the service forks child processes."""

from importlib import import_module

for _name in (
    "gcvae.synthesizer",
    "gcvae.linked.database_synthesizer",
    "gcvae.cells.values",
    "service.inline.work",
    "service.ingestion",
    "gcvae_sources.databases",
    "service.connections.work",
    "service.databases",
    "gcvae.profiling.profile",
    "pyarrow.pandas_compat",  # pyarrow imports it for the first table
):
    import_module(_name)
