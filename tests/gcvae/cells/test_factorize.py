"""Distinct texts are those of a hash table, whatever their hashes are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells import factorize
from gcvae.cells.factorize import distinct_texts

CHUNKS = st.lists(
    st.lists(st.none() | st.text(st.sampled_from("ab\u00e9"), max_size=3), max_size=12),
    min_size=1,
    max_size=5,
)


def same_as_a_hash_table(chunks: list[list[str | None]], kept: str = "texts") -> None:
    codes, texts = distinct_texts("name", column_of(chunks, kept))
    cells = [cell or "" if kept == "rows" else cell for chunk in chunks for cell in chunk]
    expected, found = pd.factorize(np.array([*cells, None], dtype=object)[:-1])
    assert codes.tolist() == expected.tolist()
    assert texts.to_pylist() == found.tolist()


def column_of(chunks: list[list[str | None]], kept: str) -> pa.ChunkedArray:
    """The cells as texts, as dictionaries, or as dictionaries in which each row has its own."""
    texts = pa.chunked_array(chunks, pa.string())
    if kept == "texts":
        return texts
    if kept == "distinct":
        encoded = [chunk.dictionary_encode() for chunk in texts.chunks]
    else:
        chunks = [[cell or "" for cell in chunk] for chunk in chunks]
        encoded = [
            pa.DictionaryArray.from_arrays(
                np.arange(len(chunk), dtype=np.int32), pa.array(chunk, pa.string())
            )
            for chunk in chunks
        ]
    return pa.chunked_array(encoded, pa.dictionary(pa.int32(), pa.string()))


@given(CHUNKS, st.sampled_from([-1, 4, 1_000]), st.sampled_from(["texts", "distinct", "rows"]))
def test_the_texts_and_their_order_are_those_of_a_hash_table(
    chunks: list[list[str | None]], few: int, kept: str
) -> None:
    """Texts that are few go through a hash table in one of two ways; many are sorted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorize, "FEW_TEXTS", few)
        same_as_a_hash_table(chunks, kept)


@pytest.mark.parametrize("chunks", [[["a", "b", "a"]], [["a", "a"], ["a", "a"]], [["a"], ["b"]]])
def test_rows_with_their_own_texts_are_told_from_each_other(chunks: list[list[str | None]]) -> None:
    """Also where Arrow finds nothing to unify: one chunk, or several that are alike."""
    same_as_a_hash_table(chunks, "rows")


@given(CHUNKS)
def test_texts_with_the_same_hash_are_told_apart(chunks: list[list[str | None]]) -> None:
    """Under the first two keys the hash is the text's length alone."""

    def hashes(texts: np.ndarray, hash_key: str, categorize: bool) -> np.ndarray:
        if int(hash_key) < 2:
            return np.array([len(text) for text in texts], dtype=np.uint64)
        return real(texts, hash_key=hash_key, categorize=categorize)

    real = pd.util.hash_array
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorize, "FEW_TEXTS", -1)
        patch.setattr("pandas.util.hash_array", hashes)
        same_as_a_hash_table(chunks)
