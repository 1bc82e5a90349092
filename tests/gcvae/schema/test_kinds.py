"""What every room does with each kind of column."""

from __future__ import annotations

import pytest

from gcvae.cells.values import END_READERS, READERS
from gcvae.codec.column_codecs import LINEAR_CODECS
from gcvae.profiling.column_fields import COMPLETERS
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind, Outcomes

ON_A_LINE = {kind for kind in ColumnKind if kind.is_real}
ORDERED = {kind for kind in ColumnKind if kind.outcomes is Outcomes.ORDERED_LEVELS}


def test_every_room_has_an_entry_for_each_kind_that_it_deals_with() -> None:
    assert set(READERS) == set(COMPLETERS) == set(ColumnKind)
    assert set(LINEAR_CODECS) == ON_A_LINE
    assert set(END_READERS) == ON_A_LINE | ORDERED


@pytest.mark.parametrize("kind", ColumnKind)
def test_a_kind_has_the_members_that_its_outcomes_need(kind: ColumnKind) -> None:
    assert {"minimum", "maximum"} <= kind.members if kind.is_real else "minimum" not in kind.members
    assert "levels" in kind.members or not kind.has_levels
    assert kind.needed is None or kind.needed in kind.members
    assert (kind.dtype is not None) is kind.is_real
    assert kind.members <= set(Column.__dataclass_fields__)
