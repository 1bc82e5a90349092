"""Checks texts by their bytes, which is about a hundred times as fast as regular expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TextBytes:
    """UTF-8 bytes of U strings in one array, and the index at which each string begins and ends.
    Shape: data (b,) for b bytes in total; starts and ends (U,), indices into data."""

    data: Bytes
    starts: Places
    ends: Places

    @classmethod
    def of(cls, texts: pa.Array) -> TextBytes:
        """Returns the bytes of an Arrow array of strings without nulls; the bytes are not
        copied."""
        if not len(texts):
            return cls(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
        _, places, data = texts.buffers()
        kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
        at = np.frombuffer(places, dtype=kind)[texts.offset : texts.offset + len(texts) + 1]
        at = at.astype(np.int64)
        whole: Any = b"" if data is None else data
        held = np.frombuffer(whole, dtype=np.uint8)[at[0] : at[-1]]
        return cls(held, at[:-1] - at[0], at[1:] - at[0])

    @property
    def lengths(self) -> Places:
        """Number of bytes of each of the U strings. Shape: (U,)."""
        return self.ends - self.starts

    @property
    def firsts(self) -> Bytes:
        """First byte of each of the U strings; arbitrary for an empty one. Shape: (U,)."""
        return self._at(self.starts)

    @property
    def lasts(self) -> Bytes:
        """Last byte of each of the U strings; arbitrary for an empty one. Shape: (U,)."""
        return self._at(self.ends - 1)

    def _at(self, places: Places) -> Bytes:
        if not len(self.data):
            return np.zeros(len(places), dtype=np.uint8)
        return self.data.take(places, mode="clip")


def are_in(texts: pa.Array, known: list[str]) -> Mask:
    """Returns a mask of those of n strings that equal one of the strings `known`. Shape: (n,)."""
    found = np.zeros(len(texts), dtype=bool)
    if not known or not len(texts):
        return found
    wanted = [text.encode() for text in known]
    held = TextBytes.of(texts)
    lengths = held.lengths
    begins = np.zeros(256, dtype=bool)
    begins[[text[0] for text in wanted if text]] = True
    may_be = begins[held.firsts] & (lengths <= max(map(len, wanted)))
    may_be[lengths == 0] = b"" in wanted
    if may_be.any():
        chosen = texts.filter(pa.array(may_be))
        found[may_be] = pc.is_in(chosen, pa.array(known, pa.string())).to_numpy(
            zero_copy_only=False
        )
    return found


def have_outer_spaces(texts: pa.Array) -> bool:
    """Returns whether any string may begin or end with white space; False is certain, True is
    not."""
    held = TextBytes.of(texts)
    edges = np.concatenate([held.firsts, held.lasts])
    return bool(((edges <= ord(" ")) | (edges >= 0x7F)).any())


def may_be_numbers(texts: pa.Array) -> Mask:
    """Returns a mask of those of n strings that begin and end like numbers; the others cannot be
    numbers. Shape: (n,)."""
    if not len(texts):
        return np.zeros(0, dtype=bool)
    held = TextBytes.of(texts)
    begins, ends = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
    begins[list(b"+-.0123456789")] = True
    ends[list(b".0123456789")] = True
    return begins[held.firsts] & ends[held.lasts] & (held.lengths > 0)
