"""A folder of files as a database: each file is a table, named like the file without its
extension."""

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

ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet")


def files_of(folder: Path) -> dict[str, Path]:
    """Returns the files of a folder by table name.

    Raises:
        WrongUsageError: There are none.
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
    folder: Path, tables: Mapping[str, pd.DataFrame], files: Mapping[str, Path]
) -> None:
    """Writes the tables to a new folder, in the format of the files, all of them or none.

    Raises:
        OutputError: The folder exists, or can not be written.
    """
    partial = folder.with_name(folder.name + ".partial")
    try:
        partial.mkdir()
        for name, frame in tables.items():
            path = partial / files[name].name
            if path.name.endswith(".parquet"):
                frame.to_parquet(path, index=False)
            else:
                frame.to_csv(path, index=False, sep="\t" if path.name.endswith(".tsv") else ",")
        partial.rename(folder)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    finally:
        if partial.is_dir():
            rmtree(partial)


def document_of(files: Mapping[str, Path]) -> dict[str, Any]:
    """Returns the document of a folder's tables, which has their names only."""
    return {"tables": {name: {} for name in files}}
