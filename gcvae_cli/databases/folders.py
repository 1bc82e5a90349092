"""Reads and writes a folder as a database, in which each file is a table.

A table is named after its file without the extension.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from gcvae.errors import TableError
from gcvae.files.table_archives import files_by_table
from gcvae_cli.errors import OutputError, WrongUsageError

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.schema.columns import TableSchema

ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet")


def files_of(folder: Path) -> dict[str, Path]:
    """Returns the paths of a folder's CSV and Parquet files by table name.

    Raises:
        WrongUsageError: The folder contains no table, or two files with the same table name.
    """
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(ENDINGS))
    try:
        found = files_by_table(name for name in names if not name.startswith("."))
    except TableError as error:
        raise WrongUsageError(f"{folder}: {error}") from error
    files = {table: folder / name for table, name in found.items()}
    if not files:
        raise WrongUsageError(f"{folder}: no table (expected: files in {', '.join(ENDINGS)})")
    return files


def write_folder(
    folder: Path,
    files: Mapping[str, Path],
    tables: Mapping[str, pd.DataFrame],
    schemas: Mapping[str, TableSchema],
) -> None:
    """Writes tables to a new folder, which is created completely or not at all.

    Args:
        folder: Path of the new folder.
        files: Path of each table's original file, which determines file name and format.
        tables: Tables to write, by name.
        schemas: Column schema of each table, which contains the separator of its text file.

    Raises:
        OutputError: The folder exists already, or cannot be written.
    """
    partial = folder.with_name(folder.name + ".partial")
    try:
        partial.mkdir()
        for name, frame in tables.items():
            path = partial / files[name].name
            if path.name.endswith(".parquet"):
                frame.to_parquet(path, index=False)
            else:
                frame.to_csv(path, index=False, sep=schemas[name].separator)
        partial.rename(folder)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    finally:
        if partial.is_dir():
            rmtree(partial)


def document_of(files: Mapping[str, Path]) -> dict[str, Any]:
    """Returns a database schema (JSON) that contains the names of the tables and nothing else."""
    return {"tables": {name: {} for name in files}}
