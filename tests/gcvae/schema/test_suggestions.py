"""A name that is not known is answered with the one that was meant, not with a list."""

from __future__ import annotations

from typing import Any, get_type_hints

import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.dependence.map_kinds import check_map_arguments
from gcvae.errors import InputError, SettingError
from gcvae.files.row_documents import rows_to_csv
from gcvae.profiling.infer import infer_schema
from gcvae.schema.suggestions import MOST_LISTED, listed, nearest, unknown_names
from gcvae.scoring.score_options import ScoreOptions
from gcvae.training.foreign_names import BESIDE_SETTINGS, FOREIGN_NAMES
from gcvae.training.settings import PRESETS, TrainingConfig, configure, preset_named
from tests.wordings import refuses

SETTINGS = [*get_type_hints(TrainingConfig)]
FRAME = pd.DataFrame({"age": ["31", "32", "47"] * 30, "städtchen": ["a", "b", "c"] * 30})
SCHEMA = infer_schema(FRAME).schema


def misspelled(name: str) -> str:
    """Two neighbouring letters in the middle are swapped."""
    at = len(name) // 2
    return name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :]


def test_a_misspelled_setting_is_answered_with_the_one_that_was_meant() -> None:
    for name in (name for name in SETTINGS if misspelled(name) != name):
        with pytest.raises(SettingError) as refused:
            configure("default", {misspelled(name): 1})
        text = str(refused.value)
        assert text.endswith(f"; did you mean {name!r}?")
        assert sum(o in text for o in SETTINGS if len(o) > 6 and o not in name) <= 1, text


def test_another_tools_name_is_answered_with_a_setting_that_exists() -> None:
    for foreign, own in FOREIGN_NAMES.items():
        assert own in (*SETTINGS, *BESIDE_SETTINGS)
        assert foreign not in (*SETTINGS, *BESIDE_SETTINGS)
        with refuses(SettingError, names=f"did you mean {own!r}"):
            configure("fast", {foreign: 1})


@pytest.mark.parametrize("name", BESIDE_SETTINGS)
def test_an_argument_of_its_own_is_no_setting(name: str) -> None:
    with refuses(SettingError, f"/{name}", names=f"--{name}"):
        configure("fast", {name: "fast"})


def test_epochs_are_said_to_be_passes_and_how_they_stand_to_steps() -> None:
    for preset in PRESETS:
        with refuses(SettingError, "/epochs"):
            configure(preset, {"epochs": 300})
    by_rule = [name for name, preset in PRESETS.items() if preset.config.max_steps is None]
    assert by_rule == ["default", "fast", "gcvae"], "the message names them"


def test_a_setting_like_no_other_is_answered_with_a_few_and_where_the_rest_are() -> None:
    with refuses(SettingError, "/quux") as refused:
        configure("default", {"quux": 1})
    assert sum(name in str(refused.value) for name in SETTINGS) < 8


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda: preset_named("defualt"), "default"),
        (lambda: preset_named("Paper GCVAE"), "paper-gcvae"),
        (lambda: check_map_arguments("totl", False, False), "total"),
        (lambda: ScoreOptions(measure="densty"), "density"),
        (lambda: infer_schema(FRAME, {"columns": [{"name": "Age"}]}), "age"),
        (lambda: infer_schema(FRAME, {"colums": []}), "columns"),
        (lambda: infer_schema(FRAME, {"columns": [{"name": "age", "kind": "intger"}]}), "integer"),
        (lambda: infer_schema(FRAME, {"columns": [{"name": "age", "minimun": 1}]}), "minimum"),
        (
            lambda: infer_schema(
                FRAME, {"rules": [{"rule": "agee > 1", "keep": "hard"}], "find_rules": True}
            ),
            "age",
        ),
        (lambda: parse_table(FRAME.rename(columns={"age": "AGE"}), SCHEMA), "age"),
        (lambda: rows_to_csv([{"stadtchen": "a"}], SCHEMA), "städtchen"),
        (lambda: SCHEMA["aeg"], "age"),
    ],
)
def test_every_unknown_name_is_answered_with_the_one_that_was_meant(ask: Any, meant: str) -> None:
    with refuses(InputError) as refused:
        ask()
    assert refused.value.problems[0].suggestion == meant


def test_names_are_alike_whatever_their_case_and_script() -> None:
    assert nearest("MAX-STEPS", SETTINGS) == "max_steps"
    assert nearest("价格 ", ["数量", "价格"]) == "价格"
    assert nearest("x", ["age", "sex"]) is None
    assert nearest("a" * 10**6, ["age", "a" * 100 + "b"]) == "a" * 100 + "b"


def test_many_names_are_listed_in_part_and_compared_in_part() -> None:
    known = [f"column {i}" for i in range(4_000)]
    assert listed(known).count("column") == MOST_LISTED
    assert listed(known).endswith(", ...")
    problems = unknown_names("no", [(f"colum {i}", {"column": str(i)}) for i in range(900)], known)
    assert [problem.column for problem in problems] == [str(i) for i in range(900)]
    assert problems[0].suggestion == "column 0"
    assert problems[-1].suggestion is None
