"""A dataclass that is a document comes back from it, field by field."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from gcvae.arrays import Codes, Numbers
from gcvae.artifact.documents import Document


@dataclass(frozen=True)
class Part(Document):
    shares: tuple[tuple[str, int], ...]
    limit: float | None


@dataclass(frozen=True)
class Whole(Document):
    name: str
    codes: Codes
    values: Numbers
    parts: tuple[Part, ...]
    last: Part | None


@pytest.mark.parametrize("last", [None, Part((), 0.1)])
def test_fields_of_every_type_come_back(last: Part | None) -> None:
    parts = (Part((("a", 1), ("b", 2)), None),)
    whole = Whole("x", np.array([2, 1]), np.array([[0.5, np.pi]]), parts, last)
    back = Whole.from_json(json.loads(json.dumps(whole.to_json())))
    assert (back.name, back.parts, back.last) == ("x", parts, last)
    for found, array in ((back.codes, whole.codes), (back.values, whole.values)):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype


def test_a_document_without_one_of_the_fields_is_refused() -> None:
    with pytest.raises(KeyError, match="limit"):
        Part.from_json({"shares": []})
