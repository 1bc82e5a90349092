"""Random effect u of a parent row: a short vector that summarises what its children have in common.

    phi(x) = normal scores and indicators of frequent levels of a child row
    mean of phi over the n children of parent i = mu + v_i + e_i,  Cov(v) = B,  Cov(e_i) = W / n_i
    u = V^T v,  V the leading eigenvectors of B,  Lambda their eigenvalues
    u | children ~ N(K V^T (mean - mu), Lambda - K Lambda),  K = Lambda (Lambda + V^T W V / n)^-1

B and W are moment estimates: W within parents, B = Cov(means) - W mean(1/n). V contains the
eigenvectors whose eigenvalue exceeds the largest one after shuffling the children among the
parents.

Source: method-of-moments estimators of variance components (Searle, Casella & McCulloch 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import ndtri

from gcvae.arrays import Codes, Numbers
from gcvae.codec.context_codec import as_numbers
from gcvae.numerics.generators import numpy_generator

_MOST_DIRECTIONS = 6
RARE_ROWS = 5
"""Minimum number of rows of a level that is written to a model file."""
_LEAST_SHARE = 0.01
"""Minimum share of the rows that contain a level, for it to have an indicator."""
_MOST_INDICATORS = 40
_LEAST_PARENTS = 20


@dataclass(frozen=True)
class Feature:
    """Encodes one column of child rows as numeric features, from which a random effect is
    estimated.

    Attributes:
        column: Name of the column.
        knots: Sorted numbers of a numeric column, among which ranks are looked up to compute normal
            scores (normal quantiles of ranks); empty for a column of levels.
        levels: Frequent levels, each with an indicator; empty for a numeric column.
        shares: Share of the rows that contain each of `levels`.
    """

    column: str
    knots: tuple[float, ...]
    levels: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def fit(cls, cells: pd.Series[Any]) -> Self:
        """Fits the encoding of a column to its cells: knots of normal scores for a numeric column,
        frequent levels for others."""
        numbers = as_numbers(cells)
        if numbers is not None:
            known = np.sort(numbers[~np.isnan(numbers)])
            steps = np.linspace(0, max(len(known) - 1, 0), min(len(known), 257)).astype(int)
            return cls(str(cells.name), tuple(map(float, known[steps])), (), ())
        shares = cells.astype(str).value_counts(normalize=True)
        least = max(_LEAST_SHARE, RARE_ROWS / max(len(cells), 1))
        chosen = shares[shares >= least][:_MOST_INDICATORS].sort_index()
        names = tuple(map(str, chosen.index))
        return cls(str(cells.name), (), names, tuple(map(float, chosen)))

    def values(self, cells: pd.Series[Any]) -> Numbers:
        """Encodes n cells as d features: one normal score (0 if missing), or standardised
        indicators of levels. Shape: (n, d)."""
        if self.levels:
            found = pd.Index(self.levels).get_indexer(pd.Index(cells.astype(str)))
            shares = np.array(self.shares)
            indicators = (found[:, None] == np.arange(len(shares))) - shares
            return np.asarray(indicators / np.sqrt(shares))
        numbers = as_numbers(cells)
        if len(self.knots) < 2:
            return np.zeros((len(cells), 0))
        if numbers is None:  # all cells are missing, so that the column is not numeric
            return np.zeros((len(cells), 1))
        knots = np.array(self.knots)
        low, high = (np.searchsorted(knots, numbers, side) for side in ("left", "right"))
        scores = ndtri(((low + high) / 2 + 0.5) / (len(knots) + 1))
        return np.asarray(np.where(np.isnan(numbers), 0.0, scores))[:, None]


@dataclass(frozen=True)
class RandomEffect:
    """Random effect u, a vector that the children of one parent share: its prior p(u) and its
    posterior p(u | children).

    A child is encoded as d features phi. The mean features of parents vary with covariance B. u has
    q dimensions: it is the projection of a parent's mean features on the leading eigenvectors V of
    B.

    Attributes:
        features: Encoding of the columns of a child.
        mean: Mean mu of the features. Shape: (d,).
        directions: Eigenvectors V. Shape: (d, q).
        within: Covariance V^T W V, with W the covariance of features within parents. Shape: (q, q).
        variances: Eigenvalues Lambda, the prior variances of u. Shape: (q,).
    """

    features: tuple[Feature, ...]
    mean: Numbers
    directions: Numbers
    within: Numbers
    variances: Numbers

    @classmethod
    def fit(cls, children: pd.DataFrame, parents: Codes, seed: int) -> Self:
        """Estimates the distribution of the random effect from n children grouped by parent. It has
        no dimensions if children of the same parent are no more alike than others.

        Args:
            children: Columns of the children, with cells of their dtypes.
            parents: Parent index of each child. Shape: (n,).
        """
        features = tuple(Feature.fit(children[name]) for name in children.columns)
        phi = _stacked(features, children)
        places = np.unique(parents, return_inverse=True)[1]
        n_parents = int(places.max()) + 1 if len(places) else 0
        d = phi.shape[1]
        nothing = cls(features, np.zeros(d), np.zeros((d, 0)), np.zeros((0, 0)), np.zeros(0))
        if not d or n_parents < _LEAST_PARENTS or len(phi) < n_parents + _LEAST_PARENTS:
            return nothing
        within, between = _components(phi, places, n_parents)
        shuffled = places[numpy_generator(seed, "shuffled children").permutation(len(places))]
        least = np.linalg.eigvalsh(_components(phi, shuffled, n_parents)[1])[-1]
        values, vectors = np.linalg.eigh(between)
        chosen = np.flatnonzero(values > max(least, 1e-6))[::-1][:_MOST_DIRECTIONS]
        if not len(chosen):
            return nothing
        v = vectors[:, chosen]
        return cls(features, phi.mean(axis=0), v, v.T @ within @ v, values[chosen])

    @property
    def n_directions(self) -> int:
        """Dimension q of the random effect."""
        return len(self.variances)

    def posterior(
        self, children: pd.DataFrame, parents: Codes, n_parents: int
    ) -> tuple[Numbers, Numbers]:
        """Returns, for each parent, (posterior mean of the random effect u given the children,
        Cholesky factor of the posterior covariance). For a parent without children, the posterior
        is the prior.

        `parents` contains the parent index of each of n child rows; u has q dimensions. Shape:
        parents (n,) -> (n_parents, q), (n_parents, q, q).
        """
        q = self.n_directions
        if not q:
            return np.zeros((n_parents, 0)), np.zeros((n_parents, 0, 0))
        projected = (_stacked(self.features, children) - self.mean) @ self.directions
        counts = np.bincount(parents, minlength=n_parents)
        sums = np.stack([np.bincount(parents, c, n_parents) for c in projected.T], axis=1)
        means = sums / np.maximum(counts, 1)[:, None]
        prior = np.diag(self.variances)
        mean, root = np.zeros((n_parents, q)), np.zeros((n_parents, q, q))
        for n in np.unique(counts):
            gain = prior @ np.linalg.inv(prior + self.within / n) if n else np.zeros((q, q))
            covariance = prior - gain @ prior
            covariance = (covariance + covariance.T) / 2 + 1e-9 * np.eye(q)
            at = counts == n
            mean[at], root[at] = means[at] @ gain.T, np.linalg.cholesky(covariance)
        return mean, root

    def draw(
        self,
        children: pd.DataFrame,
        parents: Codes,
        n_parents: int,
        noise: Numbers,
        of: Codes | None = None,
    ) -> Numbers:
        """Returns m draws of the random effect u (of q dimensions) from its posterior given the
        children. Shape: (m, q).

        Args:
            children: n child rows, with the columns that `features` encode.
            parents: Parent index of each child row. Shape: (n,).
            noise: Standard normal numbers, which are transformed into the draws. Shape: (m, q).
            of: Parent of each draw. Shape: (m,). None: one draw for each of n_parents parents.
        """
        mean, root = self.posterior(children, parents, n_parents)
        if of is not None:
            mean, root = mean[of], root[of]
        drawn: Numbers = mean + np.einsum("nij,nj->ni", root, noise)
        return drawn

    def to_json(self) -> dict[str, Any]:
        """Returns the random effect as a JSON document."""
        arrays = ("mean", "directions", "within", "variances")
        return {"features": [vars(feature) for feature in self.features]} | {
            name: getattr(self, name).tolist() for name in arrays
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads the random effect from a JSON document (`to_json`)."""
        features = tuple(
            Feature(each["column"], *(tuple(each[p]) for p in ("knots", "levels", "shares")))
            for each in document["features"]
        )
        q, d = len(document["variances"]), len(document["mean"])
        shapes = {"mean": (d,), "directions": (d, q), "within": (q, q), "variances": (q,)}
        arrays = (np.array(document[name], dtype=np.float64) for name in shapes)
        return cls(features, *map(np.reshape, arrays, shapes.values()))


def _stacked(features: Sequence[Feature], children: pd.DataFrame) -> Numbers:
    parts = [feature.values(children[feature.column]) for feature in features]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(children), 0))


def _components(phi: Numbers, parents: Codes, n_parents: int) -> tuple[Numbers, Numbers]:
    """Returns (covariance W of the features within parents, covariance B between parents). Shape:
    (d, d) each."""
    counts = np.bincount(parents, minlength=n_parents)
    means = np.stack([np.bincount(parents, c, n_parents) for c in phi.T], axis=1) / counts[:, None]
    residual = phi - means[parents]
    within = residual.T @ residual / max(len(phi) - n_parents, 1)
    between = np.cov(means.T) - within * (1.0 / counts).mean()
    return within, np.atleast_2d(between)


def share_between(children: pd.DataFrame, parents: Codes) -> float:
    """Returns how alike the children of one parent are: the share of the variance of n child rows
    that lies between parents, averaged over features. `parents` contains the parent index of each
    child. Shape: (n,)."""
    features = [Feature.fit(children[name]) for name in children.columns]
    phi = _stacked(features, children)
    places = np.unique(parents, return_inverse=True)[1]
    n_parents = int(places.max()) + 1 if len(places) else 0
    if not phi.shape[1] or n_parents < 2 or len(phi) <= n_parents:
        return 0.0
    within, between = _components(phi, places, n_parents)
    total = np.diag(between).clip(min=0.0) + np.diag(within)
    return float((np.diag(between).clip(min=0.0) / np.where(total > 0, total, 1.0)).mean())
