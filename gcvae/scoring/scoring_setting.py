"""How much a published model reveals about rows: scores, whether they are rare, or nothing.

A score reveals whether a model has learned from similar rows. The setting `flag` reduces it to
whether the row is rare under the model, `off` to nothing. This library and the services that serve
the model follow the setting; anyone with the file has the weights, and can compute scores with
other code.

Loads without torch and pandas, because the service checks the setting before any worker does.
"""

from __future__ import annotations

from gcvae.errors import Problem, ScoringError, SettingError
from gcvae.schema.suggestions import unknown_name

FULL, FLAG, OFF = "full", "flag", "off"
SCORINGS = (FULL, FLAG, OFF)
"""Scoring settings, from the least to the most restrictive."""
IS_RARE = "is_rare"
RARE_PERCENTILE = 1.0
"""Percentile below which a row is rare, among generated rows with the same cells missing."""
PLAIN_OPTIONS = {"measure": "density", "score_missingness": False}
"""Values that options must have under `flag`, because the generated rows for comparison were scored
with them."""
RARE_NOTE = (
    f"{IS_RARE} tells whether a row is less likely than 99 % of synthetic rows with the same cells "
    "missing; the model reveals no other scores (scoring: flag)"
)


def stricter(one: str, other: str) -> str:
    """Returns the more restrictive of two scoring settings.

    >>> stricter("flag", "full")
    'flag'

    Raises:
        SettingError: A setting is unknown.
    """
    return max(checked_scoring(one), checked_scoring(other), key=SCORINGS.index)


def checked_scoring(scoring: str) -> str:
    """Returns a scoring setting unchanged, after checking that it is one of SCORINGS.

    Raises:
        SettingError: The setting is unknown.
    """
    if scoring not in SCORINGS:
        message = f"scoring is {scoring!r}"
        raise SettingError(unknown_name(message, scoring, SCORINGS, pointer="/scoring"))
    return scoring


def not_looser(asked: str, now: str) -> str:
    """Returns the requested scoring setting if it is at least as restrictive as the current one.

    >>> not_looser("off", "flag")
    'off'

    Args:
        asked: The requested setting.
        now: The current setting.

    Raises:
        SettingError: The requested setting would reveal more, or a setting is unknown.
    """
    if stricter(asked, now) != asked:
        message = (
            f"the model's scoring is {now!r} and cannot be changed to the less restrictive "
            f"{asked!r}"
        )
        allowed = " or ".join(SCORINGS[SCORINGS.index(now) :])
        expected = f"{allowed}, or train another model"
        raise SettingError(Problem(message, "/scoring", expected=expected))
    return asked


def require_scores(scoring: str) -> None:
    """Checks that the scoring setting of a model permits scores or flags of rows.

    Raises:
        ScoringError: The scoring setting is `off`.
    """
    if scoring == OFF:
        raise ScoringError(
            Problem(
                "scoring is off for this model",
                expected="a model with scoring; scoring cannot be turned on again: train another "
                "model or use a copy from before it was turned off",
            )
        )


def require_plain(scoring: str, options: object) -> None:
    """Checks that score options are allowed under a model's scoring setting.

    Args:
        scoring: The setting.
        options: Score options; under `flag`, they must have the values of PLAIN_OPTIONS.

    Raises:
        ScoringError: The setting is `off`.
        SettingError: The setting is `flag`, and an option has another value.
    """
    require_scores(scoring)
    if scoring == FULL:
        return
    others = {name: getattr(options, name) for name in PLAIN_OPTIONS}
    if problems := [
        Problem(
            f"{name} is {value!r}, but this model only flags rare rows (scoring: flag)",
            f"/{name}",
            expected=str(PLAIN_OPTIONS[name]).lower(),
        )
        for name, value in others.items()
        if value != PLAIN_OPTIONS[name]
    ]:
        raise SettingError(*problems)
