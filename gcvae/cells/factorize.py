"""The distinct texts of a column, without a hash table that grows with them.

A table of ten million texts that all differ takes gigabytes. Here texts are hashed to 64 bits, and
the hashes sorted: about fifty bytes a text. Equal hashes are looked at: texts that
differ get other hashes under another key, so the answer is exact.
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
"""Of all chunks, for which a hash table is small ..."""
FEW_BYTES = 1 << 29
"""... and so are they together, in bytes."""

Codes = npt.NDArray[np.int32]


def distinct_texts(name: str, texts: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Which of the distinct texts stands in each row, -1 for none; and those, in order of first
    appearance. Shape: (n,) -> (n,), (U,).

    Args:
        name: Of the column.
        texts: In chunks, as strings or as dictionaries; null where there is none. A dictionary
            holds each text once, in order of first appearance, or the text of each row.

    Raises:
        TableError: The distinct texts are too long to be held together.
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
    """The same of chunks that have one dictionary."""
    if not texts.num_chunks:
        return np.empty(0, dtype=np.int32), pa.array([], texts.type.value_type)
    found = texts.chunk(texts.num_chunks - 1).dictionary
    rows = [chunk.indices.fill_null(-1).to_numpy() for chunk in texts.chunks]
    codes = rows[0] if len(rows) == 1 else np.concatenate(rows)
    if len(found) != len(rows[0]):
        return codes, found
    once = found.dictionary_encode()  # it may hold the text of each row
    return _of_rows(once.indices.to_numpy(), pa.array(codes, mask=codes < 0)), once.dictionary


def _hashes(held: list[Any], key: int) -> npt.NDArray[np.uint64]:
    """A number for each text of each dictionary, which depends on the key. Shape: (K,)."""
    return np.concatenate(
        [
            pd.util.hash_array(
                dictionary.to_numpy(zero_copy_only=False), hash_key=f"{key:016d}", categorize=False
            )
            for dictionary in held
        ]
    )


def _numbered(hashes: npt.NDArray[np.uint64]) -> tuple[Mask, Codes]:
    """Where each number comes first, and its place among those. Shape: (K,) -> (K,), (K,)."""
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
    """The texts at first places, as one array."""
    chosen = [texts.filter(pa.array(mask)) for texts, mask in _with(held, is_first)]
    try:
        return pa.concat_arrays(chosen)
    except pa.ArrowInvalid:
        message = "the distinct texts of the column take more than 2 GiB"
        expected = "shorter texts, or a table without the column"
        raise TableError(Problem(message, column=name, expected=expected)) from None


def _are_equal(held: list[Any], is_first: Mask, codes: Codes, found: pa.Array) -> bool:
    """Whether every text that comes again is the one of its code."""
    for (texts, mask), (_, numbers) in zip(_with(held, is_first), _with(held, codes), strict=True):
        again = texts.filter(pa.array(~mask))
        if len(again) and not found.take(pa.array(numbers[~mask])).equals(again):
            return False
    return True


def _with(held: list[Any], along: npt.NDArray[Any]) -> list[tuple[Any, npt.NDArray[Any]]]:
    """Each dictionary with its share of an array along all of them."""
    ends = np.cumsum([len(dictionary) for dictionary in held])
    return list(zip(held, np.split(along, ends[:-1]), strict=True))


def _of_rows(codes: Codes, indices: Any) -> Codes:
    """The code of each row of a chunk, by its place in the chunk's dictionary; -1 for null."""
    if not indices.null_count and len(codes):
        return np.asarray(codes[indices.to_numpy()])
    is_null = indices.is_null().to_numpy(zero_copy_only=False)
    places = indices.fill_null(0).to_numpy(zero_copy_only=False)
    if not len(codes):
        return np.full(len(places), -1, dtype=np.int32)
    return np.where(is_null, -1, codes[places]).astype(np.int32)
