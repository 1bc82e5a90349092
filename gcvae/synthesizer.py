"""The `Synthesizer`, the model class that users of the library import."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
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
from gcvae.dependence.map_kinds import DependencyMaps, check_place
from gcvae.dependence.maps import DependencyMap
from gcvae.errors import ArtifactError, Problem, SettingError
from gcvae.evaluation.report.documents import TableReport
from gcvae.figures.html_tables import facts_table
from gcvae.files.frame_dtypes import with_dtypes
from gcvae.files.row_documents import Cell, pointing_at_row, row_to_frame
from gcvae.files.table_reader import Rows, given_frame, parsed_chunks
from gcvae.latent.encodings import encoding_block
from gcvae.latent.manifold import Manifold, manifold_of
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.devices import device_named
from gcvae.numerics.generators import generator_for
from gcvae.numerics.machine_memory import refuse_rows_beyond_memory
from gcvae.numerics.seeds import fresh_seed
from gcvae.numerics.whole_numbers import whole_number
from gcvae.sampling.conditions import refuse_beyond_limits
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.sampling.filled_columns import filled_columns
from gcvae.sampling.hard_rules import HardRules
from gcvae.sampling.imputation import impute_blocks
from gcvae.sampling.known_cells import KnownRows
from gcvae.sampling.samplers import Sampler, free_blocks, make_sampler
from gcvae.schema.columns import TableSchema
from gcvae.scoring.blank_references import BlankReferences
from gcvae.scoring.row_scores import RowScorer
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.served_scores import FULL, require_scores, stricter
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.fitting import fit_prepared
from gcvae.training.model_facts import model_facts
from gcvae.training.preparation import Context, prepared_table
from gcvae.training.progress.fit_bar import reported
from gcvae.training.progress.fit_progress import FitProgress
from gcvae.training.progress.training_progress import Progress
from gcvae.training.publishing.model_file import ModelFile
from gcvae.training.settings import SettledConfig, configure


class _FitOfBoth:
    """`Synthesizer.fit` makes a model; `Synthesizer(...).fit` is the instance's, and keeps it."""

    def __init__(self, of_class: classmethod[Any, Any, Any]) -> None:
        self.of_class = of_class
        self.__doc__ = of_class.__doc__

    def __get__(self, instance: Synthesizer | None, owner: type[Synthesizer]) -> Any:
        return self.of_class.__get__(None, owner) if instance is None else instance._learn


class Synthesizer:
    """Model of a table: generates rows, scores rows, imputes cells and maps dependencies.

    `Synthesizer.fit(table, preset="fast")` and `Synthesizer(preset="fast").fit(table)` are the
    same. The constructor takes what to learn with and learns nothing; until `fit` there is nothing
    else to ask of it.

    Attributes:
        arguments: Of the constructor, unchanged; `schema` among them is what was given of it.
        schema: The table's schema, completed by inference.
        preset: Name of the preset that was trained.
        training_record: Record of the training: settings, history of bounds, seconds, device.
            Nearly empty for a minimal file (`is_minimal`).
        scoring: How much the model reveals about rows: `full`, `flag` or `off` (`to_bytes`,
            `restrict_scoring`).
        table_notes: Data-quality warnings of the training table (`warnings` of its inference,
            docs/tables.md). They quote cells, so no file contains them and a loaded model has none.

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
        """Keeps what `fit` is to learn with: the arguments of `Synthesizer.fit` of these names."""
        self.arguments: dict[str, Any] = {
            "schema": schema,
            "preset": preset,
            "settings": settings,
            "seed": seed,
            "device": device,
            "progress": progress,
        }

    def _take(
        self,
        schema: TableSchema,
        codec: TableCodec,
        model: GenerativeModel,
        config: SettledConfig,
        *,
        preset: str,
        training_record: Mapping[str, Any],
        data_map: DependencyMap | None,
        hard_rules: HardRules,
        context: ContextCodec | None = None,
        scoring: str = FULL,
        table_notes: tuple[str, ...] = (),
    ) -> Synthesizer:
        """Returns this synthesizer with the parts of a fitted model or a model file."""
        self.schema = schema
        self.codec = codec
        self.model = model.eval()
        self.config = config
        self.preset = preset
        self.training_record = dict(training_record)
        self.context = context
        self.scoring = scoring
        self.table_notes = table_notes
        self._constrained = ConstrainedModel(
            self.model, codec, hard_rules, Acceptance.of_record(self.training_record)
        )
        self._of_blanks = BlankReferences(self._constrained)
        self._maps = DependencyMaps(self._constrained, data_map, self._values)
        return self

    if not TYPE_CHECKING:  # which is to see names that nothing has

        def __getattr__(self, name: str) -> Any:
            """Says what is missing of one that has learned nothing yet."""
            if "codec" not in vars(self) and not name.startswith("__"):
                what = "this Synthesizer has learned no table yet; .fit(table) is to come first"
                raise AttributeError(f"{name}: {what}", name=name, obj=self)
            raise AttributeError(f"a Synthesizer has no {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        """Returns a one-line description."""
        return f"<Synthesizer: {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        """Returns an overview of the model as an HTML table, for notebooks."""
        return facts_table("Synthesizer", self._facts())

    def _facts(self) -> dict[str, str]:
        if "codec" not in vars(self):
            return {"preset": f"preset {self.arguments['preset']}", "state": "not fitted yet"}
        return model_facts(self.schema, self.preset, self.training_record, self.table_notes)

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
            table: Cells as text, as `read_table` gives them, or typed (a data frame of pandas,
                polars or Arrow); or a file, a path or a TableReader, which need not fit into
                memory. Equal rows give equal models, whatever their form.
            schema: Known properties of the columns; inference completes them from the whole table.
            preset: Name of a preset.
            settings: Settings that replace those of the preset (`TrainingConfig`).
            seed: Seed of the random generator; equal seeds give equal models on the CPU.
            device: `auto` (CUDA if there is one), `cpu` or `cuda`.
            progress: True shows a progress bar and False none; by default, terminals and notebooks
                show one. Or a callback that receives the fraction done, about twice a second; the
                fraction never decreases and ends at 1. A callback that raises CancelledError stops
                training.
            checkpoints: Store in which checkpoints are kept, and from which training resumes.
            context: Context of each row. The model is then p(row | context), as for the rows of a
                child table, and generates rows for given contexts only (`sample_given`).
            held_out: Rows that no step trains on, and that decide when training ends; a random
                share (`held_out_share`) if None. Shape: (n,).

        Raises:
            TableError: nothing in the table can be modelled.
            SchemaError: the schema contradicts the table, rows of the table break a hard rule, or
                the model can not keep a hard rule.
            HardRuleError: too few rows of the trained model keep the hard rules.
            SettingError: an unknown preset, setting or device.
            DivergedError: the training loss is no longer finite.
            OSError: the disk has no space for the columns of a file.
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
        """Trains this synthesizer on a table, by the constructor's arguments, and returns it.

        What it learned before is replaced, and stays if this fit fails. Arguments and errors are
        those of `Synthesizer.fit`.
        """
        schema, preset, settings, seed, device, progress = self.arguments.values()
        config = configure(preset, settings)
        place = device_named(device)
        with reported(progress) as report:
            line = FitProgress(report, preset, on_cpu=place.type == "cpu")
            asked = table, schema, config, line, seed, checkpoints, context, held_out
            with prepared_table(*asked) as prepared:
                parts = fit_prepared(prepared, config, line, seed=seed, device=place)
            line.end()
        return self._take(
            parts.schema,
            parts.codec,
            parts.model,
            parts.config,
            preset=preset,
            training_record=parts.training_record | {"frame": str(kind_of(table))},
            data_map=parts.data_map,
            hard_rules=parts.hard_rules,
            context=parts.context,
            table_notes=parts.table_notes,
        )

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
        """Generates synthetic rows, typed, with the columns of the schema; equal seeds give equal
        rows.

        The result is a frame of the kind that the model was trained on, or of the kind that
        `frames` names: `pandas` (the default for files), `polars` or `arrow`. Columns have the
        training frame's dtypes, and text its format; for files and for results of `read_table`,
        columns have the library's own dtypes. Without a seed each call gives different rows;
        `attrs["seed"]` of a pandas frame reproduces them. Every row satisfies the schema's
        hard rules, and the conditions `given`, `given_rows` and `distribution` as described at
        `sampler`; `attrs` also contains the summary of the conditions (`Sampler.summary`). `rows`
        may be omitted if `given_rows` is given; the result has the index of `given_rows` if that is
        a pandas frame. Warns of identifiers that get wider than those of the table.

        Raises:
            SettingError: `rows` is not a whole number, or the rows need more memory than there is.
            HardRuleError, ConditionError: As `sample_blocks`.
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
        """Generates one row for each row of a context, typed, in the order of the context.

        Args:
            context: Typed cells of the columns of the model's context.
            seed: Seed of the random generator; equal seeds and contexts give equal rows.
            first_row: Number of the first row, from which its keys are made.

        Raises:
            HardRuleError: Too few rows keep the hard rules.
        """
        assert self.context is not None, "the model is conditional"
        generator = generator_for(seed, "sample given", first_row)
        rows = self._constrained.draw_given(self.context.encode(context), generator)
        return self.codec.decode(rows, first_row, seed)

    def impute_given(self, typed: pd.DataFrame, context: Tensor | None, seed: int) -> pd.DataFrame:
        """Returns typed rows with their missing cells drawn from p(missing | known, context).

        Args:
            typed: Typed rows, with all modelled columns.
            context: Encoded contexts of the rows; None if the model is not conditional. Shape: (n,
                2 C).
            seed: Seed of the random generator.
        """
        kept = filled_columns(self.schema, None, None).kept
        known = KnownRows.with_blanks(typed, self._constrained, kept, context)
        blocks = (
            known.complete(number, 1, generator_for(seed, "impute", number), seed)[0]
            for number in range(known.n_blocks)
        )
        return pd.concat([typed.iloc[:0], *blocks], ignore_index=True)

    def notes(self, rows: int) -> list[str]:
        """Returns warnings about a sample of `rows` rows: the identifiers that get wider than the
        table's because the sample needs more of them than there are unused ones of that width."""
        return self.codec.notes(rows)

    def sampler(
        self,
        seed: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        given_rows: Rows | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Sampler:
        """Returns a sampler of rows under conditions; its pilot estimates their probability first.

        Args:
            seed: Seed of all draws, including those of the pilot; by default a fresh one.
            given: Condition by column: a value, a list of values, {"min": ..., "max": ...}, or None
                for missing.
            given_rows: Table of known cells, each row of which is completed once; excludes the
                other conditions.
            distribution: {column: {level: share}} for one column.

        Raises:
            ConditionError: malformed, unknown, or too improbable under the model.
        """
        known = None if given_rows is None else given_frame(given_rows)
        asked: dict[str, Any] = {"given": given, "given_rows": known, "distribution": distribution}
        seed = fresh_seed() if seed is None else seed
        # The probability of a condition that names a whole row is its score.
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
        """Returns the table with missing cells filled from p(missing | known); known cells stay
        unchanged.

        With more than one draw each row is repeated once per draw, numbered in a first column
        `draw`. The result is of the frame's kind (pandas, polars, Arrow), with the same dtypes and
        order of rows, and for pandas with the same index.

        Args:
            frame: Rows, with columns of the table; a column that the frame lacks is entirely
                missing.
            draws: Completions of each row.
            seed: Seed of the random generator; equal seeds fill equal cells alike, whatever
                `columns` is.
            columns: Columns to fill; missing cells of all others stay and are integrated out.
            keep_missing: Columns in which missing is a value of its own: their missing cells stay,
                and other columns are filled given that they are missing. By default the columns
                that the schema declares so (`missing.is_value`) and that `columns` does not name.
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
        """Yields the rows of `impute` in blocks, in order. See `gcvae.sampling.imputation`."""
        blocks = impute_blocks(self._constrained, rows, draws, seed, among, columns, keep_missing)
        return with_index_of(blocks, rows, draws, 0 if among is None else among.start)

    def sample_blocks(
        self, rows: int, seed: int | None = None, *, among: range | None = None, **conditions: Any
    ) -> Iterator[pd.DataFrame]:
        """Yields the rows of `sample` in blocks, in constant memory; joined they are the same rows.

        Each block's `attrs["seed"]` is the seed of the whole sample. A block is drawn whole and
        then cut, so its rows do not depend on `rows`. With `among`, which begins at a multiple of
        `SAMPLE_BLOCK_ROWS`, only those rows are generated: several processes that share a seed can
        generate one table together. Conditions are those of `sampler`.

        Raises:
            HardRuleError: too few of the model's rows keep the hard rules.
            ConditionError: as `sampler`.
        """
        seed = fresh_seed() if seed is None else seed
        yield from self._blocks(rows, seed, self._sampler_of(conditions, seed), among)

    def _sampler_of(self, conditions: Mapping[str, Any], seed: int) -> Sampler | None:
        """Returns the sampler of rows under these conditions; None if there are no conditions."""
        is_free = all(condition is None for condition in conditions.values())
        return None if is_free else self.sampler(seed, **conditions)

    def _blocks(
        self, rows: int, seed: int, sampler: Sampler | None, among: range | None
    ) -> Iterator[pd.DataFrame]:
        """Yields the blocks of `sample_blocks`, drawn by `sampler` or without conditions."""
        if self.context is not None:
            message = "the model draws rows that are given a context"
            raise SettingError(Problem(message, expected="`sample_given`, with the context"))
        rows = whole_number("rows", rows, 0)
        free = free_blocks(self._constrained, rows, seed, among)
        for block in free if sampler is None else sampler.blocks(rows, among):
            block.attrs["seed"] = seed
            yield with_dtypes(block, self.schema)

    def _values(self, rows: int, seed: int) -> pd.DataFrame:
        """Generates rows in the library's own dtypes."""
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
        jitters: int = 0,
    ) -> Any:
        """Scores rows: a lower bound on log p(row), in nats, of the data's own measure.

        The bound is importance-weighted with draws of z; each discrete column contributes its
        probability mass, each continuous one its density per original unit (days for dates).
        Missing cells are integrated out. A level that the schema does not list scores -inf, and so
        does a row in which two columns differ that were copies of each other in training.

        Under hard rules the scored distribution is the one that is sampled: a row that breaks a
        hard rule scores -inf, every other gets -log(acceptance). A missing cell breaks none, so
        the score of its row is approximate.

        Args:
            frame: Rows, with columns of the table; a column that the frame lacks is entirely
                missing.
            draws: Draws of z for each row; by default, as many as a standard error of 0.1 nats
                needs. The other options are those of `ScoreOptions`.

        Returns:
            One row per row of `frame`, in a frame of the same kind: `log_likelihood`, its
            `standard_error`, the `percentile` (0 to 100) of the row among the held-out rows of
            training (for a row with missing cells: among generated rows with the same cells
            missing), and `contributions.<column>`, which add up to the score. With `scoring` flag:
            `is_rare` alone.

        Raises:
            TableError: the frame has no modelled column, or a cell can not be read.
            SettingError: an option is out of range, or does not apply to a flag.
            ScoringError: `scoring` is off.
        """
        options = ScoreOptions(draws, seed, jitters, measure, score_missingness, tolerance)
        blocks = list(with_index_of(self.scorer.blocks(frame, options), frame))
        scores = pd.concat(blocks) if blocks else self.scorer.empty()
        return of_kind(scores, kind_of(frame))

    def score_blocks(
        self, rows: Rows, draws: int | None = None, seed: int = 0, **options: Any
    ) -> Iterator[pd.DataFrame]:
        """Yields the rows of `log_likelihood` in blocks, in order; reads a file in
        constant memory."""
        return with_index_of(self.scorer.blocks(rows, ScoreOptions(draws, seed, **options)), rows)

    @property
    def scorer(self) -> RowScorer:
        """The scorer of rows. Raises: ScoringError if scoring is off."""
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
        """Returns a map of pairwise dependence: Kendall's tau, and an unsigned measure.

        Args:
            kind: `expected`, `within`, `between`, `total`, `data`, `difference` or `local`; the
                map's notes and docs/dependencies.md define each.
            seed: Seed of the random generator; equal seeds give equal maps.
            row: Cells by column; the `local` map is the one at the posterior of this row. Columns
                that are absent or None are integrated out.
            z: Latent vector at which the `local` map is taken, instead of a row.

        Raises:
            SettingError: unknown kind, `local` without a row or z, or another kind with one.
            UnknownColumnError, TableError: the row can not be read, or has probability zero under
                the model.
            InputError: z has another number of dimensions than the latent space.
            HardRuleError: too few of the model's rows keep the hard rules.
            LeftOutError: `data` or `difference` for a model loaded from a minimal file.
        """
        check_place(kind, row is not None, z is not None)
        if row is not None:
            with pointing_at_row():
                typed = parse_table(row_to_frame(row, self.schema), self.schema)
            refuse_beyond_limits(typed, self.codec)
            return self._maps.at_row(self.codec.encode(typed, blanks_unknown=True), seed)
        return self._maps.of_kind(kind, seed) if z is None else self._maps.at_latent(z)

    def report(self, real: Rows, holdout: Rows | None = None, **options: Any) -> TableReport:
        """Returns a report on the fidelity, utility and privacy of the model's synthetic rows,
        measured with its training table and a holdout; `make_report` has the options."""
        # SciPy's statistics take a second to load.
        from gcvae.training.reporting.model_report import make_report

        return make_report(self, real, holdout, **options)

    def encode(self, frame: Rows) -> Any:
        """Returns the posterior q(z|x) of rows: `mean_1` .. `mean_K`, `standard_deviation_1` ..
        `_K`.

        Missing cells, and all cells of a column that the rows lack, count as unknown. The result
        has one row per input row, in order, in a frame of the same kind.

        Raises:
            TableError: the frame has no modelled column, or a cell can not be read.
        """
        return of_kind(pd.concat(self.encode_blocks(frame)), kind_of(frame))

    def encode_blocks(self, rows: Rows, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields the rows of `encode` in blocks, in order; memory does not grow with the rows of a
        file.

        With `among`, which begins at a multiple of CHUNK_ROWS, only those rows are encoded.
        """
        blocks = (
            encoding_block(self.model, self.codec.encode(typed, blanks_unknown=True))
            for _, typed in parsed_chunks(rows, self.schema, among)
        )
        return with_index_of(blocks, rows, first_row=0 if among is None else among.start)

    def manifold(self, n_steps: int = 15) -> Manifold:
        """Decodes a grid over the quantiles of a two-dimensional prior.

        Raises:
            InputError: the latent space is not two-dimensional, or n_steps is not 2 to 50.
        """
        return manifold_of(self.model, self.codec, n_steps)

    def save(self, path: str | Path, **options: Any) -> None:
        """Writes the model file atomically; `to_bytes` has the options.

        Raises:
            UnwritableFileError: There is no such folder, or the file can not be written.
            SettingError: As of `to_bytes`.
        """
        write_artifact(path, self.to_bytes(**options))

    def to_bytes(self, *, minimal: bool = False, scoring: str | None = None) -> bytes:
        """Returns the content of the model file; equal synthesizers give equal bytes.

        Args:
            minimal: Leave out everything that generating, completing and the model's own maps do
                not need: the training record, scores of held-out rows, the table's map and
                checksum, counts. The loaded model raises LeftOutError if it is asked for them.
            scoring: How much the file's model reveals about rows, no more than this one: scores
                (`full`), whether a row is rare (`flag`), or nothing (`off`).

        Raises:
            SettingError: `scoring` is unknown, or looser than this model's.
        """
        parts = self._parts().with_scoring(scoring)
        return (parts.minimal() if minimal else parts).to_bytes()

    def _parts(self) -> ModelFile:
        return ModelFile(
            self.schema,
            self.codec,
            self.model,
            self.config,
            self.preset,
            self.training_record,
            self._maps.data,
            self._constrained.hard_rules,
            self.context,
            self.scoring,
        )

    def restrict_scoring(self, scoring: str) -> None:
        """Restricts what this model reveals about rows to `scoring`, permanently; a stricter level
        stays as it is. Raises: SettingError if `scoring` is unknown."""
        self.scoring = stricter(scoring, self.scoring)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Reads a model file; needs no GPU, whatever device the model was trained on.

        Raises:
            ArtifactError: the file is missing, truncated, altered, of a later version or
                inconsistent.
        """
        data = read_artifact(path)
        try:
            return cls.from_bytes(data)
        except ArtifactError as error:
            raise type(error)(f"{path}: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> Synthesizer:
        """Returns the synthesizer of a model file's content. Raises as `load`."""
        tensors, manifest = unpack_tensors(data)
        with artifact_errors("the file's manifest is none that this library writes"):
            check_version(manifest)
            parts = ModelFile.of_parts(tensors, manifest)
            members = {part.name: getattr(parts, part.name) for part in fields(parts)}
            return cls(preset=parts.preset)._take(**members)
