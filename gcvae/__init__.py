"""Gaussian copula variational autoencoder for tables.

The names below are loaded on first use, so that `gcvae.schema` and `gcvae.errors` cost no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcvae.codec import EncodedTable, TableCodec
    from gcvae.errors import GcvaeError, InputError
    from gcvae.schema import Column, ColumnKind, TableSchema, infer_schema
    from gcvae.synthesizer import Synthesizer
    from gcvae.table_reader import TableReader
    from gcvae.tables import format_table, parse_table, read_table, write_table

_HOMES = {
    "Column": "schema",
    "ColumnKind": "schema",
    "EncodedTable": "codec",
    "GcvaeError": "errors",
    "InputError": "errors",
    "Synthesizer": "synthesizer",
    "TableCodec": "codec",
    "TableReader": "table_reader",
    "TableSchema": "schema",
    "format_table": "tables",
    "infer_schema": "schema",
    "parse_table": "tables",
    "read_table": "tables",
    "write_table": "tables",
}

__all__ = [
    "Column",
    "ColumnKind",
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
    """Loads a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gcvae' has no attribute {name!r}")
    return getattr(import_module(f"gcvae.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
