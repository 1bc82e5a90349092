"""Rewritings: invertible replacements of one column of a table by others, called its parts.

    y  <->  parts, given the cells of other columns (parents)

A part is for example the residual of a rule, which depends on parents, or the weekday of a date.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pandas as pd

from gcvae.rules.grids import Indices
from gcvae.schema.columns import Column


class Rewriting(ABC):
    """Base class of replacements of a column by its parts."""

    @property
    @abstractmethod
    def column(self) -> str:
        """Name of the original column."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the original columns on which the meaning of the parts depends."""
        return ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Column, ...]:
        """Schemas of the columns that replace the original one; the first has its name."""

    @abstractmethod
    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the cells of the parts in n rows, by name of the part. Shape: (n,) each.

        Args:
            frame: Original cells of the column and its parents.
            blanks_unknown: Whether parts are missing in rows where a parent is missing; otherwise a
                default replaces what cannot be computed.
        """

    @abstractmethod
    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """Returns the cells of the original column in n rows. Shape: (n,).

        Args:
            frame: Original cells of the parents.
            parts: Cells of the parts.
        """

    @abstractmethod
    def part_intervals(
        self, part: str, earlier: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
        """Returns the intervals in which one part may lie if the original cell lies in given
        intervals.

        Args:
            part: Name of the part.
            earlier: Cells of the parents, and of the parts before this one. n rows.
            low, high: First and last values of m intervals of the original column, as multiples of
                its resolution. Shape: (n, m) each.

        Returns:
            (First values, last values) of m' intervals of the part; m' may differ from m. An
            interval is empty if first > last. Shape: (n, m') each.
        """

    def can_solve(self, parent: str) -> bool:
        """Returns whether `solutions` can compute the values of this parent from those of the
        original column and the other parents."""
        return False

    def solutions(
        self, parent: Column, others: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
        """Returns the intervals in which one parent may lie if the original cell lies in given
        intervals.

        Only frequent residuals are considered, so that a few solutions may be missing.

        Args:
            parent: Parent to solve for.
            others: Cells of the other parents. n rows.
            low, high: First and last values of m intervals of the original column, as multiples of
                its resolution. Shape: (n, m) each.

        Returns:
            (First values, last values) of m' intervals of the parent; m' may differ from m. An
            interval is empty if first > last. Shape: (n, m') each.
        """
        raise NotImplementedError(f"{type(self).__name__} is not solved for a column")

    @abstractmethod
    def log_unit(self, part: str) -> float:
        """Returns the log of the original column's resolution if `part` is the first part, else 0.

        The log probabilities of all parts, minus these numbers, add up to the log density of the
        original column.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Returns a JSON document from which `from_json` restores the rewriting, given the
        schema."""
