"""Estimators for scikit-learn: an imputer and an outlier detector for tables of mixed types.

    Pipeline([("blanks", TableImputer(preset="fast")), ("model", ...)])

Both accept data frames (pandas, polars, Arrow) with numbers, strings, dates, booleans and
categories, and arrays, whose columns are named x0, x1, ... Cells may be missing. A column of
distinct integers is learned as numbers, not as an identifier, unless the schema names it. Both
estimators pass scikit-learn's `check_estimator`. `import gcvae` does not load this module.
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
from gcvae.schema.columns import DRAW_COLUMN, TableSchema
from gcvae.synthesizer import Synthesizer

AUTO_P_VALUE = 0.01
"""With `contamination="auto"`, rows whose p-value is at most this number are outliers."""
_LEAST_ROWS = 2
_SEEDS = 2**31 - 1


class _TableEstimator(BaseEstimator):
    """Base class of both estimators: fits a model and converts tables of any kind to frames."""

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
        """Returns scikit-learn's tags: missing values, strings and categories are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __getstate__(self) -> Any:
        """Returns the state to pickle, with the model as the bytes of its file.

        The `Synthesizer` itself contains compiled rules, which cannot be pickled.
        """
        state = dict(super().__getstate__())
        return state | {"model_": state["model_"].to_bytes()} if "model_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the estimator from its pickled state."""
        if "model_" in state:
            state = state | {"model_": Synthesizer.from_bytes(state["model_"])}
        super().__setstate__(state)

    def _learn(self, X: Any) -> pd.DataFrame:
        """Fits `model_` to the table and returns the table as a frame."""
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
        """Returns the table as a pandas frame, with columns in the order of the table passed to
        `fit`.

        Args:
            X: The table.
            reset: Whether the call is from `fit`, which sets the names and number of columns.

        Raises:
            ValueError: A column is missing or unknown, or there are too few rows.
            TypeError: X is a sparse matrix.
            TableError: X is a frame whose column names are not strings or not unique.
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
    """Imputes missing cells of a table of mixed types with draws from p(missing | known).

    Known cells are not changed. Cells stay missing in columns that the model does not learn:
    identifiers that are text, and columns in which all cells were missing in `fit`. Each call
    imputes the same rows with the same values.

    Args:
        preset: Name of a preset, a predefined configuration of model and training.
        settings: Settings that override those of the preset, such as `{"max_steps": 200}`.
        schema: Known properties of the columns; all others are inferred from the table.
        n_draws: Number of imputations drawn for each row. A single draw preserves the variance of
            each column. With several draws, a missing number or date becomes the median of its
            draws (the lower of the two middle ones if `n_draws` is even), and any other cell its
            most frequent draw. On average these are closer to the true cells than single draws.
        device: `auto`, `cpu` or `cuda`.
        random_state: Integer seed of the model; None or a NumPy `RandomState` draws a seed.

    Attributes:
        model_: The fitted `Synthesizer`.
        seed_: Seed of the model and of the imputations.
        n_features_in_: Number of columns in the table passed to `fit`.
        feature_names_in_: Names of these columns; absent if `fit` got an array.

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
        """Stores the parameters; `fit` checks them."""
        super().__init__(
            preset=preset,
            settings=settings,
            schema=schema,
            device=device,
            random_state=random_state,
        )
        self.n_draws = n_draws

    def fit(self, X: Any, y: Any = None) -> TableImputer:
        """Trains the model on a table and returns the imputer.

        Args:
            X: Data frame or two-dimensional array of at least two rows, with missing cells.
            y: Ignored; scikit-learn passes it to every estimator.

        Raises:
            ValueError, TypeError: X is not a table, or `n_draws` is not an integer above 0.
            InputError: The schema, a setting or a cell is invalid, as for `Synthesizer.fit`.
        """
        if not isinstance(self.n_draws, Integral) or self.n_draws < 1:
            raise ValueError(f"n_draws is {self.n_draws!r}; it must be a whole number from 1 on")
        self._learn(X)
        return self

    def transform(self, X: Any) -> Any:
        """Returns the rows with missing cells imputed.

        A frame gives a frame of the same library, with the columns in the order of `fit`. An array
        gives an array of the same dtype (`object` for fixed-width strings).

        Raises:
            ValueError, TypeError: X is not a table, or its columns are not those of `fit`.
            InputError: A cell cannot be converted to its column's type.
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
    """Detects rows that are unlike the table by the tail probability of their most unusual cell.

    The score of a row is the logarithm of a p-value (docs/anomalies.md): 1 % of rows
    like those passed to `fit` have a p-value of at most 0.01. The p-value detects artificially
    inserted errors better than the likelihood does. The score of a row does not depend on the other
    rows of the call. Missing cells are integrated out.

    Args:
        preset: Name of a preset that computes p-values: `default` or `fast`.
        settings: Settings that override those of the preset, such as `{"max_steps": 200}`.
        schema: Known properties of the columns; all others are inferred from the table.
        contamination: Share of the rows passed to `fit` that are outliers, above 0 and at most 0.5;
            or "auto", with which every row whose p-value is at most 0.01 is an outlier.
        device: `auto`, `cpu` or `cuda`.
        random_state: Integer seed of the model; None or a NumPy `RandomState` draws a seed.

    Attributes:
        model_: The fitted `Synthesizer`; `model_.log_likelihood(X)` names the unusual cells.
        offset_: Threshold of the scores; rows with a lower score are outliers.
        seed_: Seed of the model and of the scores.
        n_features_in_: Number of columns in the table passed to `fit`.
        feature_names_in_: Names of these columns; absent if `fit` got an array.

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
        """Stores the parameters; `fit` checks them."""
        super().__init__(
            preset=preset,
            settings=settings,
            schema=schema,
            device=device,
            random_state=random_state,
        )
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> AnomalyDetector:
        """Trains the model on a table, sets the threshold `offset_`, and returns the detector.

        Args:
            X: Data frame or two-dimensional array of at least two rows.
            y: Ignored; scikit-learn passes it to every estimator.

        Raises:
            ValueError, TypeError: X is not a table, or `contamination` is out of range.
            InputError: The schema, a setting or a cell is invalid, as for `Synthesizer.fit`; or the
                preset does not compute p-values.
        """
        share = self.contamination
        if share != "auto" and not (isinstance(share, Real) and 0.0 < share <= 0.5):
            raise ValueError(
                f'contamination is {share!r}; it must be "auto", or above 0 and at most 0.5'
            )
        scores = self._scores(self._learn(X))
        # The next larger float, so that a row with exactly this p-value is an outlier too.
        by_p_value = np.nextafter(np.log(AUTO_P_VALUE), 0.0)
        self.offset_ = float(by_p_value if share == "auto" else np.quantile(scores, float(share)))
        return self

    def score_samples(self, X: Any) -> Numbers:
        """Returns the logarithm of each row's p-value: at most 0, lower for more unusual rows.

        A row that is impossible under the model, such as one with an unknown category, scores
        -708.4, the logarithm of the smallest normal double, so that all scores are finite. Shape:
        (n,) for n rows.

        Raises:
            ValueError, TypeError: X is not a table, or its columns are not those of `fit`.
            InputError: A cell cannot be converted to its column's type.
        """
        check_is_fitted(self)
        return self._scores(self._frame(X, reset=False))

    def decision_function(self, X: Any) -> Numbers:
        """Returns `score_samples` minus `offset_`: negative for outliers.

        Shape: (n,). Raises the errors of `score_samples`.
        """
        check_is_fitted(self)
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """Returns -1 for each outlier and 1 for every other row.

        Shape: (n,). Raises the errors of `score_samples`.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _scores(self, frame: pd.DataFrame) -> Numbers:
        p = self.model_.scorer.anomalies(frame, self.seed_)
        return np.log(np.maximum(p, np.finfo(np.float64).tiny))


def _seed_of(random_state: Any) -> int:
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(_SEEDS))


def _with_numbers(schema: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """Returns the schema as JSON, with the kind `integer` added for each column of distinct
    integers that it does not name. Schema inference would take such a column for an identifier,
    which the model does not learn."""
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
    return not any(isinstance(name, str) for name in frame.columns)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis([f"x{j}" for j in range(frame.shape[1])], axis=1)


def _typical(drawn: pd.DataFrame, n_draws: int, index: Any) -> pd.DataFrame:
    """Returns for each cell the lower median of its draws if they are numbers or dates, otherwise
    the most frequent draw. `drawn` has `n_draws` consecutive rows for each row of the table."""
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
    """Returns the most frequent integer of each row; the first one of several that are equally
    frequent. Shape: (n, S) -> (n,)."""
    counts = (codes[:, :, None] == codes[:, None, :]).sum(axis=2)
    return np.take_along_axis(codes, counts.argmax(axis=1)[:, None], axis=1)[:, 0]


def _filled_array(cells: Any, completed: pd.DataFrame) -> Any:
    """Returns a copy of the array with missing cells filled. Fixed-width strings become Python
    objects, because the filled strings may be longer."""
    filled = cells.astype(object) if cells.dtype.kind in "SU" else cells.copy()
    for j, name in enumerate(completed.columns):
        blank = pd.isna(pd.Series(filled[:, j])).to_numpy()
        if blank.any():
            filled[blank, j] = completed[name].to_numpy(dtype=filled.dtype, na_value=np.nan)[blank]
    return filled
