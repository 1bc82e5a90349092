"""Estimates the distribution of a table's rows by a mixture fitted to noisy counts.

    p(x) = 1/K sum over k of prod over j of p_kj(x_j)

x_j is the bin of column j, and p_kj its distribution in component k. Expected contingency tables of
two columns, or of two columns and a target column, are products of matrices. The estimate uses only
noisy counts, so their privacy guarantee applies to it.

Source: GEM of Liu, Vietri and Wu (2021), "Iterative methods for private synthetic data".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gcvae.arrays import Codes, Numbers

MOST_COMPONENTS = 1_000
"""Maximum number of components; small tables have one component per ten rows."""
_STEP_SIZE = 0.1
_SPREAD = 0.5
"""Scale of the initial logits, which have to differ between components."""


@dataclass
class Measured:
    """Noisy contingency table of two columns, and of a target column if there is one.

    Attributes:
        pair: Indices of the two columns.
        counts: Noisy counts. Shape: (n_a, n_b) for the columns' numbers of bins, with a first
            dimension for the target column if there is one.
        precision: Inverse variance of the noise in each count.
    """

    pair: tuple[int, int]
    counts: Numbers
    precision: float

    def add(self, counts: Numbers, precision: float) -> None:
        """Adds a second noisy measurement of the same counts: the counts become the mean of both
        measurements, weighted by their precision.

        Args:
            counts: Counts of the second measurement, in the shape of the first.
            precision: Inverse variance of the noise in each of these counts.
        """
        whole = self.precision + precision
        self.counts = (self.precision * self.counts + precision * counts) / whole
        self.precision = whole


@dataclass
class Estimate:
    """Mixture of product distributions over the bins of D columns, fitted to noisy counts.

    Attributes:
        sizes: Number of bins of each column.
        target: Index of the target column, which is counted with every pair; None if there is none.
        n_rows: Estimated number of rows.
        one_way: Noisy counts of each column's bins, with their precision (inverse variance).
        generator: Random generator of the initial logits.
        n_components: Number of components K.
        measured: Noisy contingency tables by pair of column indices.
    """

    sizes: tuple[int, ...]
    target: int | None
    n_rows: float
    one_way: Sequence[tuple[Numbers, float]]
    generator: torch.Generator
    n_components: int = MOST_COMPONENTS
    measured: dict[tuple[int, int], Measured] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Initialises each component with the shares of the one-way counts and random noise, so
        that the components differ."""
        self._starts = np.append(0, np.cumsum(self.sizes)).tolist()
        shares = [np.maximum(counts, 0.5) for counts, _ in self.one_way]
        logits = torch.tensor(np.log(np.concatenate([s / s.sum() for s in shares])))
        noise = torch.randn(
            self.n_components, len(logits), generator=self.generator, dtype=torch.float32
        )
        self._logits = (logits.float() + _SPREAD * noise).requires_grad_()
        self._optimiser = torch.optim.Adam([self._logits], lr=_STEP_SIZE, betas=(0.9, 0.99))

    def _part(self, column: int) -> slice:
        return slice(self._starts[column], self._starts[column + 1])

    def probabilities(self) -> Tensor:
        """Returns the bin probabilities of all columns, concatenated, for each of K mixture
        components.

        Shape: (K, sum of the columns' numbers of bins).
        """
        parts = [self._logits[:, self._part(j)].softmax(1) for j in range(len(self.sizes))]
        return torch.cat(parts, 1)

    def _with_target(self, p: Tensor) -> Tensor:
        """Returns, for each component, the joint probability of each target level and each bin of
        every column. `p` contains the bin probabilities from `probabilities`. Without a target, the
        result is `p` with a first axis of length 1. Shape: (K, S) -> (n_t, K, S) for K components,
        S bins and n_t target levels."""
        if self.target is None:
            return p[None]
        return p[:, self._part(self.target)].T[:, :, None] * p[None]

    def _table(self, p: Tensor, weighted: Tensor, pair: tuple[int, int]) -> Tensor:
        """Returns the expected contingency table of a pair of column indices. `p` is from
        `probabilities`, and `weighted` from `_with_target`. Shape: (n_a, n_b), with a first axis
        for the target column if there is one."""
        a, b = pair
        found = weighted[:, :, self._part(a)].transpose(1, 2) @ p[:, self._part(b)]
        found = found * (self.n_rows / self.n_components)
        return found[0] if self.target is None else found

    @torch.no_grad()
    def tables(self, pairs: Sequence[tuple[int, int]]) -> list[Numbers]:
        """Returns the mixture's expected contingency tables for several pairs of column indices."""
        p = self.probabilities()
        weighted = self._with_target(p)
        return [self._table(p, weighted, pair).double().numpy() for pair in pairs]

    def fit(self, n_steps: int, *, step_size: float = _STEP_SIZE, anneal: bool = False) -> None:
        """Fits the mixture to all noisy counts by least squares, weighted by precision.

        Args:
            n_steps: Number of steps of Adam.
            step_size: Step size.
            anneal: Whether the step size falls linearly to zero.
        """
        one_way = torch.tensor(np.concatenate([counts for counts, _ in self.one_way])).float()
        weights = torch.cat([torch.full((len(c),), float(w)) for c, w in self.one_way])
        tables = [
            (m.pair, torch.tensor(m.counts).float(), float(m.precision))
            for m in self.measured.values()
        ]
        for step in range(n_steps):
            rate = step_size * (1.0 - step / n_steps if anneal else 1.0)
            for group in self._optimiser.param_groups:
                group["lr"] = rate
            p = self.probabilities()
            weighted = self._with_target(p)
            found = p.mean(0) * self.n_rows
            loss = (weights * (found - one_way) ** 2).sum()
            for pair, counts, precision in tables:
                loss = loss + precision * ((self._table(p, weighted, pair) - counts) ** 2).sum()
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self._optimiser.step()

    @torch.no_grad()
    def draw(self, n: int, random: np.random.Generator) -> Codes:
        """Samples n rows from the mixture, as the bin index of each cell. Shape: (n, D).

        Sampling is stratified. Components have equal numbers of rows. In each component, the bin
        counts of a column equal their expected values as closely as integers allow. The rows of a
        component are in a separate random order for each column, so its columns are independent.
        """
        p = self.probabilities().double().numpy()
        component = random.permutation(np.arange(n) % self.n_components)
        rows = [np.flatnonzero(component == k) for k in range(min(self.n_components, n))]
        bins = np.zeros((n, len(self.sizes)), dtype=np.int64)
        for j in range(len(self.sizes)):
            ends = np.cumsum(p[:, self._part(j)], axis=1)
            for k, own in enumerate(rows):
                u = (random.permutation(len(own)) + random.random(len(own))) / len(own)
                bins[own, j] = np.searchsorted(ends[k, :-1], u * ends[k, -1], side="right")
        return bins
