"""Lookahead proposals for functional dependencies: codes are drawn in view of later conditions.

    draw k from p(k) h(k) / Z,      weight by Z / h(k),      Z = sum_k p(k) h(k)

If the dependent column y is conditioned and is drawn after the columns that determine it, few of
their codes k can lead to a possible y: one in a hundred destinations has a given distance. Codes of
earlier columns, of probability p(k), are therefore drawn with weights h: 1 for codes that can still
lead to a possible y, a small number for all others. The particle's weight corrects for h, so any
positive h gives the distribution under the condition.

Source: look-ahead in sequential importance sampling; Lin, Chen and Liu 2013.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcvae.codec.region import ConditionalColumn, Drawn, Region
from gcvae.model.level_functions import LevelFunction

_LOG_SILENT = math.log(0.1)
"""log h of a code that does not occur in the dependency's combinations."""
_LEAST = 1e-4
"""Minimum of h for a code that leads to no possible y; h is the larger of it and the dependency's
share of exceptions."""


@dataclass(frozen=True)
class LookaheadRegion:
    """Possible cells of a column on which a later conditioned column depends; integer codes that
    can lead to a possible later cell are drawn with a larger weight h.

    Attributes:
        own: Possible cells (region) of the column itself.
        dependencies: Functional dependencies that connect the column with conditioned later
            columns; the weight h of a code is the product of its weights in all of them.
    """

    own: Region
    dependencies: tuple[Dependency, ...]

    def take(self, rows: Tensor | None) -> LookaheadRegion:
        """Returns the region for the rows with the given indices; None stands for all rows."""
        if rows is None:
            return self
        dependencies = tuple(each.take(rows) for each in self.dependencies)
        return LookaheadRegion(self.own.take(rows), dependencies)

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Draws a code k with probability p(k) h(k) / Z, Z = sum_k p(k) h(k), for each of N
        particles (weighted draws of a row), with log (Z / h(k)) as its log weight.

        `column` is the column's distribution p given the earlier columns. Shape: uniform noise
        (N,); codes and values (N, D), of which the columns drawn so far are set.
        """
        n_codes = self.own.log_share.shape[-1]
        log_h = torch.stack([each.log_h(codes, n_codes) for each in self.dependencies]).sum(0)
        drawn = column.draw_within(replace(self.own, log_share=self.own.log_share + log_h), noise)
        taken = log_h.gather(-1, drawn.codes.long()[:, None])[:, 0]
        return replace(drawn, log_prob=drawn.log_prob - taken)


@dataclass(frozen=True)
class Dependency:
    """A functional dependency, prepared to weight the integer codes of one of its columns by
    whether they can lead to a possible cell of a later column.

    Attributes:
        function: The functional dependency: r columns determine another.
        pairs: The m combinations of codes that satisfy the dependency. If it only distinguishes
            missing from present cells of a column, the column has 0 for missing, 1 for present. The
            weighted column keeps its own codes: a combination with a present cell is listed once
            for each code of a present cell. Shape: (m, r + 1).
        at: Position of the weighted column in `pairs`.
        earlier: Positions in `pairs` of the columns that are generated before the weighted one.
        possible: Mask of the K possible codes of each later conditioned column, by position in
            `pairs`. Shape: (n, K), or (1, K) for all rows alike.
    """

    function: LevelFunction
    pairs: Tensor
    at: int
    earlier: tuple[int, ...]
    possible: Mapping[int, Tensor]

    def take(self, rows: Tensor) -> Dependency:
        """Returns the dependency for the rows with the given indices."""
        taken = {i: p if len(p) == 1 else p[rows] for i, p in self.possible.items()}
        return replace(self, possible=taken)

    def log_h(self, codes: Tensor, n_codes: int) -> Tensor:
        """Returns the log of the weight h of each of the column's K = `n_codes` integer codes: 0
        for codes that can lead to a possible later cell, much less for all others.

        Shape: codes of N rows and D columns (N, D) -> (N, K).
        """
        pairs = self.pairs
        listed = torch.ones(len(codes), len(pairs), dtype=torch.bool)
        for i in self.earlier:
            earlier = self.function.classes(codes[:, self.function.columns[i], None], [i])
            listed &= earlier == pairs[:, i]
        fits = listed.clone()
        for i, possible in self.possible.items():
            fits &= possible[:, pairs[:, i]]
        own = pairs[:, self.at]
        is_listed, is_fit = (
            torch.zeros(len(codes), n_codes).index_add(1, own, flags.float()) > 0
            for flags in (listed, fits)
        )
        log_break = math.log(max(self.function.exceptions, _LEAST))
        silent = torch.where(is_listed, log_break, torch.tensor(_LOG_SILENT, dtype=torch.float64))
        is_free = torch.stack([p.all(-1).expand(len(codes)) for p in self.possible.values()]).all(0)
        return torch.where(is_fit | is_free[:, None], 0.0, silent)
