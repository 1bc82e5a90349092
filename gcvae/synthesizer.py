"""The fitted synthesizer: what users of the library import."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gcvae.artifact.checks import artifact_errors
from gcvae.artifact.file import read_artifact, unpack_tensors, write_artifact
from gcvae.artifact.versions import check_version
from gcvae.cells.data_frames import FrameKind, frame_kind, kind_of, of_kind, with_index_of
from gcvae.cells.values import parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.identifiers import WiderIdentifiersWarning
from gcvae.codec.table_codec import TableCodec
from gcvae.constraints.constraint_set import ConstraintSet
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
from gcvae.sampling.imputation import impute_blocks
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
    """A table's model: draws rows, scores rows, maps dependencies.

    `Synthesizer.fit(table, preset="fast")` and `Synthesizer(preset="fast").fit(table)` are the
    same. The constructor takes what to learn with and learns nothing; until `fit` there is nothing
    else to ask of it.

    Attributes:
        arguments: Of the constructor, unchanged; `schema` among them is what was given of it.
        schema: The table's schema, completed by inference.
        preset: Name of the preset that was trained.
        training_record: What training saw and did: settings, history of bounds, seconds, device.
            Of a minimal file (`is_minimal`) hardly anything.
        scoring: What it says of rows: `full`, `flag` or `off` (`to_bytes`, `restrict_scoring`).
        table_notes: What a careful colleague would say of the table: the `warnings` of its
            inference (docs/tables.md). They name cells, so no file has them: none after `load`.

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
        constraints: ConstraintSet,
        context: ContextCodec | None = None,
        scoring: str = FULL,
        table_notes: tuple[str, ...] = (),
    ) -> Synthesizer:
        """This synthesizer with the parts of a model, of a fit or a file."""
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
            self.model, codec, constraints, Acceptance.of_record(self.training_record)
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
        """What it is, in a line."""
        return f"<Synthesizer: {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        """What it is at a glance, for notebooks."""
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
    ) -> Synthesizer:
        """Trains a model on a table.

        Args:
            table: Cells as text, as `read_table` gives them, or typed (a data frame of pandas,
                polars or Arrow); or a file, a path or a TableReader, which need not fit into
                memory. The same rows give the same model either way.
            schema: What is known of the columns; inference completes it from the whole table.
            preset: Name of a preset.
            settings: Settings in the place of the preset's own (`TrainingConfig`).
            seed: The same seed gives the same model on the CPU.
            device: `auto` (CUDA if there is one), `cpu` or `cuda`.
            progress: True shows a bar, False none; where not given, terminals and notebooks have
                one. Or what is called about twice a second, with a fraction that only grows and is
                1 at the end; raise CancelledError in it to stop.
            checkpoints: Where to keep a checkpoint, and to continue from.
            context: What each row is given: then the model is p(row | context), as of the rows of
                a child table. It draws rows for given contexts only (`sample_given`).

        Raises:
            TableError: nothing in the table can be modelled.
            SchemaError: the schema contradicts the table, rows of it break a constraint, or a rule
                is demanded that the model can not keep.
            ConstraintError: too few rows of the trained model satisfy the constraints.
            SettingError: an unknown preset, setting or device.
            DivergedError: training left the finite numbers.
            OSError: the disk is too full for a file's columns.
        """
        asked = cls(
            schema=schema,
            preset=preset,
            settings=settings,
            seed=seed,
            device=device,
            progress=progress,
        )
        return asked._learn(table, checkpoints=checkpoints, context=context)

    if not TYPE_CHECKING:
        fit = _FitOfBoth(fit)

    def _learn(
        self,
        table: Rows,
        *,
        checkpoints: CheckpointStore | None = None,
        context: Context | None = None,
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
            asked = table, schema, config, line, seed, checkpoints, context
            with prepared_table(*asked) as prepared:
                parts = fit_prepared(prepared, config, line, seed=seed, place=place)
            line.end()
        return self._take(
            parts.schema,
            parts.codec,
            parts.model,
            parts.config,
            preset=preset,
            training_record=parts.training_record | {"frame": str(kind_of(table))},
            data_map=parts.data_map,
            constraints=parts.constraints,
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
        """Synthetic rows, typed, with the schema's columns. The same seed gives the same rows.

        They come as a frame of the kind that the model was trained on, or of the kind that `frames`
        names: `pandas` (so it is of files), `polars` or `arrow`. Columns have its dtypes, text its
        spelling; of a file, and of what `read_table` gives, the library's own. Without a seed they
        are others at each call; `attrs["seed"]` of a frame of pandas gives them again. Every row
        satisfies the schema's constraints, and the conditions `given`, `given_rows` and
        `distribution` as `sampler` has them; what is known of these (`Sampler.summary`) stands in
        `attrs`, too. `rows` may be left out where `given_rows` is their table; where that is a
        frame of pandas, the rows have its index. Warns of identifiers that get wider than the
        table's.

        Raises:
            SettingError: `rows` is no whole number, or so many rows need more memory than there is.
            ConstraintError, ConditionError: As `sample_blocks`.
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
        """A row for each row of a context, typed, in its order.

        Args:
            context: Typed cells of the columns of the model's context.
            seed: The same seed and context give the same rows.
            first_row: Number of the first row, of which its keys are made.

        Raises:
            ConstraintError: Too few rows satisfy the constraints.
        """
        assert self.context is not None, "the model is conditional"
        generator = generator_for(seed, "sample given", first_row)
        rows = self._constrained.draw_given(self.context.encode(context), generator)
        return self.codec.decode(rows, first_row, seed)

    def notes(self, rows: int) -> list[str]:
        """What one should know of a sample of so many rows: which identifiers get wider than the
        table's, since more are drawn than there are fresh ones of its width."""
        return self.codec.notes(rows)

    def sampler(
        self,
        seed: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        given_rows: Rows | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Sampler:
        """What draws rows under conditions, and knows their probability before it does.

        Args:
            seed: Of all draws, the pilot's, too; where not given a fresh one.
            given: By column a value, a list of values, {"min": ..., "max": ...}, or None: missing.
            given_rows: A table of known cells, one row drawn around each; without the others.
            distribution: {column: {level: share}}, of one column.

        Raises:
            ConditionError: malformed, unknown, or too improbable under the model.
        """
        known = None if given_rows is None else given_frame(given_rows)
        asked: dict[str, Any] = {"given": given, "given_rows": known, "distribution": distribution}
        seed = fresh_seed() if seed is None else seed
        # The probability of a condition that names a whole row is its score.
        return make_sampler(self._constrained, seed, is_told=self.scoring == FULL, **asked)

    def impute(
        self,
        frame: Rows,
        draws: int = 1,
        seed: int = 0,
        *,
        columns: Sequence[str] | None = None,
        keep_blanks: Sequence[str] | None = None,
    ) -> Any:
        """The table with its blanks filled from p(missing | known); known cells stay as they are.

        With more than one draw each row comes so many times, numbered in a first column `draw`.
        It is of the frame's kind (pandas, polars, Arrow), and columns keep their dtypes. Rows come
        in their order; a frame of pandas keeps its index.

        Args:
            frame: Rows, with columns of the table; of one that they lack each cell is blank.
            draws: Completions of each row.
            seed: The same seed fills the same cells alike, whatever `columns` says.
            columns: Only these are filled; blanks of all others stay, and are integrated out.
            keep_blanks: Columns whose blanks are values of their own: they stay, and the others are
                filled given that they are blank. Where not given, those of which the schema says so
                (`missing.is_value`) and which `columns` does not name.
        """
        blocks = self.impute_blocks(frame, draws, seed, columns=columns, keep_blanks=keep_blanks)
        return of_kind(pd.concat(blocks), kind_of(frame))

    def impute_blocks(
        self,
        rows: Rows,
        draws: int = 1,
        seed: int = 0,
        among: range | None = None,
        *,
        columns: Sequence[str] | None = None,
        keep_blanks: Sequence[str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """The rows of `impute` in blocks, in order. See `gcvae.sampling.imputation`."""
        blocks = impute_blocks(self._constrained, rows, draws, seed, among, columns, keep_blanks)
        return with_index_of(blocks, rows, draws, 0 if among is None else among.start)

    def sample_blocks(
        self, rows: int, seed: int | None = None, *, among: range | None = None, **conditions: Any
    ) -> Iterator[pd.DataFrame]:
        """The rows of `sample` in blocks, in constant memory; joined they are the same rows.

        Each block's `attrs["seed"]` is the seed of all. A block is drawn as if it were whole and
        then cut: its numbers do not depend on `rows`. With `among` only those of the rows that it
        names come; it begins at a multiple of `SAMPLE_BLOCK_ROWS`. So several processes can draw
        one table between them, where they are given its seed. Conditions are as of `sampler`.

        Raises:
            ConstraintError: too few of the model's rows satisfy the constraints.
            ConditionError: as `sampler`.
        """
        seed = fresh_seed() if seed is None else seed
        yield from self._blocks(rows, seed, self._sampler_of(conditions, seed), among)

    def _sampler_of(self, conditions: Mapping[str, Any], seed: int) -> Sampler | None:
        """What draws rows under these conditions; None where there are none."""
        is_free = all(condition is None for condition in conditions.values())
        return None if is_free else self.sampler(seed, **conditions)

    def _blocks(
        self, rows: int, seed: int, sampler: Sampler | None, among: range | None
    ) -> Iterator[pd.DataFrame]:
        """See `sample_blocks`."""
        if self.context is not None:
            message = "the model draws rows that are given a context"
            raise SettingError(Problem(message, expected="`sample_given`, with the context"))
        rows = whole_number("rows", rows, 0)
        free = free_blocks(self._constrained, rows, seed, among)
        for block in free if sampler is None else sampler.blocks(rows, among):
            block.attrs["seed"] = seed
            yield with_dtypes(block, self.schema)

    def _values(self, rows: int, seed: int) -> pd.DataFrame:
        """Rows of `sample` in the library's own dtypes."""
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
        """How likely rows are: a lower bound on log p(row), in nats, of the data's own measure.

        Importance-weighted with draws of z; each discrete column counts with its probability mass,
        each continuous one with its density per original unit (days for dates).
        A blank cell is integrated out. A level that the schema does not list scores -inf, and so
        does a row in which two columns differ that were copies of each other in training.

        Under constraints the model is the one that is sampled: a row that breaks one scores -inf,
        every other gets -log(acceptance). A blank breaks none, and there this is approximate.

        Args:
            frame: Rows, with columns of the table; of one that they lack each cell is blank.
            draws: Draws of z for each row; without it, as many as a standard error of 0.1 nats
                needs. The other options are those of `ScoreOptions`.

        Returns:
            `log_likelihood`, its `standard_error`, the `percentile` (0 to 100) of the row among
            the held-out rows of training (with blanks: among rows of the model with the same cells
            blanked), and `contributions.<column>`, which add up to the score; one line per row, in
            a frame of the kind that the rows are in. With `scoring` flag: `is_rare` alone.

        Raises:
            TableError: if the frame has no modelled column or a cell can not be read.
            SettingError: an option is out of range, or none that a flag has.
            ScoringError: `scoring` is off.
        """
        options = ScoreOptions(draws, seed, jitters, measure, score_missingness, tolerance)
        blocks = list(with_index_of(self.scorer.blocks(frame, options), frame))
        scores = pd.concat(blocks) if blocks else self.scorer.empty()
        return of_kind(scores, kind_of(frame))

    def score_blocks(
        self, rows: Rows, draws: int | None = None, seed: int = 0, **options: Any
    ) -> Iterator[pd.DataFrame]:
        """The lines of `log_likelihood` in blocks, in order; a file in constant memory."""
        return with_index_of(self.scorer.blocks(rows, ScoreOptions(draws, seed, **options)), rows)

    @property
    def scorer(self) -> RowScorer:
        """What scores rows. Raises: ScoringError if scoring is off."""
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
        """Map of which columns depend on which: Kendall's tau, and a measure without sign.

        Args:
            kind: `expected`, `within`, `between`, `total`, `data`, `difference`, or `local`: each
                means something else, which the map's notes and docs/dependencies.md say.
            seed: The same seed gives the same map.
            row: Cells by column, at whose posterior the `local` map is; what is not given or None
                is integrated out.
            z: A place in the latent space for the `local` map, instead of a row.

        Raises:
            SettingError: unknown kind, or `local` without, another kind with, a row or a z.
            UnknownColumnError, TableError: the row can not be read, or the model never draws it.
            InputError: z has another number of dimensions than the latent space.
            ConstraintError: too few of the model's rows satisfy the constraints.
            LeftOutError: `data` or `difference` of a model whose file was minimal.
        """
        check_place(kind, row is not None, z is not None)
        if row is not None:
            with pointing_at_row():
                typed = parse_table(row_to_frame(row, self.schema), self.schema)
            refuse_beyond_limits(typed, self.codec)
            return self._maps.at_row(self.codec.encode(typed, blanks_unknown=True), seed)
        return self._maps.of_kind(kind, seed) if z is None else self._maps.at_latent(z)

    def report(self, real: Rows, holdout: Rows | None = None, **options: Any) -> TableReport:
        """Whether its rows are good, useful and safe, by the table that it was trained on and by
        rows that had no part in training; `make_report` has the options."""
        # SciPy's statistics take a second to load.
        from gcvae.training.reporting.model_report import make_report

        return make_report(self, real, holdout, **options)

    def encode(self, frame: Rows) -> Any:
        """The posterior q(z|x) of rows: `mean_1` .. `mean_K`, `standard_deviation_1` .. `_K`.

        A blank cell is one that is not known, and so are all of a column that the rows lack. One
        line per row, in order, in a frame of the kind that the rows are in.

        Raises:
            TableError: if the frame has no modelled column or a cell can not be read.
        """
        return of_kind(pd.concat(self.encode_blocks(frame)), kind_of(frame))

    def encode_blocks(self, rows: Rows, among: range | None = None) -> Iterator[pd.DataFrame]:
        """The lines of `encode` in blocks, in order; memory does not grow with a file's rows.

        With `among` only those of some rows, which begin at a multiple of CHUNK_ROWS.
        """
        blocks = (
            encoding_block(self.model, self.codec.encode(typed, blanks_unknown=True))
            for _, typed in parsed_chunks(rows, self.schema, among)
        )
        return with_index_of(blocks, rows, first_row=0 if among is None else among.start)

    def manifold(self, n_steps: int = 15) -> Manifold:
        """What the decoder makes of a grid over the quantiles of a two-dimensional prior.

        Raises:
            InputError: the latent space is not two-dimensional, or n_steps is not 2 to 50.
        """
        return manifold_of(self.model, self.codec, n_steps)

    def save(self, path: str | Path, **options: Any) -> None:
        """Writes the model file, whole or not at all; `to_bytes` has the options."""
        write_artifact(path, self.to_bytes(**options))

    def to_bytes(self, *, minimal: bool = False, scoring: str | None = None) -> bytes:
        """The model file's content. Equal synthesizers have equal bytes.

        Args:
            minimal: Leaves out what drawing, completing and the model's own maps do not need: the
                training record, scores of held-out rows, the table's map and checksum, counts. The
                loaded model says so where it is asked for them.
            scoring: What the file's model says of rows, no more than this one does: their scores
                (`full`), whether they are rare (`flag`), or nothing (`off`).

        Raises:
            SettingError: There is no such scoring, or it is looser than this model's.
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
            self._constrained.constraints,
            self.context,
            self.scoring,
        )

    def restrict_scoring(self, scoring: str) -> None:
        """From now on this model says of rows what `scoring` lets it, or what it did if that is
        stricter: there is no way back. Raises: SettingError if there is no such scoring."""
        self.scoring = stricter(scoring, self.scoring)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Reads a model file; it needs no GPU, whatever the model was trained on.

        Raises:
            ArtifactError: it is missing, truncated, altered or of a later version, or has misfits.
        """
        data = read_artifact(path)
        try:
            return cls.from_bytes(data)
        except ArtifactError as error:
            raise type(error)(f"{path}: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> Synthesizer:
        """The synthesizer of a model file's content. Raises as `load`."""
        tensors, manifest = unpack_tensors(data)
        with artifact_errors("the file's manifest is none that this library writes"):
            check_version(manifest)
            parts = ModelFile.of_parts(tensors, manifest)
            members = {part.name: getattr(parts, part.name) for part in fields(parts)}
            return cls(preset=parts.preset)._take(**members)
