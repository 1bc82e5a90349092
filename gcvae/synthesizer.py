"""The fitted synthesizer: what users of the library import."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gcvae.artifact import (
    FORMAT,
    VERSION,
    check_version,
    pack_tensors,
    read_artifact,
    unpack_tensors,
    write_artifact,
)
from gcvae.assembly import build_model
from gcvae.calibration import calibrate
from gcvae.checkpoints import CheckpointStore
from gcvae.codec import EncodedTable, TableCodec
from gcvae.conditions import refuse_beyond_limits
from gcvae.constraint_set import ConstraintSet
from gcvae.dependence import DependencyMap
from gcvae.dependency_maps import DependencyMaps, check_place, map_of_data
from gcvae.devices import device_named
from gcvae.errors import SettingError
from gcvae.fitted_priors import mixture_prior
from gcvae.generators import generator_for
from gcvae.imputation import impute_blocks
from gcvae.latent_space import encoding_block
from gcvae.manifold import Manifold, manifold_of
from gcvae.model import GenerativeModel
from gcvae.networks import ColumnShape
from gcvae.preparation import prepared_table, table_digest
from gcvae.presets import TrainingConfig, configure, preset_named, settle
from gcvae.priors import GaussianMixturePrior
from gcvae.quantile_codec import QuantileCodec
from gcvae.rejection import NOT_MEASURED, Acceptance, ConstrainedModel, measure_acceptance
from gcvae.row_documents import Cell, pointing_at_row, row_to_frame
from gcvae.row_scores import RowScorer, reference_scores
from gcvae.sampling import SAMPLE_BLOCK_ROWS, Sampler, block_places, make_sampler
from gcvae.schema import TableSchema
from gcvae.score_options import ScoreOptions
from gcvae.table_reader import TableReader, parsed_parts
from gcvae.tables import parse_table
from gcvae.training import train
from gcvae.training_progress import Progress
from gcvae.training_result import TrainingResult

_RECORD_ROWS = 500
"""Held-out rows that are scored after training, for the percentiles of later scores."""


class Synthesizer:
    """A table's model: draws rows, scores rows, maps dependencies.

    Attributes:
        schema: The table's schema, completed by inference.
        preset: Name of the preset that was trained.
        training_record: What training saw and did: settings, history of bounds, seconds, device.
    """

    def __init__(
        self,
        schema: TableSchema,
        codec: TableCodec,
        model: GenerativeModel,
        config: TrainingConfig,
        *,
        preset: str,
        training_record: Mapping[str, Any],
        data_map: DependencyMap,
        constraints: ConstraintSet,
    ) -> None:
        """Joins the parts; `fit` and `load` are the ways to get one."""
        self.schema = schema
        self.codec = codec
        self.model = model.eval()
        self.config = config
        self.preset = preset
        self.training_record = dict(training_record)
        self._constrained = ConstrainedModel(
            self.model, codec, constraints, _acceptance_of(self.training_record)
        )
        self._maps = DependencyMaps(self._constrained, data_map, self.sample)

    @classmethod
    def fit(
        cls,
        table: pd.DataFrame | TableReader,
        *,
        schema: TableSchema | Mapping[str, Any] | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Callable[[Progress], None] | None = None,
        checkpoints: CheckpointStore | None = None,
    ) -> Synthesizer:
        """Trains a model on a table.

        Args:
            table: Cells as text, as `read_table` gives them, or typed; or a file, which need not
                fit into memory. The same rows give the same model either way.
            schema: What is known of the columns; inference completes it from the whole table.
            preset: Name of a preset.
            settings: Settings in the place of the preset's own (`TrainingConfig`).
            seed: The same seed gives the same model on the CPU.
            device: `auto` (CUDA if there is one), `cpu` or `cuda`.
            progress: Called about twice a second; raise CancelledError in it to stop.
            checkpoints: Where to keep a checkpoint, and to continue from.

        Raises:
            TableError: nothing in the table can be modelled.
            SchemaError: the schema contradicts the table, or rows of it break a constraint.
            ConstraintError: too few rows of the trained model satisfy the constraints.
            SettingError: an unknown preset, setting or device.
            DivergedError: training left the finite numbers.
            OSError: the disk is too full for a file's columns.
        """
        config = configure(preset, settings)
        place = device_named(device)
        started_at = time.monotonic()
        if progress is not None:
            progress(Progress(phase="preparing", fraction=0.0, epoch=0, epochs=0))
        with prepared_table(table, schema, config, progress) as prepared:
            codec, constraints, rows = prepared.codec, prepared.constraints, prepared.rows
            config = settle(config, n_rows=len(rows), n_columns=len(codec.columns))
            model = build_model(config, column_shapes(codec), seed)
            model.marginals.start_at(rows.code_counts)
            model = model.to(place)
            result = train(
                model,
                rows.to(place),
                config,
                seed=seed,
                log_scale=rows.log_units,
                progress=progress,
                checkpoints=checkpoints,
            )
            if progress is not None:
                progress(_finishing(result))
            model = model.cpu()
            if config.prior == "mixture":
                model.prior = mixture_prior(model, rows, result.held_out, seed)
            if config.calibration:
                calibrate(model, rows.code_counts, seed)
            acceptance = measure_acceptance(model, codec, constraints, seed, SAMPLE_BLOCK_ROWS)
            held_out = rows.take(result.held_out[:_RECORD_ROWS])
            record = _training_record(config, result, seed) | {
                "held_out_scores": reference_scores(model, codec, held_out, acceptance, seed),
                "preset": preset_named(preset).name,
                "device": str(place),
                "rows": len(rows),
                "table_sha256": table_digest(prepared.typed),
                "seconds": round(time.monotonic() - started_at, 3),
            }
            if len(constraints):
                record["constraint_acceptance"] = acceptance.to_json()
            return cls(
                prepared.schema,
                codec,
                model,
                config,
                preset=preset_named(preset).name,
                training_record=record,
                data_map=map_of_data(codec, prepared.typed, rows, seed),
                constraints=constraints,
            )

    def sample(self, rows: int | None = None, seed: int = 0, **conditions: Any) -> pd.DataFrame:
        """Synthetic rows, typed, with the schema's columns. The same seed gives the same rows.

        Every row satisfies the schema's constraints, and what `sampler` says of `conditions`.
        `rows` may be left out where `given_rows` is their table.
        """
        if rows is None and (known := conditions.get("given_rows")) is not None:
            rows = len(known)
        if rows is None:
            raise SettingError("rows is not given; only given_rows stands in for it")
        return pd.concat(self.sample_blocks(rows, seed, **conditions), ignore_index=True)

    def sampler(self, seed: int = 0, **conditions: Any) -> Sampler:
        """What draws rows under conditions, and knows their probability before it does.

        Args:
            seed: Of all draws, the pilot's included.
            conditions: `given` (column: a value, a list of values, {"min": ..., "max": ...} or
                None for missing), with or without `distribution` ({column: {level: share}}); or
                `given_rows`, a table of known cells, one row drawn around each.

        Raises:
            ConditionError: malformed, unknown, or too improbable under the model.
        """
        return make_sampler(self._constrained, seed, **conditions)

    def impute(self, frame: pd.DataFrame, draws: int = 1, seed: int = 0) -> pd.DataFrame:
        """The table with its blanks filled from p(missing | known); known cells stay as they are.

        With more than one draw each row comes so many times, numbered in a first column `draw`.
        """
        return pd.concat(self.impute_blocks(frame, draws, seed), ignore_index=True)

    def impute_blocks(
        self,
        rows: pd.DataFrame | TableReader,
        draws: int = 1,
        seed: int = 0,
        among: range | None = None,
    ) -> Iterator[pd.DataFrame]:
        """The rows of `impute` in blocks, in order. See `gcvae.imputation`."""
        return impute_blocks(self._constrained, rows, draws, seed, among)

    def sample_blocks(
        self, rows: int, seed: int = 0, *, among: range | None = None, **conditions: Any
    ) -> Iterator[pd.DataFrame]:
        """The rows of `sample` in blocks, in constant memory; joined they are the same rows.

        A block is drawn as if it were whole and then cut: its numbers do not depend on `rows`. With
        `among` only those of the rows that it names come; it begins at a multiple of
        `SAMPLE_BLOCK_ROWS`. So several processes can draw one table between them.

        Raises:
            ConstraintError: too few of the model's rows satisfy the constraints.
            ConditionError: as `sampler`.
        """
        if rows < 0:
            raise SettingError(f"rows is {rows}; it must be zero or more")
        if any(condition is not None for condition in conditions.values()):
            yield from self.sampler(seed, **conditions).blocks(rows, among)
            return
        for first_row, n in block_places(rows, among):
            generator = generator_for(seed, "sample", first_row // SAMPLE_BLOCK_ROWS)
            block = self._constrained.draw(n, SAMPLE_BLOCK_ROWS, generator)
            yield self.codec.decode(block, first_row=first_row)

    def log_likelihood(
        self, frame: pd.DataFrame, draws: int = 100, seed: int = 0, **options: Any
    ) -> pd.DataFrame:
        """How likely rows are: a lower bound on log p(row), in nats, of the data's own measure.

        Importance-weighted with `draws` draws of z; each discrete column counts with its
        probability mass, each continuous one with its density per original unit (days for dates).
        A blank cell is integrated out. A level that the schema does not list scores -inf, and so
        does a row in which two columns differ that were copies of each other in training.

        Under constraints the model is the one that is sampled: a row that breaks one scores -inf,
        every other gets -log(acceptance). A blank breaks none, and there this is approximate.

        Args:
            frame: Rows, with the columns of the table.
            draws: Of z for each row.
            seed: The same seed gives the same scores.
            **options: `measure`, `score_missingness` and `jitters` of `ScoreOptions`.

        Returns:
            `log_likelihood`, its `standard_error`, the `percentile` (0 to 100) of the row among
            the held-out rows of training, and `contributions.<column>`, which add up to the score;
            one line per row, in order.

        Raises:
            TableError: if the frame lacks a modelled column or a cell can not be read.
            SettingError: an option is out of range.
        """
        blocks = list(self.score_blocks(frame, draws, seed, **options))
        return pd.concat(blocks, ignore_index=True) if blocks else self.scorer.empty()

    def score_blocks(
        self,
        rows: pd.DataFrame | TableReader,
        draws: int = 100,
        seed: int = 0,
        **options: Any,
    ) -> Iterator[pd.DataFrame]:
        """The lines of `log_likelihood` in blocks, in order; a file of any size in constant memory.

        for lines in synthesizer.score_blocks(TableReader("rows.csv")): ...
        """
        return self.scorer.blocks(rows, ScoreOptions(draws, seed, **options))

    @property
    def scorer(self) -> RowScorer:
        """What scores rows."""
        return RowScorer(self.schema, self._constrained, self.training_record["held_out_scores"])

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
        """
        check_place(kind, row is not None, z is not None)
        if row is not None:
            with pointing_at_row():
                typed = parse_table(row_to_frame(row, self.schema), self.schema)
            refuse_beyond_limits(typed, self.schema)
            return self._maps.at_row(self.codec.encode(typed, blanks_unknown=True), seed)
        return self._maps.of_kind(kind, seed) if z is None else self._maps.at_latent(z)

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The posterior q(z|x) of rows: `mean_1` .. `mean_K`, `standard_deviation_1` .. `_K`.

        A blank cell is one that is not known. One line per row, in order.

        Raises:
            TableError: if the frame lacks a modelled column or a cell can not be read.
        """
        return encoding_block(self.model, self._encoded(frame))

    def encode_blocks(
        self, rows: pd.DataFrame | TableReader, among: range | None = None
    ) -> Iterator[pd.DataFrame]:
        """The lines of `encode` in blocks, in order; memory does not grow with a file's rows.

        With `among` only those of some rows, which begin at a multiple of PART_ROWS.
        """
        for _, typed in parsed_parts(rows, self.schema, among):
            yield encoding_block(self.model, self.codec.encode(typed, blanks_unknown=True))

    def manifold(self, n_steps: int = 15) -> Manifold:
        """What the decoder makes of a grid over the quantiles of a two-dimensional prior.

        Raises:
            InputError: the latent space is not two-dimensional, or n_steps is not 2 to 50.
        """
        return manifold_of(self.model, self.codec, n_steps)

    def _encoded(self, frame: pd.DataFrame) -> EncodedTable:
        return self.codec.encode(parse_table(frame, self.schema), blanks_unknown=True)

    def save(self, path: str | Path) -> None:
        """Writes the model file, whole or not at all."""
        write_artifact(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model file's content. Equal synthesizers have equal bytes."""
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema.to_json(),
            "codec": self.codec.to_json(),
            "config": dataclasses.asdict(self.config),
            "preset": self.preset,
            "training_record": self.training_record,
            "data_map": self._maps.data.to_json(),
            "constraints": self._constrained.constraints.to_json(),
        }
        return pack_tensors(self.model.state_dict(), manifest)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Reads a model file; it needs no GPU, whatever the model was trained on.

        Raises:
            ArtifactError: the file is missing, truncated, altered or of another version.
        """
        return cls.from_bytes(read_artifact(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Synthesizer:
        """The synthesizer of a model file's content. Raises: ArtifactError."""
        tensors, manifest = unpack_tensors(data)
        check_version(manifest)
        schema = TableSchema.from_json(manifest["schema"])
        codec = TableCodec.from_json(manifest["codec"])
        config = TrainingConfig(**manifest["config"])
        model = build_model(config, column_shapes(codec), seed=0)
        if config.prior == "mixture":
            n_components = len(tensors["prior.log_weight"])
            model.prior = GaussianMixturePrior(n_components, model.prior.d_latent)
        model.load_state_dict(tensors)
        return cls(
            schema,
            codec,
            model,
            config,
            preset=manifest["preset"],
            training_record=manifest["training_record"],
            data_map=DependencyMap.from_json(manifest["data_map"]),
            constraints=ConstraintSet.from_json(schema, manifest["constraints"]),
        )


def column_shapes(codec: TableCodec) -> list[ColumnShape]:
    """What the networks must know of the codec's columns, in its order."""
    return [
        ColumnShape(
            column.name,
            column.n_codes,
            point_code=column.n_codes - 1 if column.is_real else None,
            code_scores=column.scores if isinstance(column, QuantileCodec) else None,
            shaped_codes=column.shaped_codes if isinstance(column, QuantileCodec) else range(0),
        )
        for column in codec.columns
    ]


def _acceptance_of(record: Mapping[str, Any]) -> Acceptance:
    measured = record.get("constraint_acceptance")
    return NOT_MEASURED if measured is None else Acceptance.from_json(measured)


def _finishing(result: TrainingResult) -> Progress:
    return Progress(
        phase="finishing",
        fraction=1.0,
        epoch=result.n_epochs,
        epochs=result.n_epochs,
        bound_train=result.best.bound_train,
        bound_held_out=result.best.bound_held_out,
    )


def _training_record(config: TrainingConfig, result: TrainingResult, seed: int) -> dict[str, Any]:
    """What the manifest keeps of the training."""
    return {
        "seed": seed,
        "settings": dataclasses.asdict(config),
        "steps": result.n_steps,
        "best_step": result.best.step,
        "bound_train": result.best.bound_train,
        "bound_held_out": result.best.bound_held_out,
        "held_out_rows": len(result.held_out),
        "divergences": [dataclasses.asdict(divergence) for divergence in result.divergences],
        "history": [dataclasses.asdict(evaluation) for evaluation in result.history],
    }
