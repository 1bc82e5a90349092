"""Writes encodings (posterior means and standard deviations of rows) as the bytes of a file.

The module does not import pandas, because the service imports it at start to list the formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gcvae.errors import SettingError
from gcvae.files.shards import WHOLE, FileShard

if TYPE_CHECKING:
    import pandas as pd

MEANING = (
    "mean and standard deviation of the encoder's posterior q(z|row) = N(mean, sd^2), dimension by "
    "dimension; a blank cell is not known; a dimension whose standard deviation is near the "
    "prior's tells nothing of the row"
)

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}
"""Media type of each format."""


def stream_encodings(
    blocks: Iterable[pd.DataFrame],
    format: str,
    heading: Mapping[str, Any],
    shard: FileShard = WHOLE,
) -> Iterator[bytes]:
    """Yields the bytes of a file with encodings, block by block.

    Args:
        blocks: Encodings of consecutive rows: the posterior means of all latent dimensions, then
            the standard deviations.
        format: `csv`, or `json`: an object with the members of `heading`, a member `meaning` that
            explains the numbers, and a list `encodings` of {mean, standard_deviation} of each row.
        heading: First members of the JSON object.
        shard: Part of the file that the blocks form; the default is a complete file.

    Raises:
        SettingError: The format is neither `csv` nor `json`.
    """
    if format not in MEDIA_TYPES:
        raise SettingError(f"there is no form of encodings {format!r}, but {[*MEDIA_TYPES]}")
    return _csv(blocks, shard) if format == "csv" else _json(blocks, heading, shard)


def _csv(blocks: Iterable[pd.DataFrame], shard: FileShard) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        yield block.to_csv(index=False, header=shard.is_first and number == 0).encode()


def _json(
    blocks: Iterable[pd.DataFrame], heading: Mapping[str, Any], shard: FileShard
) -> Iterator[bytes]:
    head = json.dumps({**heading, "meaning": MEANING}, ensure_ascii=False)
    if shard.is_first:
        yield f'{head[:-1]}, "encodings": ['.encode()
    comma = "" if shard.is_first else ","
    for block in blocks:
        lines = []
        for row in block.to_numpy().tolist():
            d = len(row) // 2
            line = json.dumps({"mean": row[:d], "standard_deviation": row[d:]}, allow_nan=False)
            lines.append(f"{comma}\n{line}")
            comma = ","
        yield "".join(lines).encode()
    if shard.is_last:
        yield b"\n]}\n"
