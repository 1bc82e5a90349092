"""The notebooks of the documentation: run in a real kernel, and kept with what they print.

    python -m tests.long.notebooks    # runs them as they stand, and writes their outputs anew

Readers and the site see the outputs that are kept. A digest of the cells stands beside them, so
that outputs of other cells are found.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from gcvae_cli.client.demo import embedded_service

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CELL_SECONDS = 300
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""What is the same on every machine."""

Notebook = nbformat.NotebookNode


def prose() -> dict[str, str]:
    """What stands between the cells of code, by the path of the notebook."""
    return {
        str(path.relative_to(ROOT)): "\n\n".join(
            cell.source for cell in read(path).cells if cell.cell_type == "markdown"
        )
        for path in NOTEBOOKS
    }


def read(path: Path) -> Notebook:
    """A notebook as it is kept. Raises: nbformat.ValidationError."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def run(notebook: Notebook, folder: Path, url: str) -> Notebook:
    """Runs every cell in a fresh kernel, in a folder; the notebook with its outputs.

    Args:
        url: Of the service that the client speaks to.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_SECONDS,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "GCVAE_URL": url})
    notebook.metadata = nbformat.from_dict(_METADATA | {"digest_of_cells": digest(notebook)})
    return notebook


def digest(notebook: Notebook) -> str:
    """Of the code of all cells: each one's output depends on those before it."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def outputs(notebook: Notebook) -> Iterator[dict[str, Any]]:
    """Everything that its cells print and show."""
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def forms(notebook: Notebook) -> list[list[tuple[str, ...]]]:
    """Of each cell's outputs in which forms they are: those of two runs are the same."""
    return [
        [
            (found.output_type, found.get("name", ""), *sorted(found.get("data", {})))
            for found in cell.get("outputs", [])
        ]
        for cell in notebook.cells
    ]


def main() -> None:
    """Writes the outputs of all notebooks anew."""
    with tempfile.TemporaryDirectory() as folder, embedded_service(Path(folder, "service")) as url:
        for path in NOTEBOOKS:
            nbformat.write(run(read(path), Path(folder), url), path)
            print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
