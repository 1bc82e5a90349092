"""Stores all rows of an encoded table compactly, in memory or in memory-mapped files, for training.

Codes have the smallest integer type that holds every code. Values are stored only for columns that
have some. Storage is by row, so that a minibatch of random rows touches few pages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.files.temporary_files import written_to
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.progress import Report, report_to_nobody

_ZEROS = bytes(1 << 20)


@dataclass(frozen=True)
class EncodedRows:
    """n encoded rows of the D modelled columns, stored compactly; all cells are observed.

    Shape: codes (n, D), values (n, D_v), log_units (n,).

    Attributes:
        codes: Integer codes of the cells, in the smallest type that holds every code.
        values: Values in float64, only for the D_v columns that have values.
        with_values: Indices of the columns that have values. Shape: (D_v,).
        log_units: For each row, log p(encoded row) - log p(row in the table's units); always on the
            CPU.
        code_counts: Number of rows with each code, for each column. Shape: (K_j,) if column j has
            K_j codes.
        context: Codes, then values of C columns of the parent table, for a conditional model; None
            for any other model. Shape: (n, 2 C).
        held_out: Mask of the rows held out from training; None to hold out a random share. Shape:
            (n,).
    """

    codes: Tensor
    values: Tensor
    with_values: Tensor
    log_units: Tensor
    code_counts: tuple[Tensor, ...]
    context: Tensor | None = None
    held_out: Tensor | None = None

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.codes)

    @property
    def device(self) -> torch.device:
        """Device on which codes and values are stored."""
        return self.codes.device

    @property
    def n_bytes(self) -> int:
        """Size of codes and values in bytes."""
        return self.codes.nbytes + self.values.nbytes

    def take(self, rows: Tensor) -> EncodedTable:
        """Returns the rows at these indices, in the order of the indices."""
        codes = self.codes[rows].int()
        values = torch.zeros(codes.shape, dtype=torch.float64, device=self.device)
        values[:, self.with_values] = self.values[rows]
        observed = torch.ones_like(codes, dtype=torch.bool)
        context = None if self.context is None else self.context[rows]
        return EncodedTable(codes, values, observed, context=context)

    def to(self, device: torch.device) -> EncodedRows:
        """Returns the rows on a device; unchanged if they need over half of a GPU's free memory."""
        if device.type == "cuda" and self.n_bytes > torch.cuda.mem_get_info(device)[0] // 2:
            return self
        moved = (rows.to(device) for rows in (self.codes, self.values, self.with_values))
        codes, values, with_values = moved
        context = None if self.context is None else self.context.to(device)
        return replace(self, codes=codes, values=values, with_values=with_values, context=context)


TrainingRows = EncodedRows | EncodedTable
"""Encoded rows from which training takes minibatches by index."""


def encode_rows(
    codec: TableCodec,
    table: TypedTable,
    folder: Path | None = None,
    report: Report = report_to_nobody,
) -> EncodedRows:
    """Encodes all rows of a parsed table in chunks.

    Args:
        folder: Folder for files that hold the encoded rows; if None, they stay in memory.
        report: Function that receives the progress, from 0 to 1.

    Raises:
        OSError: The disk is full.
    """
    shape = len(table), len(codec.columns)
    with_values = [j for j, column in enumerate(codec.columns) if _has_values(column)]
    smallest = np.min_scalar_type(-max((column.n_codes for column in codec.columns), default=1))
    codes = _matrix(shape, smallest, folder and folder / "codes")
    n_values = shape[0], len(with_values)
    values = _matrix(n_values, np.dtype(np.float64), folder and folder / "values")
    log_units = np.empty(len(table))
    counts = [np.zeros(column.n_codes, dtype=np.int64) for column in codec.columns]
    first = 0
    for chunk in row_chunks(table):
        rows, at = codec.encode(chunk), slice(first, first + len(chunk))
        codes[at], values[at] = rows.codes.numpy(), rows.values.numpy()[:, with_values]
        log_units[at] = codec.log_units(rows).numpy()
        for count, found in zip(counts, rows.codes.numpy().T, strict=True):
            count += np.bincount(found.clip(min=0), minlength=len(count))
        first = at.stop
        report(first / len(table))
    return EncodedRows(
        torch.from_numpy(codes),
        torch.from_numpy(values),
        torch.tensor(with_values, dtype=torch.long),
        torch.from_numpy(log_units),
        tuple(torch.from_numpy(count) for count in counts),
    )


def _has_values(codec: ColumnCodec) -> bool:
    is_discrete = isinstance(codec, QuantileCodec) and codec.is_discrete
    return not is_discrete and not isinstance(codec, LevelCodec)


def _matrix(shape: tuple[int, int], dtype: np.dtype[Any], path: Path | None) -> npt.NDArray[Any]:
    """Returns an uninitialised matrix, in memory or mapped from a new file at `path`. The file's
    space is allocated at once: a write to a mapped page on a full disk would end the process."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    if path is None or not n_bytes:
        return np.empty(shape, dtype=dtype)
    with written_to(path), path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            for first in range(0, n_bytes, len(_ZEROS)):
                file.write(_ZEROS[: n_bytes - first])
    return np.memmap(path, dtype=dtype, mode="r+", shape=shape)
