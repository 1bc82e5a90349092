"""Finds the distinct texts of a column without a growing hash table.

A hash table of ten million different texts takes gigabytes. This module hashes texts to 64 bits and
sorts the hashes, which takes about fifty bytes per text. Texts with equal hashes are compared; if
they differ, all texts are hashed again with another key, so the result is exact.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Mask
from gcvae.errors import Problem, TableError

FEW_TEXTS = 1 << 21
"""Maximum number of texts in all chunks for which a hash table is used."""
FEW_BYTES = 1 << 29
"""Maximum size in bytes of the texts for which a hash table is used."""

Codes = npt.NDArray[np.int32]


def distinct_texts(name: str, texts: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Returns (index of each of n rows' strings among the U distinct ones, -1 for a missing cell;
    distinct strings in order of appearance). Shape: (n,) -> (n,), (U,).

    Args:
        name: Name of the column, for errors.
        texts: Chunks of strings or of dictionary-encoded strings, null for missing. A dictionary
            contains either each string once, in order of first appearance, or one entry for each
            row.

    Raises:
        TableError: The distinct strings are too long for one array.
    """
    encoded = texts.chunks
    if not pa.types.is_dictionary(texts.type):
        if len(texts) <= FEW_TEXTS and texts.nbytes <= FEW_BYTES:
            return _joined_codes(texts.dictionary_encode())
        encoded = [chunk.dictionary_encode() for chunk in encoded]
    held = [chunk.dictionary for chunk in encoded]
    if sum(map(len, held)) <= FEW_TEXTS and sum(texts.nbytes for texts in held) <= FEW_BYTES:
        return _joined_codes(pa.chunked_array(encoded).unify_dictionaries())
    rows = [chunk.indices for chunk in encoded]
    del encoded
    for key in count():
        is_first, codes = _numbered(_hashes(held, key))
        found = _joined(name, held, is_first)
        if _are_equal(held, is_first, codes, found):
            break
    starts = np.concatenate([[0], np.cumsum([len(dictionary) for dictionary in held])])
    return np.concatenate(
        [_of_rows(codes[start:], indices) for start, indices in zip(starts, rows, strict=False)]
    ), found


def _joined_codes(texts: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Returns the result of `distinct_texts` for chunks with one dictionary."""
    if not texts.num_chunks:
        return np.empty(0, dtype=np.int32), pa.array([], texts.type.value_type)
    found = texts.chunk(texts.num_chunks - 1).dictionary
    rows = [chunk.indices.fill_null(-1).to_numpy() for chunk in texts.chunks]
    codes = rows[0] if len(rows) == 1 else np.concatenate(rows)
    if len(found) != len(rows[0]):
        return codes, found
    once = found.dictionary_encode()  # may contain a text more than once
    return _of_rows(once.indices.to_numpy(), pa.array(codes, mask=codes < 0)), once.dictionary


def _hashes(held: list[Any], key: int) -> npt.NDArray[np.uint64]:
    """Returns a keyed hash of each text of all dictionaries, concatenated."""
    return np.concatenate(
        [
            pd.util.hash_array(
                dictionary.to_numpy(zero_copy_only=False), hash_key=f"{key:016d}", categorize=False
            )
            for dictionary in held
        ]
    )


def _numbered(hashes: npt.NDArray[np.uint64]) -> tuple[Mask, Codes]:
    """Returns (mask of the first occurrence of each hash, index of each among the distinct
    ones)."""
    order = np.argsort(hashes, kind="stable")  # equal numbers in order of appearance
    in_order = hashes[order]
    begins = np.concatenate([[True], in_order[1:] != in_order[:-1]])[: len(order)]
    del in_order
    is_first = np.zeros(len(order), dtype=bool)
    is_first[order[begins]] = True
    number = np.cumsum(is_first, dtype=np.int32) - 1
    firsts = number[order[begins]]
    codes = np.empty(len(order), dtype=np.int32)
    codes[order] = firsts[np.cumsum(begins, dtype=np.int32) - 1]
    return is_first, codes


def _joined(name: str, held: list[Any], is_first: Mask) -> pa.Array:
    """Returns the texts at first occurrences, as one array."""
    chosen = [texts.filter(pa.array(mask)) for texts, mask in _slices(held, is_first)]
    try:
        return pa.concat_arrays(chosen)
    except pa.ArrowInvalid:
        message = "the distinct texts of the column take more than 2 GiB"
        expected = "shorter texts, or a table without the column"
        raise TableError(Problem(message, column=name, expected=expected)) from None


def _are_equal(held: list[Any], is_first: Mask, codes: Codes, found: pa.Array) -> bool:
    """Returns whether all texts with the same code are equal."""
    for (texts, mask), (_, numbers) in zip(
        _slices(held, is_first), _slices(held, codes), strict=True
    ):
        again = texts.filter(pa.array(~mask))
        if len(again) and not found.take(pa.array(numbers[~mask])).equals(again):
            return False
    return True


def _slices(held: list[Any], along: npt.NDArray[Any]) -> list[tuple[Any, npt.NDArray[Any]]]:
    """Returns pairs of each dictionary and its slice of an array along all of them."""
    ends = np.cumsum([len(dictionary) for dictionary in held])
    return list(zip(held, np.split(along, ends[:-1]), strict=True))


def _of_rows(codes: Codes, indices: Any) -> Codes:
    """Returns the code of each row of a chunk, from its dictionary index; -1 for null."""
    if not indices.null_count and len(codes):
        return np.asarray(codes[indices.to_numpy()])
    is_null = indices.is_null().to_numpy(zero_copy_only=False)
    places = indices.fill_null(0).to_numpy(zero_copy_only=False)
    if not len(codes):
        return np.full(len(places), -1, dtype=np.int32)
    return np.where(is_null, -1, codes[places]).astype(np.int32)
