"""The model as estimators of scikit-learn: an imputer and an outlier detector for mixed tables.

    Pipeline([("blanks", TableImputer(preset="fast")), ("model", ...)])

Both take data frames (pandas, polars, Arrow) with numbers, texts, dates, truths and categories, and
arrays, whose columns are called x0, x1, ... Missing values are welcome. A column of numbers is
learned as numbers even where no two are alike, unless the schema names it. Every check of
scikit-learn (`check_estimator`) holds. `import gcvae` does not load this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gcvae.arrays import Numbers
from gcvae.cells.data_frames import FrameKind, data_frame, kind_of, of_kind
from gcvae.sampling.imputation_stream import DRAW_COLUMN
from gcvae.schema.columns import TableSchema
from gcvae.synthesizer import Synthesizer

AUTO_P_VALUE = 0.01
"""Rows of this anomaly or less are outliers where `contamination` is "auto"."""
_LEAST_ROWS = 2
_SEEDS = 2**31 - 1


class _TableEstimator(BaseEstimator):
    """What both estimators share: the fit of a model, and tables of any kind as its frames."""

    model_: Synthesizer
    seed_: int

    def __init__(
        self,
        *,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        schema: TableSchema | Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.schema = schema
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Missing values, texts and categories are read."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __getstate__(self) -> Any:
        """What is pickled: of the model its file, since compiled rules can not be."""
        state = dict(super().__getstate__())
        return state | {"model_": state["model_"].to_bytes()} if "model_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """An estimator of what was pickled."""
        if "model_" in state:
            state = state | {"model_": Synthesizer.from_bytes(state["model_"])}
        super().__setstate__(state)

    def _learn(self, X: Any) -> pd.DataFrame:
        """Fits `model_`, and returns its frame."""
        frame = self._frame(X, reset=True)
        self.seed_ = _seed_of(self.random_state)
        self.model_ = Synthesizer.fit(
            frame,
            schema=_with_numbers(self.schema, frame),
            preset=self.preset,
            settings=self.settings,
            seed=self.seed_,
            device=self.device,
            progress=False,
        )
        return frame

    def _frame(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """The table as the model's frame: its names, in the order of the fit.

        Raises:
            ValueError: Columns are lacking or unknown, or there are too few rows.
            TypeError: It is a sparse matrix.
            TableError: It is a frame whose columns have not one text each as their name.
        """
        least = _LEAST_ROWS if reset else 1
        if not _is_frame(X):
            X = check_array(
                X,
                dtype=None,
                ensure_all_finite="allow-nan",
                ensure_min_samples=least,
                estimator=self,
            )
            validate_data(self, X, reset=reset, skip_check_array=True)
            return _named(pd.DataFrame(X).infer_objects())
        frame = X if isinstance(X, pd.DataFrame) else data_frame(X)
        names = getattr(self, "feature_names_in_", None)
        if not reset and names is not None and set(names) == set(frame.columns):
            frame = frame[list(names)]
        validate_data(self, frame, reset=reset, skip_check_array=True)
        if len(frame) < least:
            raise ValueError(
                f"Found a table with {len(frame)} sample(s) (shape={frame.shape}) while a minimum "
                f"of {least} is required by {type(self).__name__}."
            )
        return frame if hasattr(self, "feature_names_in_") else _named(frame)


class TableImputer(OneToOneFeatureMixin, TransformerMixin, _TableEstimator):
    """Fills missing values from p(missing | known), column kinds mixed.

    Known cells stay as they are. Of a column that the model does not learn (identifiers of text; a
    column without any known cell) the blanks stay. The same rows are filled alike in each call.

    Args:
        preset: Name of a preset.
        settings: Settings in the place of the preset's own, such as `{"max_steps": 200}`.
        schema: What is known of the columns; inference completes it.
        n_draws: Completions that are drawn of each row. 1 keeps the spread of the table. With more,
            numbers and dates get the median of the draws (of an even number the lower of the two in
            the middle), others the most frequent: nearer to the truth, cell by cell.
        device: `auto`, `cpu` or `cuda`.
        random_state: A whole number is the model's seed.

    Attributes:
        model_: The fitted `Synthesizer`.
        seed_: Its seed, and that of the draws.
        n_features_in_: Number of columns.
        feature_names_in_: Their names, if the table of `fit` was a frame.

    Examples:
        >>> table = pd.DataFrame({"size": [2.5, None, 4.0] * 12, "colour": ["red", "blue"] * 18})
        >>> imputer = TableImputer(preset="fast", settings={"max_steps": 20}, random_state=1)
        >>> int(imputer.fit_transform(table).isna().sum().sum())
        0
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        schema: TableSchema | Mapping[str, Any] | None = None,
        n_draws: int = 1,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        """Keeps the parameters."""
        super().__init__(
            preset=preset,
            settings=settings,
            schema=schema,
            device=device,
            random_state=random_state,
        )
        self.n_draws = n_draws

    def fit(self, X: Any, y: Any = None) -> TableImputer:
        """Learns the table.

        Args:
            X: Rows with blanks, at least two.
            y: Has no part in it.

        Raises:
            ValueError, TypeError: It is no table, or `n_draws` is no whole number from 1 on.
            InputError: As `Synthesizer.fit`.
        """
        if not isinstance(self.n_draws, Integral) or self.n_draws < 1:
            raise ValueError(f"n_draws is {self.n_draws!r}; it must be a whole number from 1 on")
        self._learn(X)
        return self

    def transform(self, X: Any) -> Any:
        """The rows with their blanks filled: a frame of the same kind, or an array of its dtype.

        Columns of a frame may come in any order, and return in the order of the fit.

        Raises:
            ValueError, TypeError: It has other columns than the table of `fit`, or is no table.
            InputError: A cell can not be read.
        """
        check_is_fitted(self)
        frame = self._frame(X, reset=False)
        n_draws = int(self.n_draws)
        completed = self.model_.impute(frame, draws=n_draws, seed=self.seed_)
        if n_draws > 1:
            completed = _typical(completed.drop(columns=DRAW_COLUMN), n_draws, frame.index)
        if isinstance(X, pd.DataFrame):
            return completed.set_axis(list(X.columns), axis=1) if _is_numbered(X) else completed
        if _is_frame(X):
            return of_kind(completed, kind_of(X))
        return _filled_array(check_array(X, dtype=None, ensure_all_finite=False), completed)


class AnomalyDetector(OutlierMixin, _TableEstimator):
    """Finds rows that are unlike the table: their oddest cell has a small tail probability.

    Scores are logarithms of the `anomaly` of a row (docs/anomalies.md), a p-value: of 100 rows like
    those of the fit, one has 0.01 or less. It orders planted errors better than the likelihood does
    (docs/scikit-learn.md). A row's score depends on its cells alone, and missing values are
    integrated out.

    Args:
        preset: Name of a preset with anomalies: `default`, `fast`.
        settings: Settings in the place of the preset's own, such as `{"max_steps": 200}`.
        schema: What is known of the columns; inference completes it.
        contamination: The share of the fit's rows that are outliers, above 0 and at most 0.5; or
            "auto": those whose p-value is at most 0.01.
        device: `auto`, `cpu` or `cuda`.
        random_state: A whole number is the model's seed.

    Attributes:
        model_: The fitted `Synthesizer`; `model_.log_likelihood(X)` names the odd cells.
        offset_: Rows whose score is lower are outliers.
        seed_: The seed of the model, and of the scores.
        n_features_in_: Number of columns.
        feature_names_in_: Their names, if the table of `fit` was a frame.

    Examples:
        >>> table = pd.DataFrame({"size": [2.5, 3.1, 2.7, 4.0] * 9, "colour": ["red", "blue"] * 18})
        >>> detector = AnomalyDetector(preset="fast", settings={"max_steps": 20}, random_state=1)
        >>> odd = pd.DataFrame({"size": [3.1, 9000.0], "colour": ["blue", "red"]})
        >>> detector.fit(table).predict(odd)
        array([ 1, -1])
    """

    offset_: float

    def __init__(
        self,
        *,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        schema: TableSchema | Mapping[str, Any] | None = None,
        contamination: float | str = "auto",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        """Keeps the parameters."""
        super().__init__(
            preset=preset,
            settings=settings,
            schema=schema,
            device=device,
            random_state=random_state,
        )
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> AnomalyDetector:
        """Learns the table.

        Args:
            X: Rows, at least two.
            y: Has no part in it.

        Raises:
            ValueError, TypeError: It is no table, or `contamination` is out of range.
            InputError: As `Synthesizer.fit`; the preset has no anomalies.
        """
        share = self.contamination
        if share != "auto" and not (isinstance(share, Real) and 0.0 < share <= 0.5):
            raise ValueError(
                f'contamination is {share!r}; it must be "auto", or above 0 and at most 0.5'
            )
        scores = self._scores(self._learn(X))
        # The next number, so that a row of just this p-value is an outlier, too.
        by_p_value = np.nextafter(np.log(AUTO_P_VALUE), 0.0)
        self.offset_ = float(by_p_value if share == "auto" else np.quantile(scores, float(share)))
        return self

    def score_samples(self, X: Any) -> Numbers:
        """log p of each row, 0 at most, higher for more usual rows. Shape: (n,).

        Of a row that the model rules out, such as one with an unknown level, it is -708.4: the
        logarithm of the smallest double, so that scores are finite.

        Raises:
            ValueError, TypeError: It has other columns than the table of `fit`, or is no table.
            InputError: A cell can not be read.
        """
        check_is_fitted(self)
        return self._scores(self._frame(X, reset=False))

    def decision_function(self, X: Any) -> Numbers:
        """`score_samples` less `offset_`: below 0 are outliers. Raises: as `score_samples`."""
        check_is_fitted(self)
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """-1 of outliers, 1 of others. Raises: as `score_samples`."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _scores(self, frame: pd.DataFrame) -> Numbers:
        p = self.model_.scorer.anomalies(frame, self.seed_)
        return np.log(np.maximum(p, np.finfo(np.float64).tiny))


def _seed_of(random_state: Any) -> int:
    """A whole number is the seed; of None or a generator, one is drawn."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(_SEEDS))


def _with_numbers(schema: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """The schema, in which different whole numbers of a column that it does not name are numbers.

    Inference takes them for identifiers, which no model learns.
    """
    document = dict(schema.to_json() if isinstance(schema, TableSchema) else schema or {})
    columns = list(document.get("columns", ()))
    named = {column["name"] for column in columns}
    for name, cells in frame.items():
        if name in named or not pd.api.types.is_any_real_numeric_dtype(cells.dtype):
            continue
        known = cells.dropna().to_numpy(dtype=np.float64)
        are_different = 0 < len(known) == len(np.unique(known))
        if are_different and (known == np.floor(known)).all():
            columns.append({"name": name, "kind": "integer"})
    return document | {"columns": columns}


def _is_frame(table: Any) -> bool:
    return isinstance(table, pd.DataFrame) or kind_of(table) is not FrameKind.PANDAS


def _is_numbered(frame: pd.DataFrame) -> bool:
    """Whether no column has a text as its name: scikit-learn then counts them, and so do we."""
    return not any(isinstance(name, str) for name in frame.columns)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """With the names x0, x1, ..."""
    return frame.set_axis([f"x{j}" for j in range(frame.shape[1])], axis=1)


def _typical(drawn: pd.DataFrame, n_draws: int, index: Any) -> pd.DataFrame:
    """Of each row's draws, column by column, the one in the middle or the most frequent."""
    first = np.arange(len(index)) * n_draws
    columns = {}
    for name, cells in drawn.items():
        dtype = cells.dtype
        is_ordered = pd.api.types.is_datetime64_any_dtype(dtype) or (
            pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        )
        codes = pd.factorize(cells, sort=is_ordered)[0].reshape(-1, n_draws)
        wanted = np.sort(codes, axis=1)[:, (n_draws - 1) // 2] if is_ordered else _modes(codes)
        columns[name] = cells.iloc[first + (codes == wanted[:, None]).argmax(axis=1)].array
    return pd.DataFrame(columns, index=index)


def _modes(codes: Any) -> Any:
    """The most frequent code of each row, the first drawn of several. Shape: (n, S) -> (n,)."""
    counts = (codes[:, :, None] == codes[:, None, :]).sum(axis=2)
    return np.take_along_axis(codes, counts.argmax(axis=1)[:, None], axis=1)[:, 0]


def _filled_array(cells: Any, completed: pd.DataFrame) -> Any:
    """The array with its blanks filled; texts of fixed width become objects."""
    filled = cells.astype(object) if cells.dtype.kind in "SU" else cells.copy()
    for j, name in enumerate(completed.columns):
        blank = pd.isna(pd.Series(filled[:, j])).to_numpy()
        if blank.any():
            filled[blank, j] = completed[name].to_numpy(dtype=filled.dtype, na_value=np.nan)[blank]
    return filled
