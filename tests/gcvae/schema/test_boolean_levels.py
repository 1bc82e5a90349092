"""Which level of a boolean is the false one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.profiling.infer import infer_schema


@pytest.mark.parametrize(
    ("cells", "levels", "false_first"),
    [
        ([True, False, True], ["True", "False"], ("False", "True")),
        (["yes", "no", "no"], ["yes", "no"], ("no", "yes")),
        (["1", "0", "0"], [1, 0], (0, 1)),
        (["ja", "nein", "ja"], ["nein", "ja"], ("nein", "ja")),
        (["ja", "nein", "ja"], ["ja", "nein"], ("ja", "nein")),
    ],
)
def test_levels_of_a_boolean_mean_what_their_words_say(
    cells: list[Any], levels: list[Any], false_first: tuple[Any, ...]
) -> None:
    column = {"name": "ok", "kind": "boolean", "levels": levels}
    found = infer_schema(pd.DataFrame({"ok": cells}), {"columns": [column]}).schema
    assert found["ok"].levels == false_first
