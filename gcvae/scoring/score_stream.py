"""Streams scores in blocks as the bytes of one file, with a description of the numbers.

Loads without pandas, because the service lists the formats before its port is open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from gcvae.errors import SettingError
from gcvae.files.shards import WHOLE, FileShard
from gcvae.numerics.exact_sum import ExactSum
from gcvae.scoring.scoring_setting import FLAG, IS_RARE

if TYPE_CHECKING:
    import pandas as pd

CONTRIBUTION = "contributions."
"""Prefix of the names of contribution columns."""

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}
"""Media types by format."""


class ScoreTotals:
    """Sum and mean of the scores of all rows, and the standard error of the sum.

    Impossible rows, of likelihood 0, make the sum -inf; their number is counted.

    Attributes:
        rows: Number of rows.
        n_impossible: Number of impossible rows.
    """

    def __init__(self) -> None:
        """Creates totals of no rows."""
        self.rows = 0
        self.n_impossible = 0
        self._sum = ExactSum()
        self._variance = ExactSum()

    def add(self, block: pd.DataFrame) -> None:
        """Adds the scores of a block of rows."""
        self.rows += len(block)
        self.n_impossible += int((block["log_likelihood"] == -math.inf).sum())
        self._sum.add(float(block["log_likelihood"].sum(skipna=False)))
        self._variance.add(float((block["standard_error"] ** 2).sum()))

    def add_all(self, totals: ScoreTotals) -> None:
        """Adds the sums and counts of other totals."""
        self.rows += totals.rows
        self.n_impossible += totals.n_impossible
        self._sum.add_all(totals._sum)
        self._variance.add_all(totals._variance)

    def to_json(self) -> dict[str, Any]:
        """Returns the totals as a JSON document. The sum's variance is the sum of the rows'
        variances."""
        bound = self._sum.value
        totals = {
            "rows": self.rows,
            "n_impossible": self.n_impossible,
            "log_likelihood": bound,
            "mean_log_likelihood": bound / self.rows if self.rows else math.nan,
            "standard_error": math.sqrt(self._variance.value),
        }
        return {name: json_number(value) for name, value in totals.items()}

    def state(self) -> dict[str, Any]:
        """Returns the totals as a JSON document with exact sums.

        `of_state` restores the totals from it. Totals of several shards can be added without
        rounding errors, so that the result does not depend on how rows are divided.
        """
        return {
            "rows": self.rows,
            "n_impossible": self.n_impossible,
            "sum": self._sum.to_json(),
            "variance": self._variance.to_json(),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Self:
        """Restores the totals from a JSON document that `state` returned."""
        totals = cls()
        totals.rows, totals.n_impossible = state["rows"], state["n_impossible"]
        totals._sum = ExactSum.from_json(state["sum"])
        totals._variance = ExactSum.from_json(state["variance"])
        return totals


class RareTotals:
    """Counts of rows, for a model that only reveals whether a row is rare.

    Attributes:
        rows: Number of rows.
        n_rare: Number of rare rows.
        n_unknown: Number of rows that could not be ranked.
    """

    def __init__(self, rows: int = 0, n_rare: int = 0, n_unknown: int = 0) -> None:
        """Creates totals with the given counts."""
        self.rows, self.n_rare, self.n_unknown = rows, n_rare, n_unknown

    def add(self, block: pd.DataFrame) -> None:
        """Adds the flags of a block of rows."""
        self.rows += len(block)
        self.n_rare += int(block[IS_RARE].sum())
        self.n_unknown += int(block[IS_RARE].isna().sum())

    def add_all(self, totals: RareTotals) -> None:
        """Adds the counts of other totals."""
        self.rows += totals.rows
        self.n_rare += totals.n_rare
        self.n_unknown += totals.n_unknown

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as a JSON document."""
        return {"rows": self.rows, "n_rare": self.n_rare, "n_unknown": self.n_unknown}

    state = to_json


Totals = ScoreTotals | RareTotals


def new_totals(scoring: str) -> Totals:
    """Returns totals of no rows, for a model whose scoring is `full`, or `flag` (only whether rows
    are rare)."""
    return RareTotals() if scoring == FLAG else ScoreTotals()


def joined_totals(states: Sequence[Mapping[str, Any]]) -> Totals:
    """Returns the sum of the totals of all shards (parts of a job).

    Args:
        states: Totals of each shard, as returned by the method `state`; at least one.
    """
    if "n_rare" in states[0]:
        flags = RareTotals()
        for state in states:
            flags.add_all(RareTotals(**state))
        return flags
    totals = ScoreTotals()
    for state in states:
        totals.add_all(ScoreTotals.of_state(state))
    return totals


def stream_scores(
    blocks: Iterable[pd.DataFrame],
    format: str,
    heading: Mapping[str, Any],
    totals: Totals,
    shard: FileShard = WHOLE,
) -> Iterator[bytes]:
    """Yields the bytes of one file of scores, block by block.

    Args:
        blocks: Blocks of scores, as `Synthesizer.score_blocks` yields them.
        format: `csv`, or `json` for an object with the heading, `scores` and `totals`.
        heading: First members of the JSON object, such as explanations of the numbers.
        totals: Totals to which the blocks are added.
        shard: Part of the file that the blocks form; only the last part ends with `scores_end`.

    Raises:
        SettingError: The format is unknown.
    """
    if format not in MEDIA_TYPES:
        raise SettingError(f"there is no score format {format!r}, but {', '.join(MEDIA_TYPES)}")
    passing = added_to_totals(blocks, totals)
    return _csv(passing, shard) if format == "csv" else _json(passing, heading, totals, shard)


def scores_end(format: str, totals: Totals) -> bytes:
    """Returns the bytes that follow the last score: the totals in JSON, nothing in CSV."""
    if format == "csv":
        return b""
    return f'\n], "totals": {json.dumps(totals.to_json(), allow_nan=False)}}}\n'.encode()


def added_to_totals(blocks: Iterable[pd.DataFrame], totals: Totals) -> Iterator[pd.DataFrame]:
    """Yields the blocks, after adding each of them to the totals."""
    for block in blocks:
        totals.add(block)
        yield block


def json_number(value: float | str | None) -> float | int | str | None:
    """Converts a number to a value that JSON can express: infinite numbers to strings, NaN to
    None."""
    if value is None or isinstance(value, int | str) or math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    return "Infinity" if value > 0 else "-Infinity"


def _nested(line: dict[str, Any]) -> dict[str, Any]:
    parts = [name for name in line if name.startswith(CONTRIBUTION)]
    contributions = {name.removeprefix(CONTRIBUTION): line.pop(name) for name in parts}
    return {**line, "contributions": contributions} if parts else line


def _csv(blocks: Iterable[pd.DataFrame], shard: FileShard) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        yield block.to_csv(index=False, header=shard.is_first and number == 0).encode()


def _json(
    blocks: Iterable[pd.DataFrame],
    heading: Mapping[str, Any],
    totals: Totals,
    shard: FileShard,
) -> Iterator[bytes]:
    head = json.dumps({**heading, "scores": []}, allow_nan=False)
    if shard.is_first:
        yield head[:-2].encode()
    comma = "" if shard.is_first else ","
    for block in blocks:
        if IS_RARE in block:  # null for rows that could not be ranked
            block = block.astype(object).replace({float("nan"): None})
        for row in block.to_dict(orient="records"):
            line = _nested({str(name): json_number(value) for name, value in row.items()})
            yield f"{comma}\n{json.dumps(line, allow_nan=False)}".encode()
            comma = ","
    if shard.is_last:
        yield scores_end("json", totals)
