"""The `Synthesizer`, the model class that users of the library import."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.artifact.checks import artifact_errors
from gcvae.artifact.file import read_artifact, unpack_tensors, write_artifact
from gcvae.artifact.versions import check_version
from gcvae.cells.data_frames import FrameKind, frame_kind, kind_of, of_kind, with_index_of
from gcvae.cells.values import parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.identifiers import WiderIdentifiersWarning
from gcvae.codec.table_codec import TableCodec
from gcvae.dependence.map_kinds import DependencyMaps, check_map_arguments
from gcvae.dependence.maps import DependencyMap
from gcvae.errors import ArtifactError, Problem, SettingError
from gcvae.evaluation.report.documents import TableReport
from gcvae.figures.html_tables import facts_table
from gcvae.files.frame_dtypes import with_dtypes
from gcvae.files.row_documents import Cell, pointing, row_to_frame
from gcvae.files.table_reader import Rows, given_frame, parsed_chunks
from gcvae.latent.manifold import Manifold, manifold_of
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.numerics.machine import device_named, refuse_rows_beyond_memory
from gcvae.numerics.seeds import fresh_seed
from gcvae.numerics.whole_numbers import whole_number
from gcvae.sampling.conditions import refuse_beyond_limits
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.sampling.filled_columns import filled_columns
from gcvae.sampling.imputation import impute_blocks
from gcvae.sampling.known_cells import KnownRows
from gcvae.sampling.samplers import Sampler, free_blocks, make_sampler
from gcvae.schema.columns import TableSchema
from gcvae.scoring.blank_references import BlankReferences
from gcvae.scoring.row_scores import RowScorer
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.scoring_setting import FULL, not_looser, require_scores, stricter
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.fitting import fit_prepared
from gcvae.training.model_file import ModelParts
from gcvae.training.preparation import Context, prepared_table
from gcvae.training.progress import FitProgress, Progress, reported
from gcvae.training.settings import SettledConfig, configure


class _FitOfBoth:
    """Descriptor that makes `fit` callable on the class and on an instance.

    `Synthesizer.fit(table, ...)` returns a new model. `Synthesizer(...).fit(table)` trains the
    instance with the arguments of its constructor and returns it.
    """

    def __init__(self, of_class: classmethod[Any, Any, Any]) -> None:
        self.of_class = of_class
        self.__doc__ = of_class.__doc__

    def __get__(self, instance: Synthesizer | None, owner: type[Synthesizer]) -> Any:
        return self.of_class.__get__(None, owner) if instance is None else instance._learn


class Synthesizer:
    """Model of a table: generates rows, scores rows, imputes cells and maps dependencies.

    `Synthesizer.fit(table, preset="fast")` and `Synthesizer(preset="fast").fit(table)` give the
    same model. The constructor only stores its arguments; call `fit` before any other method.

    Attributes:
        arguments: Arguments of the constructor by name, unchanged; `arguments["schema"]` contains
            only what the user specified.
        schema: The table's schema, including all properties that were inferred from the table.
        codec: Encoder of rows as the model's input, and decoder of its output.
        model: The neural network.
        config: Resolved settings: those that depend on the table's size have their values.
        context: Encoder of the context (data on which each row depends, such as its parent row) of
            a model p(row | context); None for other models.
        preset: Name of the preset whose settings were used in training.
        training_record: Record of the training as JSON: settings, history of the log-likelihood
            bound, seconds, device. Nearly empty after loading a minimal file (`to_bytes`).
        scoring: What the model reveals about rows: their scores (`full`), only whether a row is
            rare (`flag`), or nothing (`off`).
        table_notes: Data-quality warnings about the training table (docs/tables.md). They quote
            cells, so they are not saved: a model that was loaded from a file has none.

    Examples:
        >>> table = pd.DataFrame({"size": [2.5, 3.1, 2.7, 4.0] * 9, "colour": ["red", "blue"] * 18})
        >>> model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 20}, seed=1)
        >>> model.sample(5, seed=2).columns.to_list()
        ['size', 'colour']
        >>> model.sample(3, seed=2, given={"colour": "red"})["colour"].to_list()
        ['red', 'red', 'red']
        >>> model.log_likelihood(table.head(2)).columns.to_list()[:3]
        ['log_likelihood', 'standard_error', 'percentile']
        >>> model.impute(pd.DataFrame({"size": [2.5], "colour": [None]}))["colour"].isna().sum()
        np.int64(0)
        >>> model.dependencies("total").columns
        ('size', 'colour')
    """

    schema: TableSchema
    codec: TableCodec
    model: GenerativeModel
    config: SettledConfig
    preset: str
    training_record: dict[str, Any]
    context: ContextCodec | None
    scoring: str
    table_notes: tuple[str, ...]

    def __init__(
        self,
        *,
        schema: TableSchema | Mapping[str, Any] | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Callable[[Progress], None] | bool | None = None,
    ) -> None:
        """Stores the arguments for `fit`; `Synthesizer.fit` describes them."""
        self.arguments: dict[str, Any] = {
            "schema": schema,
            "preset": preset,
            "settings": settings,
            "seed": seed,
            "device": device,
            "progress": progress,
        }

    def _set_parts(self, parts: ModelParts) -> Synthesizer:
        self.schema, self.codec, self.model = parts.schema, parts.codec, parts.model.eval()
        self.config, self.preset, self.context = parts.config, parts.preset, parts.context
        self.training_record = dict(parts.training_record)
        self.scoring, self.table_notes = parts.scoring, parts.table_notes
        acceptance = Acceptance.of_record(self.training_record)
        self._constrained = ConstrainedModel(self.model, self.codec, parts.hard_rules, acceptance)
        self._of_blanks = BlankReferences(self._constrained)
        self._maps = DependencyMaps(self._constrained, parts.data_map, self._values)
        return self

    if not TYPE_CHECKING:  # a type checker must still report unknown attributes

        def __getattr__(self, name: str) -> Any:
            """Raises an AttributeError, which names `fit` if the synthesizer is not fitted yet."""
            if "codec" not in vars(self) and not name.startswith("__"):
                what = "this Synthesizer has learned no table yet; .fit(table) is to come first"
                raise AttributeError(f"{name}: {what}", name=name, obj=self)
            raise AttributeError(f"a Synthesizer has no {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        """Returns a one-line description."""
        return f"<Synthesizer: {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        return facts_table("Synthesizer", self._facts())

    def _facts(self) -> dict[str, str]:
        if "codec" not in vars(self):
            return {"preset": f"preset {self.arguments['preset']}", "state": "not fitted yet"}
        record, rules = self.training_record, self.training_record.get("rules")
        n_modelled = sum(column.is_modelled for column in self.schema)
        facts = {
            "preset": f"preset {self.preset}",
            "columns": f"{len(self.schema)} columns ({n_modelled} modelled)",
        }
        if record.get("is_minimal"):
            facts["training"] = "minimal: what is known of the training was left out"
        else:
            facts["rows"] = f"trained on {record['rows']:,} rows"
            bound = f"held-out log-likelihood {record['bound_held_out']:.2f} nats per row"
            facts["held-out log-likelihood"] = bound
        if rules:
            facts["rules"] = f"{len(rules)} rule{'s' * (len(rules) > 1)} kept"
        if self.table_notes:  # they quote cells, so only their number is shown
            facts["table"] = f"notes on the table: {len(self.table_notes)} (table_notes)"
        return facts

    @classmethod
    def fit(
        cls,
        table: Rows,
        *,
        schema: TableSchema | Mapping[str, Any] | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Callable[[Progress], None] | bool | None = None,
        checkpoints: CheckpointStore | None = None,
        context: Context | None = None,
        held_out: Mask | None = None,
    ) -> Synthesizer:
        """Trains a model on a table.

        Args:
            table: A data frame (pandas, polars or Arrow), whose cells may all be text, as returned
                by `read_table`; or a path, an open file or a TableReader, whose table may be larger
                than memory. Equal rows give equal models in any of these forms.
            schema: Known properties of the columns; all others are inferred from the whole table.
            preset: Name of a preset, a predefined configuration of model and training.
            settings: Settings that override those of the preset (fields of `TrainingConfig`).
            seed: Seed of the random generator; equal seeds give equal models on the CPU.
            device: `auto` (CUDA if there is one), `cpu` or `cuda`.
            progress: True shows a progress bar, False none, None one in terminals and notebooks
                only. Or a callback, which gets a `Progress` about twice a second; its `fraction`
                never decreases and ends at 1. Raise CancelledError in it to stop training.
            checkpoints: Store for checkpoints, from which training resumes; None saves none.
            context: Values given for each row. The model is then p(row | context), as for the rows
                of a child table in a database, and generates rows only with `sample_given`. None
                for an unconditional model.
            held_out: Mask of the n rows of the table: True for rows that are not trained on, but
                decide when training stops. None holds out a random share (`held_out_share`).
                Shape: (n,).

        Raises:
            TableError: No column of the table can be modelled.
            SchemaError: The schema contradicts the table, a row of the table violates a hard rule,
                or the model cannot generate rows that satisfy a hard rule.
            HardRuleError: Too few rows of the trained model satisfy the hard rules.
            SettingError: The preset, a setting or the device is unknown or out of range.
            DivergedError: The training loss is no longer finite.
            OSError: The disk has no space for temporary copies of the columns of a file.
        """
        asked = cls(
            schema=schema,
            preset=preset,
            settings=settings,
            seed=seed,
            device=device,
            progress=progress,
        )
        return asked._learn(table, checkpoints=checkpoints, context=context, held_out=held_out)

    if not TYPE_CHECKING:
        fit = _FitOfBoth(fit)

    def _learn(
        self,
        table: Rows,
        *,
        checkpoints: CheckpointStore | None = None,
        context: Context | None = None,
        held_out: Mask | None = None,
    ) -> Synthesizer:
        """Trains this synthesizer with the arguments of its constructor, and returns it. A
        previously fitted model is replaced only if training succeeds."""
        schema, preset, settings, seed, device, progress = self.arguments.values()
        config = configure(preset, settings)
        place = device_named(device)
        with reported(progress) as report:
            told = FitProgress(report)
            asked = table, schema, config, told, seed, checkpoints, context, held_out
            with prepared_table(*asked) as prepared:
                parts = fit_prepared(prepared, preset, config, told, seed=seed, device=place)
            told.end()
        record = parts.training_record | {"frame": str(kind_of(table))}
        return self._set_parts(replace(parts, training_record=record))

    def sample(
        self,
        rows: int | None = None,
        seed: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        given_rows: Rows | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
        frames: str | None = None,
    ) -> Any:
        """Returns synthetic rows that satisfy the given conditions and the schema's hard rules.

        Columns have the dtypes of the training frame, and cells of its string columns are written
        in the same format. If the model was trained on a file or on text from `read_table`, columns
        have the dtypes of `parse_table`. Warns if generated identifiers have more digits than those
        of the table (`notes`).

        Args:
            rows: Number of rows. Default: one for each row of `given_rows`.
            seed: Seed; equal seeds give equal rows. None draws a seed, which a pandas result stores
                in `attrs["seed"]`.
            given: Conditions by column, as for `sampler`.
            given_rows: Known cells of single rows, as for `sampler`; the result has the index of a
                pandas frame.
            distribution: Shares of the levels of one column, as for `sampler`.
            frames: Library of the returned frame: `pandas`, `polars` or `arrow`. Default: that of
                the training frame, pandas for files.

        Returns:
            A frame with the columns of the schema. With conditions, `attrs` of a pandas frame also
            contains their estimated probability and the effective sample size.

        Raises:
            SettingError: `rows` is not a whole number, or the rows need more memory than there is.
            HardRuleError: Too few of the model's rows satisfy the hard rules.
            ConditionError: A condition is malformed or too improbable, as for `sampler`.
        """
        index = given_rows.index if isinstance(given_rows, pd.DataFrame) else None
        if given_rows is not None:
            given_rows = given_frame(given_rows)
            rows = len(given_rows) if rows is None else rows
        if rows is None:
            raise SettingError("rows is not given; only given_rows stands in for it")
        for note in self.notes(whole_number("rows", rows, 0)):
            warnings.warn(note, WiderIdentifiersWarning, stacklevel=2)
        kind = frame_kind(frames or self.training_record.get("frame", FrameKind.PANDAS))
        seed = fresh_seed() if seed is None else seed
        conditions = {"given": given, "given_rows": given_rows, "distribution": distribution}
        sampler = self._sampler_of(conditions, seed)
        blocks = self._blocks(rows, seed, sampler, None)
        first = next(blocks)
        refuse_rows_beyond_memory(rows, first)
        drawn = pd.concat([first, *blocks], ignore_index=True)
        drawn.attrs |= {} if sampler is None else sampler.summary(rows)
        if index is not None and len(index) == len(drawn):
            drawn.index = index
        return of_kind(drawn, kind)

    def sample_given(self, context: pd.DataFrame, seed: int, first_row: int = 0) -> pd.DataFrame:
        """Generates one row from p(row | context) for each row of `context`, in the same order.

        Args:
            context: Frame with the context columns of training, converted to their dtypes.
            seed: Seed; equal seeds and contexts give equal rows.
            first_row: Number of the first row; synthetic identifiers are derived from row numbers.

        Raises:
            HardRuleError: Too few of the model's rows satisfy the hard rules.
        """
        assert self.context is not None, "the model is conditional"
        generator = generator_for(seed, "sample given", first_row)
        rows = self._constrained.draw_given(self.context.encode(context), generator)
        return self.codec.decode(rows, first_row, seed)

    def impute_given(
        self,
        typed: pd.DataFrame,
        context: Tensor | None,
        missing: Mapping[str, Mask],
        seed: int,
    ) -> pd.DataFrame:
        """Returns rows with their unknown cells drawn from p(unknown | known, context).

        Args:
            typed: The n rows, with all modelled columns in the schema's dtypes.
            context: Encoded context of each row, as `self.context.encode` returns it; None for an
                unconditional model. Shape: (n, 2 C) for C columns, each of which is encoded by an
                integer code and a number.
            missing: Masks by column of the cells that are known to be missing, and stay missing;
                the other missing cells are unknown. Shape: (n,) each.
            seed: Seed of the random generator.
        """
        kept = filled_columns(self.schema, None, None).kept
        known = KnownRows.with_blanks(typed, self._constrained, kept, context, missing)
        blocks = (
            known.complete(number, 1, generator_for(seed, "impute", number), seed)[0]
            for number in range(known.n_blocks)
        )
        return pd.concat([typed.iloc[:0], *blocks], ignore_index=True)

    def notes(self, rows: int) -> list[str]:
        """Returns warnings about a sample of `rows` rows: one for each identifier column whose
        generated values need more digits than the table's, because too few unused values are
        left."""
        return self.codec.notes(rows)

    def sampler(
        self,
        seed: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        given_rows: Rows | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Sampler:
        """Returns a sampler, which generates rows that satisfy conditions.

        A pilot run first estimates the probability of the conditions under the model.

        Args:
            seed: Seed of all draws, including those of the pilot run; None draws a seed.
            given: Condition on all rows, by column: a value, a list of allowed values, {"min": ...,
                "max": ...}, or None for a missing cell.
            given_rows: Table of known cells; the sampler generates the remaining cells of each of
                its rows once. Cannot be combined with another condition.
            distribution: {column: {level: share}}, the target shares of one column's levels.

        Raises:
            ConditionError: A condition is malformed, names an unknown column or level, or is too
                improbable under the model.
        """
        known = None if given_rows is None else given_frame(given_rows)
        asked: dict[str, Any] = {"given": given, "given_rows": known, "distribution": distribution}
        seed = fresh_seed() if seed is None else seed
        # The probability of a condition on all cells of a row would reveal the row's score.
        return make_sampler(
            self._constrained, seed, reveals_probability=self.scoring == FULL, **asked
        )

    def impute(
        self,
        frame: Rows,
        draws: int = 1,
        seed: int = 0,
        *,
        columns: Sequence[str] | None = None,
        keep_missing: Sequence[str] | None = None,
    ) -> Any:
        """Returns the rows with missing cells drawn from p(missing | known); known cells are not
        changed.

        With several draws, the result has one row for each draw of each row, and a first column
        `draw` with the number of the draw. The result is a frame of the same library (pandas,
        polars, Arrow) with the same dtypes and order of rows, and for pandas with the same index.

        Args:
            frame: Rows with columns of the training table; all cells of an absent column count as
                missing.
            draws: Number of imputations of each row.
            seed: Seed of the random generator; equal seeds give a cell the same imputation for any
                choice of `columns`.
            columns: Columns to impute. Default: all but `keep_missing`. Missing cells of the
                remaining columns stay missing and are integrated out.
            keep_missing: Columns in which a missing cell is information, such as "no second
                applicant": it stays missing, and other cells are drawn given that it is missing.
                Default: columns with `missing.is_value` in the schema that `columns` does not name.
        """
        blocks = self.impute_blocks(frame, draws, seed, columns=columns, keep_missing=keep_missing)
        return of_kind(pd.concat(blocks), kind_of(frame))

    def impute_blocks(
        self,
        rows: Rows,
        draws: int = 1,
        seed: int = 0,
        among: range | None = None,
        *,
        columns: Sequence[str] | None = None,
        keep_missing: Sequence[str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yields the rows that `impute` returns as consecutive pandas frames, in bounded memory.

        Args:
            rows: Rows, as for `impute`; or a file of any size.
            draws: Number of imputations of each row.
            seed: Seed of the random generator.
            among: Range of the row indices to impute, which begins at a multiple of 4,096
                (`CHUNK_ROWS`); None imputes all rows.
            columns: Columns to impute, as for `impute`.
            keep_missing: Columns whose missing cells are kept, as for `impute`.
        """
        blocks = impute_blocks(self._constrained, rows, draws, seed, among, columns, keep_missing)
        return with_index_of(blocks, rows, draws, 0 if among is None else among.start)

    def sample_blocks(
        self, rows: int, seed: int | None = None, *, among: range | None = None, **conditions: Any
    ) -> Iterator[pd.DataFrame]:
        """Yields the rows that `sample` returns as consecutive pandas frames, in constant memory.
        The first n rows of a sample do not depend on `rows`, the length of the sample.

        Args:
            rows: Number of rows of the complete sample.
            seed: Seed of the complete sample, also stored in `attrs["seed"]` of each frame; None
                draws one.
            among: Range of the row indices to generate, which begins at a multiple of 4,096
                (`SAMPLE_BLOCK_ROWS`); None generates all rows. Several processes with the same seed
                can each generate a part of one sample.
            conditions: `given`, `given_rows` and `distribution`, as for `sampler`.

        Raises:
            HardRuleError: Too few of the model's rows satisfy the hard rules.
            ConditionError: A condition is malformed or too improbable, as for `sampler`.
        """
        seed = fresh_seed() if seed is None else seed
        yield from self._blocks(rows, seed, self._sampler_of(conditions, seed), among)

    def _sampler_of(self, conditions: Mapping[str, Any], seed: int) -> Sampler | None:
        is_free = all(condition is None for condition in conditions.values())
        return None if is_free else self.sampler(seed, **conditions)

    def _blocks(
        self, rows: int, seed: int, sampler: Sampler | None, among: range | None
    ) -> Iterator[pd.DataFrame]:
        """Yields the frames that `sample_blocks` returns.

        Args:
            rows: Number of rows of the complete sample.
            seed: Seed of the complete sample.
            sampler: Generator of rows under conditions; None generates rows without a condition.
            among: Range of the row indices to generate, as in `sample_blocks`; None for all rows.
        """
        if self.context is not None:
            message = "the model draws rows that are given a context"
            raise SettingError(Problem(message, expected="`sample_given`, with the context"))
        rows = whole_number("rows", rows, 0)
        free = free_blocks(self._constrained, rows, seed, among)
        for block in free if sampler is None else sampler.blocks(rows, among):
            block.attrs["seed"] = seed
            yield with_dtypes(block, self.schema)

    def _values(self, rows: int, seed: int) -> pd.DataFrame:
        """Returns synthetic rows with the library's own dtypes, not the training frame's."""
        return pd.concat(free_blocks(self._constrained, rows, seed, None), ignore_index=True)

    def log_likelihood(
        self,
        frame: Rows,
        draws: int | None = None,
        seed: int = 0,
        *,
        tolerance: float | None = None,
        measure: str = "density",
        score_missingness: bool = False,
    ) -> Any:
        """Returns the score of each row: an importance-weighted lower bound on log p(row), in nats.

        A discrete column contributes its log probability, a continuous one its log density per unit
        of the column (per day for dates). Missing cells are integrated out. A row scores -inf if it
        contains a level that is not in the schema, or different values in two columns that have
        equal values in every training row.

        With hard rules, the score is that of the distribution that `sample` draws from: -inf for a
        row that violates a hard rule, and -log(acceptance) is added to every other score, where
        acceptance is the share of generated rows that satisfy all hard rules. Scores of rows with
        missing cells are then approximate, because missing cells violate no rule.

        Args:
            frame: Rows with columns of the training table; all cells of an absent column count as
                missing.
            draws: Number of draws of the latent vector z for each row. Default: as many as
                `tolerance` requires.
            seed: Seed of the draws.
            tolerance: Target standard error of a score, in nats. Default: 0.1.
            measure: What is scored of a continuous value: its density per unit (`density`), or the
                probability of all numbers that round to it (`rounding_cell`) or of its quantile bin
                (`pmf`).
            score_missingness: Whether a missing cell contributes its probability of being missing
                instead of being integrated out.

        Returns:
            One row per row of `frame`, in a frame of the same library: `log_likelihood`, its
            `standard_error`, the `percentile` (0 to 100) of the row among the held-out rows of
            training (for a row with missing cells: among generated rows with the same cells
            missing), and `contributions.<column>`, which add up to the score. Models with an
            autoregressive decoder add `anomaly` and `odd_cell` (docs/anomalies.md). If the
            model's `scoring` is `flag`, the only column is `is_rare`.

        Raises:
            TableError: The frame has no modelled column, or a cell cannot be parsed.
            SettingError: An option is out of range, or a model with `scoring` `flag` refuses it.
            ScoringError: The model's `scoring` is `off`.
        """
        options = ScoreOptions(draws, seed, measure, score_missingness, tolerance)
        blocks = list(with_index_of(self.scorer.blocks(frame, options), frame))
        scores = pd.concat(blocks) if blocks else self.scorer.empty()
        return of_kind(scores, kind_of(frame))

    def score_blocks(
        self, rows: Rows, draws: int | None = None, seed: int = 0, **options: Any
    ) -> Iterator[pd.DataFrame]:
        """Yields the rows that `log_likelihood` returns as consecutive pandas frames, in constant
        memory; `rows` may be a file of any size. The options are those of `log_likelihood`."""
        return with_index_of(self.scorer.blocks(rows, ScoreOptions(draws, seed, **options)), rows)

    @property
    def scorer(self) -> RowScorer:
        """Scorer that computes log-likelihoods and anomaly p-values of rows. Raises ScoringError if
        `scoring` is `off`."""
        require_scores(self.scoring)
        known = self.training_record.get("held_out_scores"), self._of_blanks
        return RowScorer(self.schema, self._constrained, *known, self.scoring)

    def dependencies(
        self,
        kind: str = "expected",
        seed: int = 0,
        *,
        row: Mapping[str, Cell] | None = None,
        z: Sequence[float] | None = None,
    ) -> DependencyMap:
        """Returns a map of pairwise dependence: Kendall's tau and an unsigned measure for each pair
        of columns.

        Args:
            kind: `total` (dependence in synthetic rows), `data` (in the training table),
                `difference` (total minus data), `expected` (the decoder's copula averaged over z),
                or `local` (the decoder's copula for one row or z). See docs/dependencies.md.
            seed: Seed of the random generator; equal seeds give equal maps.
            row: Cells by column, for the `local` map, which is computed at this row's posterior.
                Columns that are absent or None are integrated out.
            z: Latent vector, for the `local` map at this vector; an alternative to `row`.

        Raises:
            SettingError: The kind is unknown, `local` comes without `row` or `z`, or another kind
                comes with one.
            UnknownColumnError: `row` names a column that is not in the table.
            TableError: A cell of `row` cannot be parsed, or the row has probability 0.
            InputError: The number of components of `z` is not that of the latent space.
            HardRuleError: Too few of the model's rows satisfy the hard rules.
            LeftOutError: The kind is `data` or `difference`, and the model's file is minimal.
        """
        check_map_arguments(kind, row is not None, z is not None)
        if row is not None:
            with pointing("/row", is_list=False):
                typed = parse_table(row_to_frame(row, self.schema), self.schema)
            refuse_beyond_limits(typed, self.codec)
            return self._maps.at_row(self.codec.encode(typed, blanks_unknown=True), seed)
        return self._maps.of_kind(kind, seed) if z is None else self._maps.at_latent(z)

    def report(self, real: Rows, holdout: Rows | None = None, **options: Any) -> TableReport:
        """Returns a report on the fidelity, utility and privacy of the model's synthetic rows.

        Args:
            real: The training table, in its original order.
            holdout: Real rows of the same source that were not used in training. Default: the rows
                that training set aside (`report_share`), if any.
            options: `synthetic` (a table to judge instead of newly generated rows), `seed`,
                `targets` (columns to predict) and `progress`, as for `make_report`.

        Raises:
            TableError: A table cannot be read, lacks a column of the model, or has too few rows.
            UnknownColumnError: A table or `targets` names a column that is not in the model.
        """
        # SciPy's statistics take a second to load.
        from gcvae.training.reporting.model_report import make_report

        return make_report(self, real, holdout, **options)

    def encode(self, frame: Rows) -> Any:
        """Returns the mean and standard deviation of q(z | x), the encoder's posterior, of rows.

        The result is a frame of the same library with one row per input row and, for K latent
        dimensions, the columns `mean_1` to `mean_K` and `standard_deviation_1` to
        `standard_deviation_K`. Missing cells and cells of absent columns count as unknown.

        Raises:
            TableError: The frame has no modelled column, or a cell cannot be parsed.
        """
        return of_kind(pd.concat(self.encode_blocks(frame)), kind_of(frame))

    def encode_blocks(self, rows: Rows, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields the rows that `encode` returns as consecutive pandas frames, in constant memory.

        Args:
            rows: Rows, as for `encode`; or a file of any size.
            among: Range of the row indices to encode, which begins at a multiple of 4,096
                (`CHUNK_ROWS`); None encodes all rows.
        """
        blocks = (self._encoding(typed) for _, typed in parsed_chunks(rows, self.schema, among))
        return with_index_of(blocks, rows, first_row=0 if among is None else among.start)

    def _encoding(self, typed: pd.DataFrame) -> pd.DataFrame:
        """Returns mean and standard deviation of q(z | x), in units of z, of typed rows.

        Source: Eqs. (vae3) and (vae4).
        """
        with torch.no_grad():
            eta, log_tau = self.model.encoder(self.codec.encode(typed, blanks_unknown=True))
        numbers = torch.cat([eta, log_tau.exp()], dim=1).double().numpy()
        dimensions = range(1, eta.shape[1] + 1)
        kinds = "mean", "standard_deviation"
        return pd.DataFrame(numbers, columns=[f"{kind}_{k}" for kind in kinds for k in dimensions])

    def manifold(self, n_steps: int = 15) -> Manifold:
        """Returns each column's distribution given z, on a grid of quantiles of the two-dimensional
        prior.

        Args:
            n_steps: Number of quantiles for each dimension, 2 to 50.

        Raises:
            InputError: The latent space is not two-dimensional, or `n_steps` is out of range.
        """
        return manifold_of(self.model, self.codec, n_steps)

    def save(self, path: str | Path, **options: Any) -> None:
        """Writes the model file atomically, so that it is complete or absent.

        Args:
            path: Path of the file.
            options: `minimal` and `scoring`, as for `to_bytes`.

        Raises:
            UnwritableFileError: The folder does not exist, or the file cannot be written.
            SettingError: `scoring` is unknown, or less restrictive than this model's.
        """
        write_artifact(path, self.to_bytes(**options))

    def to_bytes(self, *, minimal: bool = False, scoring: str | None = None) -> bytes:
        """Returns the content of the model file; equal synthesizers give equal bytes.

        Args:
            minimal: Whether to omit everything that is not needed to generate and impute rows and
                to map the model's dependencies: the training record, scores of held-out rows, the
                dependency map, checksum and counts of the training table. The loaded model raises
                LeftOutError for requests that need them.
            scoring: What the loaded model reveals about rows: their scores (`full`), only whether a
                row is rare (`flag`), or nothing (`off`). Default: as this model.

        Raises:
            SettingError: `scoring` is unknown, or less restrictive than this model's.
        """
        parts = ModelParts(
            self.schema,
            self.codec,
            self.model,
            self.config,
            self.preset,
            self.training_record,
            self._maps.data,
            self._constrained.hard_rules,
            self.context,
            self.scoring if scoring is None else not_looser(scoring, self.scoring),
        )
        return (parts.minimal() if minimal else parts).to_bytes()

    def restrict_scoring(self, scoring: str) -> None:
        """Permanently restricts what this model reveals about rows: their scores (`full`), only
        whether a row is rare (`flag`), or nothing (`off`). Does nothing if the model is more
        restrictive already, and raises SettingError if `scoring` is unknown."""
        self.scoring = stricter(scoring, self.scoring)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Reads a model file; a model that was trained on a GPU loads without one.

        Raises:
            ArtifactError: The file is missing, truncated, altered, inconsistent, or written by a
                later version.
        """
        data = read_artifact(path)
        try:
            return cls.from_bytes(data)
        except ArtifactError as error:
            raise type(error)(f"{path}: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> Synthesizer:
        """Returns the synthesizer that is stored in the content of a model file.

        Raises:
            ArtifactError: The content is invalid, as for `load`.
        """
        tensors, manifest = unpack_tensors(data)
        with artifact_errors("the file's manifest is none that this library writes"):
            check_version(manifest)
            parts = ModelParts.of_parts(tensors, manifest)
            return cls(preset=parts.preset)._set_parts(parts)
