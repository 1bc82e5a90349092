"""Options of scoring, and texts that explain the numbers of a score.

Loads without torch, pandas and NumPy, because the service needs both before its port is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from gcvae.errors import Problem, SettingError
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.schema.suggestions import unknown_name
from gcvae.scoring.scoring_setting import FLAG, FULL, RARE_NOTE

MEASURES = {
    "density": "density of continuous columns per original unit (per day for dates)",
    "rounding_cell": (
        "mass of the rounding cell of continuous columns (half a unit of the column's "
        "decimals below "
        "and above; a density per unit where a column has no fixed decimals)"
    ),
    "pmf": "mass of the quantile bin of continuous columns",
}
"""Measures of continuous values. Discrete columns and frequent values always contribute
their mass."""
_TRUE_OR_FALSE = {"True", "False", "np.True_", "np.False_"}
"""Texts of truth values, compared as text because NumPy is not loaded here."""
BLANK_REFERENCE_ROWS = 300
"""Number of generated rows, with the same cells missing, among which a row is ranked."""
MOST_BLANK_SETS = 32
"""Maximum number of different sets of missing columns that get percentiles, in each 4,096 rows."""


TOLERANCE = 0.1
"""Default standard error of a row's score, in nats."""
FIRST_DRAWS, MOST_DRAWS = 12, 1000
"""Minimum and maximum number of draws of z for a row, if a tolerance determines it."""
_LEAST_TOLERANCE = 0.001
_TYPICAL_SPREAD = 0.33
"""Standard deviation of a typical row's weights relative to their mean, to estimate the work."""


def _is_tolerance(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and _LEAST_TOLERANCE <= value < math.inf


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _plain_seed(seed: Any) -> Any:
    """Invalid seeds are unchanged, and rejected when used."""
    return int(seed) if _is_whole(seed, 0) else seed


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "draws": int,
    "seed": _plain_seed,
    "measure": str,
    "score_missingness": bool,
    "tolerance": float,
}
"""Converters of option values to Python's own types."""


@dataclass(frozen=True)
class ScoreOptions:
    """How rows are scored.

    Attributes:
        draws: Number of draws of the latent vector z for each row; None for as many as the
            tolerance needs.
        seed: Seed of the random generator; equal seeds give equal scores.
        measure: What a number contributes: a key of `MEASURES`.
        score_missingness: Whether a missing cell contributes its probability of being missing; else
            it is integrated out.
        tolerance: Target standard error of a row's score in nats, reached with at most MOST_DRAWS
            draws. None means TOLERANCE if `draws` is None.
    """

    draws: int | None = None
    seed: int = 0
    measure: str = "density"
    score_missingness: bool = False
    tolerance: float | None = None

    def __post_init__(self) -> None:
        """Checks every option.

        Raises:
            SettingError: An option is out of range.
        """
        problems = self._problems_of_draws()
        if not isinstance(self.measure, str) or self.measure not in MEASURES:
            problem = f"unknown measure {self.measure!r}"
            problems.append(unknown_name(problem, self.measure, MEASURES, pointer="/measure"))
        if repr(self.score_missingness) not in _TRUE_OR_FALSE:
            problem = f"score_missingness is {self.score_missingness!r}"
            problems.append(Problem(problem, "/score_missingness", expected="true or false"))
        if problems:
            raise SettingError(*problems)
        if self.draws is None and self.tolerance is None:
            object.__setattr__(self, "tolerance", TOLERANCE)
        for name, plain in _PLAIN.items():  # NumPy's numbers are not JSON
            if getattr(self, name) is not None:
                object.__setattr__(self, name, plain(getattr(self, name)))

    def _problems_of_draws(self) -> list[Problem]:
        problems = []
        if self.draws is not None and not _is_whole(self.draws, 1):
            problem = f"draws is {self.draws!r}; it must be a whole number, at least 1"
            problems.append(Problem(problem, "/draws", expected="a whole number, at least 1"))
        if self.tolerance is not None and not _is_tolerance(self.tolerance):
            problem = (
                f"tolerance is {self.tolerance!r}; it must be a finite number, "
                f"{_LEAST_TOLERANCE} nats or more"
            )
            expected = f"a finite number, {_LEAST_TOLERANCE} or more"
            problems.append(Problem(problem, "/tolerance", expected=expected))
        if self.draws is not None and self.tolerance is not None:
            problem = f"draws is {self.draws}, and so the tolerance {self.tolerance} says nothing"
            problems.append(Problem(problem, "/tolerance", expected="draws or tolerance"))
        return problems

    @property
    def typical_draws(self) -> int:
        """Expected number of draws of z for a typical row, from which the work is estimated."""
        if self.draws is not None:
            return self.draws
        assert self.tolerance is not None, "it is one of both"
        needed = math.ceil((_TYPICAL_SPREAD / self.tolerance) ** 2)
        return min(MOST_DRAWS, max(FIRST_DRAWS, needed))

    @property
    def has_percentiles(self) -> bool:
        """Whether scores can be ranked among those of held-out rows: True if the measure is
        `density`, with which held-out rows were scored."""
        return self.measure == "density"

    def to_json(self) -> dict[str, Any]:
        """Returns the options by name; only the one of `draws` and `tolerance` that applies."""
        without = "tolerance" if self.draws is not None else "draws"
        return {name: value for name, value in asdict(self).items() if name != without}

    def heading(
        self, order: Sequence[str], *, has_reference: bool = True, scoring: str = FULL
    ) -> dict[str, Any]:
        """Returns the heading of a file of scores: the options, and what the numbers mean.

        Args:
            order: Names of the modelled columns in the order in which the decoder generates them.
            has_reference: Whether the model's file contains the scores of held-out rows.
            scoring: `full`, or `flag` if the model only reveals whether rows are rare.
        """
        options = self.to_json()
        if scoring == FLAG:
            return options | {"options": options, "notes": [RARE_NOTE]}
        return options | {
            "measure": self._meaning(),
            "options": options,
            "notes": self._notes(order, has_reference),
        }

    def _meaning(self) -> str:
        blank = (
            "a missing cell counts with its probability of being missing"
            if self.score_missingness
            else "a missing cell is integrated out"
        )
        return (
            "log-likelihood: a lower bound on log p(row) in nats, from the probability mass of "
            f"discrete columns and frequent values and the {MEASURES[self.measure]}; "
            f"{blank}; a row "
            "with a level that is not in the schema scores -Infinity, as does a row that breaks a "
            "hard rule (all others are renormalised by the measured acceptance)"
        )

    def _draws_in_words(self) -> str:
        if self.draws is not None:
            return f"{self.draws} draws of z"
        return (
            f"as many draws of z as each row needs for a standard error near {self.tolerance} nats "
            f"(tolerance), from {FIRST_DRAWS} to {MOST_DRAWS:,}; one half of them determines the "
            "number of the other"
        )

    def _notes(self, order: Sequence[str], has_reference: bool) -> list[str]:
        return [
            f"importance-weighted with {self._draws_in_words()}; about a tenth are from the prior; "
            "standard_error is that of the estimate over such draws, including its bias",
            "the mass of discrete cells given z is exact",
            "contributions are chain-rule terms, log p(column | earlier columns), in the model's "
            f"order: {', '.join(order)}; they add up to log_likelihood, and a missing cell adds 0",
            self._percentile_in_words(has_reference),
            "anomaly is a p-value: a share p of rows like the training rows has an anomaly of at "
            "most p; odd_cell is the column of the most unusual cell given the earlier columns"
            if has_reference
            else "no anomaly: a minimal model has no scores of held-out rows",
        ]

    def _percentile_in_words(self, has_reference: bool) -> str:
        if not self.has_percentiles:
            return "no percentile: held-out rows were scored by density"
        of_blanks = (
            f"among {BLANK_REFERENCE_ROWS:,} synthetic rows with the same cells missing (for the "
            f"first {MOST_BLANK_SETS} sets of missing columns in every {SHARD_UNIT_ROWS:,} rows, "
            "none for others); half of equal scores count as below"
        )
        if not has_reference:
            return (
                "no percentile of complete rows: a minimal model has no scores of held-out rows; "
                f"the percentile of a row with missing cells is {of_blanks}"
            )
        return (
            "percentile (0 to 100) is the row's rank among held-out rows; that of a row "
            "with missing "
            f"cells is {of_blanks}"
        )
