"""The commands `gcvae dependencies` and `gcvae manifold` on files."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from gcvae.figures.fonts import FontWarning
from gcvae_cli.files import options as opt
from gcvae_cli.outputs import (
    STANDARD_OUTPUT,
    answer,
    format_of,
    opened_output,
    warn,
)

if TYPE_CHECKING:
    from gcvae.dependence.maps import DependencyMap


def dependencies(
    model: opt.ModelFile,
    output: opt.MapOutput,
    kind: opt.MapKind = None,
    row: opt.MapRow = None,
    z: opt.MapPlace = None,
    order: opt.MapOrder = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Map the dependencies between columns (Kendall's tau)."""
    map_format = format_of(output, opt.MAP_FORMATS, standard_output="json")
    place = {"row": opt.read_option("--row", row, dict), "z": opt.read_option("--z", z, list)}
    asked = (
        ("expected" if place["row"] is place["z"] is None else "local") if kind is None else kind
    )
    _require_pictures(map_format)
    synthesizer = opt.load_model(model, threads)
    dependency_map = synthesizer.dependencies(asked, seed=seed, **place)
    places = None if order is None else synthesizer.dependencies(order, seed=seed).order
    if not as_json or output != STANDARD_OUTPUT:
        with opened_output(output) as stream:
            _write_map(dependency_map, stream, map_format, places)
    if as_json:
        answer({"output": output, "map": dependency_map.to_json(places)})


def manifold(
    model: opt.ModelFile,
    output: opt.ManifoldOutput,
    steps: opt.GridSteps = 15,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Plot the decoder's output over a two-dimensional latent space (d_latent 2)."""
    manifold_format = format_of(output, opt.MANIFOLD_FORMATS, standard_output="json")
    _require_pictures(manifold_format)
    found = opt.load_model(model, threads).manifold(steps)
    if not as_json or output != STANDARD_OUTPUT:
        with opened_output(output) as stream:
            if manifold_format == "json":
                document = json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False)
                stream.write(document.encode())
            else:
                with _warnings_as_lines():
                    found.draw(stream, manifold_format)
    if as_json:
        answer({"output": output, "manifold": found.to_json()})


def _require_pictures(output_format: str) -> None:
    from gcvae.figures.figures import require_matplotlib

    if output_format in ("png", "svg"):
        require_matplotlib()


def _write_map(
    dependency_map: DependencyMap, stream: BinaryIO, map_format: str, order: list[int] | None
) -> None:
    if map_format == "json":
        document = dependency_map.to_json(order)
        stream.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
    elif map_format == "csv":
        stream.write(map_as_csv(dependency_map.to_json()).encode())
    else:
        with _warnings_as_lines():
            dependency_map.draw(stream, map_format, order)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Context manager that prints warnings about names with characters that no font contains."""
    with warnings.catch_warnings(record=True, action="always", category=FontWarning) as caught:
        yield
    warn(tuple(str(warning.message) for warning in caught))


def map_as_csv(document: dict[str, Any]) -> str:
    """Returns the matrix of Kendall's tau in a dependency map (JSON) as CSV.

    The first row and the first column are the names of the columns; undefined values are empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *document["columns"]])
    for name, row in zip(document["columns"], document["tau"], strict=True):
        writer.writerow([name, *row])
    return text.getvalue()
