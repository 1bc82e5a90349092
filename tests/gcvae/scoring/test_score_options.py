"""What may be asked of a score is checked, and is JSON whatever it was given as."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gcvae.errors import SettingError
from gcvae.scoring.score_options import ScoreOptions
from gcvae.training.settings import preset_named
from tests.wordings import refuses

NOT_NAMES: list[Any] = [[], ["density"], {}, 3, None, np.array(["density", "pmf"])]


@pytest.mark.parametrize("word", NOT_NAMES)
def test_a_measure_or_preset_that_is_no_text_is_refused_with_those_that_there_are(
    word: Any,
) -> None:
    with refuses(SettingError, "/measure"):
        ScoreOptions(measure=word)
    with refuses(SettingError, "/preset"):
        preset_named(word)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_what_says_neither_yes_nor_no_is_refused(value: Any) -> None:
    with refuses(SettingError, "/score_missingness"):
        ScoreOptions(score_missingness=value)


@pytest.mark.parametrize(
    "given",
    [
        {"tolerance": np.float32(0.5)},
        {"tolerance": np.int64(1), "seed": np.uint8(3)},
        {"draws": np.int32(12), "measure": np.str_("pmf")},
        {"score_missingness": np.bool_(True)},
    ],
)
def test_numbers_of_numpy_are_written_as_those_of_python(given: dict[str, Any]) -> None:
    options = ScoreOptions(**given)
    written = json.loads(json.dumps(options.to_json()))
    assert written == {**ScoreOptions(**written).to_json()}
    assert {name: written[name] for name in given} == given
    for name in given:
        assert type(getattr(options, name)) in (int, float, str, bool)
