"""What a model that is handed on says of rows: their scores, whether they are rare, or nothing.

A score tells a row that a model has learned from others like it. `flag` leaves of it whether the
row is rare under the model, `off` nothing. Whoever has a model file has its weights, and other code
can score with them: the setting binds this library and the services that serve the model.

Loads without torch and pandas: the service asks before any worker does.
"""

from __future__ import annotations

from gcvae.errors import Problem, ScoringError, SettingError
from gcvae.schema.suggestions import unknown_name

FULL, FLAG, OFF = "full", "flag", "off"
SCORINGS = (FULL, FLAG, OFF)
"""From the loosest to the strictest."""
IS_RARE = "is_rare"
RARE_PERCENTILE = 1.0
"""A row is rare that is less likely than 99 in 100 rows of the model with the same blanks."""
PLAIN_OPTIONS = {"measure": "density", "jitters": 0, "score_missingness": False}
"""Under `flag` these options are as they are: the model's own rows were scored so."""
RARE_NOTE = (
    f"{IS_RARE} says whether a row is less likely than 99 in 100 rows of the model with the same "
    "cells blank; the model gives no more of its scores (scoring: flag)"
)


def stricter(one: str, other: str) -> str:
    """The stricter of two.

    >>> stricter("flag", "full")
    'flag'

    Raises:
        SettingError: One is not known.
    """
    return max(checked_scoring(one), checked_scoring(other), key=SCORINGS.index)


def checked_scoring(scoring: str) -> str:
    """A word of SCORINGS. Raises: SettingError for another."""
    if scoring not in SCORINGS:
        message = f"scoring is {scoring!r}"
        raise SettingError(unknown_name(message, scoring, SCORINGS, pointer="/scoring"))
    return scoring


def not_looser(asked: str, now: str) -> str:
    """What a model is to say of rows, where that is no more than it says.

    >>> not_looser("off", "flag")
    'off'

    Raises:
        SettingError: It is more, or one is not known.
    """
    if stricter(asked, now) != asked:
        message = f"the model's scoring is {now!r} and is never made looser, as {asked!r} is"
        allowed = " or ".join(SCORINGS[SCORINGS.index(now) :])
        expected = f"{allowed}; whoever has the table can train another model"
        raise SettingError(Problem(message, "/scoring", expected=expected))
    return asked


def require_scores(scoring: str) -> None:
    """Lets models pass that say something of rows.

    Raises:
        ScoringError: Scoring is off.
    """
    if scoring == OFF:
        raise ScoringError(
            Problem(
                "this model gives no scores: it was published with scoring off",
                expected="a model with scoring; the setting can be made stricter and never looser, "
                "so whoever has the table trains another, or uses a file from before",
            )
        )


def require_plain(scoring: str, options: object) -> None:
    """Lets options pass that the model's scoring has.

    Raises:
        ScoringError: Scoring is off.
        SettingError: Only a flag is given, which is of plain scores.
    """
    require_scores(scoring)
    if scoring == FULL:
        return
    others = {name: getattr(options, name) for name in PLAIN_OPTIONS}
    if problems := [
        Problem(
            f"{name} is {value!r}, and this model gives only a flag of rare rows (scoring: flag)",
            f"/{name}",
            expected=str(PLAIN_OPTIONS[name]).lower(),
        )
        for name, value in others.items()
        if value != PLAIN_OPTIONS[name]
    ]:
        raise SettingError(*problems)
