"""The notebooks of the documentation run as written, and what they are kept with is theirs."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcvae_cli.client.demo import embedded_service
from tests.long.notebooks import NOTEBOOKS, ROOT, Notebook, digest, forms, outputs, read, run

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service as `gcvae serve` starts it."""
    with embedded_service(tmp_path_factory.mktemp("service")) as address:
        yield address


@pytest.mark.slow
@every_notebook
def test_a_notebook_runs_in_a_kernel_and_shows_what_it_is_kept_with(
    path: Path, url: str, tmp_path: Path
) -> None:
    kept = read(path)
    done = run(read(path), tmp_path, url)
    assert forms(done) == forms(kept)
    assert not [found.text for found in outputs(done) if found.get("name") == "stderr"]
    bars = [text for text in texts(done) if "100 %" in text]
    assert bars
    assert all("\r" not in bar for bar in bars)


@every_notebook
def test_the_kept_outputs_are_of_the_cells_as_they_are(path: Path) -> None:
    kept = read(path)
    assert kept.metadata.digest_of_cells == digest(kept), "python -m tests.long.notebooks"
    counts = [cell.execution_count for cell in kept.cells if cell.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)]


@every_notebook
def test_the_kept_outputs_name_no_place_of_a_machine(path: Path) -> None:
    here = [re.escape(place) for place in (str(ROOT), sys.prefix)]
    places = re.compile("|".join([*here, "/(?:home|root|tmp|Users)/"]))
    assert not [text for text in texts(read(path)) if places.search(text)]


@every_notebook
def test_a_notebook_is_small_and_its_pictures_are_said_in_words(path: Path) -> None:
    assert path.stat().st_size < 400_000
    for cell in read(path).cells:
        for found in cell.get("outputs", []):
            if "image/png" in found.get("data", {}):
                assert base64.b64decode(found.data["image/png"]).startswith(b"\x89PNG")
                assert found.metadata.get("image/png", {}).get("alt") or cell.metadata.get("alt")


def texts(notebook: Notebook) -> list[str]:
    """What its cells print and show, without the pictures."""
    found = []
    for output in outputs(notebook):
        data = output.get("data", {"text/plain": output.get("text", "")})
        found += [str(data[form]) for form in data if form.startswith("text/")]
    return found
