"""What processes of the service use, imported once for all by the server they are forked from."""

from importlib import import_module

for _name in (
    "gcvae.synthesizer",
    "gcvae.linked.database_synthesizer",
    "gcvae.cells.values",
    "service.inline.work",
    "service.ingestion",
    "service.databases",
    "gcvae.profiling.profile",
    "pyarrow.pandas_compat",  # by pyarrow itself, at the first table
):
    import_module(_name)
