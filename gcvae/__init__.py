"""Gaussian copula variational autoencoder for tables.

The public names are loaded on first use, so that importing `gcvae.schema` or `gcvae.errors` does
not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcvae.cells.values import format_table, parse_table
    from gcvae.codec.encoded_table import EncodedTable
    from gcvae.codec.table_codec import TableCodec
    from gcvae.errors import GcvaeError, InputError
    from gcvae.files.table_reader import TableReader
    from gcvae.files.tables import read_table, write_table
    from gcvae.linked.database_schema import DatabaseSchema
    from gcvae.linked.database_synthesizer import DatabaseSynthesizer
    from gcvae.profiling.infer import infer_schema
    from gcvae.schema.columns import Column, TableSchema
    from gcvae.schema.kinds import ColumnKind
    from gcvae.synthesizer import Synthesizer

_HOMES = {
    "Column": "schema.columns",
    "DatabaseSchema": "linked.database_schema",
    "DatabaseSynthesizer": "linked.database_synthesizer",
    "ColumnKind": "schema.kinds",
    "EncodedTable": "codec.encoded_table",
    "GcvaeError": "errors",
    "InputError": "errors",
    "Synthesizer": "synthesizer",
    "TableCodec": "codec.table_codec",
    "TableReader": "files.table_reader",
    "TableSchema": "schema.columns",
    "format_table": "cells.values",
    "infer_schema": "profiling.infer",
    "parse_table": "cells.values",
    "read_table": "files.tables",
    "write_table": "files.tables",
}

__all__ = [
    "Column",
    "ColumnKind",
    "DatabaseSchema",
    "DatabaseSynthesizer",
    "EncodedTable",
    "GcvaeError",
    "InputError",
    "Synthesizer",
    "TableCodec",
    "TableReader",
    "TableSchema",
    "format_table",
    "infer_schema",
    "parse_table",
    "read_table",
    "write_table",
]


def __getattr__(name: str) -> Any:
    """Loads a public name from its module on first use and returns its value."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gcvae' has no attribute {name!r}")
    return getattr(import_module(f"gcvae.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Returns the public names of the package, sorted."""
    return sorted(__all__)
