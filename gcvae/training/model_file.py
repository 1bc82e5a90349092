"""Content of a model file, complete or minimal.

A complete file contains the model and the records of its training: settings and bounds, scores of
held-out rows, dependency map and counts of the training table. A minimal file contains only the
model, which is enough for generation, imputation and dependency maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from torch import Tensor

from gcvae.artifact.checks import Allocation, check_record, load_weights
from gcvae.artifact.file import pack_tensors
from gcvae.artifact.versions import FORMAT, VERSION
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.dependence.maps import DependencyMap
from gcvae.errors import ArtifactError
from gcvae.model.change_points import ChangePoints
from gcvae.model.decoders import GenerativeModel
from gcvae.model.level_functions import LevelFunction
from gcvae.model.priors import GaussianMixturePrior
from gcvae.sampling.hard_rules import HardRules
from gcvae.schema.columns import TableSchema
from gcvae.scoring.scoring_setting import FULL, checked_scoring
from gcvae.training.assembly import build_model, column_shapes, context_shapes
from gcvae.training.settings import SettledConfig, configure

_KEPT_OF_RECORD = ("preset", "frame", "hard_rule_acceptance", "differential_privacy")
"""Entries of the training record that a minimal file contains. They are settings, derive from
generated rows, or are covered by the privacy guarantee."""


@dataclass(frozen=True)
class ModelParts:
    """The parts of a trained model, most of which are attributes of `Synthesizer` too.

    Attributes:
        schema: Complete schema of the table.
        codec: Converter of rows between cells and integer codes or numbers.
        model: Trained networks.
        config: Resolved settings.
        preset: Name of the preset.
        training_record: Settings and results of training.
        data_map: Dependency map of the training table; None in a minimal file.
        hard_rules: Rules that all generated rows satisfy.
        context: Codec of the context (such as the parent row) of a conditional model; else None.
        scoring: Which scores of rows the model may return, one of `SCORINGS`.
        table_notes: Data-quality warnings; they are not saved.
    """

    schema: TableSchema
    codec: TableCodec
    model: GenerativeModel
    config: SettledConfig
    preset: str
    training_record: dict[str, Any]
    data_map: DependencyMap | None
    hard_rules: HardRules
    context: ContextCodec | None = None
    scoring: str = FULL
    table_notes: tuple[str, ...] = ()

    def minimal(self) -> Self:
        """Returns the parts of a minimal file, without the records of the training table."""
        record = {
            name: self.training_record[name]
            for name in _KEPT_OF_RECORD
            if name in self.training_record
        }
        return replace(
            self,
            codec=self.codec.without_counts(),
            training_record=record | {"is_minimal": True},
            data_map=None,
        )

    def to_bytes(self) -> bytes:
        """Returns the content of the file; equal parts give equal bytes."""
        names = [column.name for column in self.codec.columns]
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema.to_json(),
            "codec": self.codec.to_json(),
            "config": asdict(self.config),
            "preset": self.preset,
            "training_record": dict(self.training_record),
            "data_map": None if self.data_map is None else self.data_map.to_json(),
            "hard_rules": self.hard_rules.to_json(),
            "functions": [function.to_json(names) for function in self.model.decoder.functions],
            "change_points": [found.to_json(names) for found in self.model.decoder.change_points],
            "context": None if self.context is None else self.context.to_json(),
            "scoring": self.scoring,
        }
        return pack_tensors(self.model.state_dict(), manifest)

    @classmethod
    def of_parts(cls, tensors: Mapping[str, Tensor], manifest: Mapping[str, Any]) -> Self:
        """Returns the parts of a model from the tensors and the manifest of its file.

        Raises:
            ArtifactError: Parts of the manifest contradict each other, or the weights do not fit
                the model.
        """
        schema = TableSchema.from_json(manifest["schema"])
        codec = TableCodec.from_json(manifest["codec"])
        if codec.schema != schema:
            raise ArtifactError("the file's codec is of another schema than the file's")
        configure("default", manifest["config"])
        config = SettledConfig(**manifest["config"])
        given = manifest["context"]
        context = None if given is None else ContextCodec.from_json(given)
        record = manifest["training_record"]
        check_record(record)
        return cls(
            schema,
            codec,
            _model(codec, config, manifest, tensors, context),
            config,
            preset=manifest["preset"],
            training_record=record,
            data_map=_data_map(manifest["data_map"], codec, record),
            hard_rules=HardRules.from_json(schema, manifest["hard_rules"], codec.reduction),
            context=context,
            scoring=checked_scoring(manifest["scoring"]),
        )


def _model(
    codec: TableCodec,
    config: SettledConfig,
    manifest: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    context: ContextCodec | None,
) -> GenerativeModel:
    shapes = column_shapes(codec)
    functions = [LevelFunction.from_json(each, shapes) for each in manifest["functions"]]
    change_points = [ChangePoints.from_json(each, shapes) for each in manifest["change_points"]]
    with Allocation(tensors):
        given = context_shapes(context)
        model = build_model(config, shapes, 0, functions, change_points, given)
        if config.prior == "mixture":
            n_components = len(tensors["prior.log_weight"])
            model.prior = GaussianMixturePrior(n_components, model.prior.d_latent)
    load_weights(model, tensors)
    return model


def _data_map(
    document: Mapping[str, Any] | None, codec: TableCodec, record: Mapping[str, Any]
) -> DependencyMap | None:
    """Returns the dependency map of the training table; None for a minimal file. Raises
    ArtifactError if a complete file has no map, or the map has other columns than the codec."""
    if document is None:
        if not record.get("is_minimal"):
            raise ArtifactError("the file has no map of its table, and is not minimal")
        return None
    found = DependencyMap.from_json(document)
    if found.columns != tuple(column.name for column in codec.modelled):
        raise ArtifactError("the file's map is of other columns than its codec")
    return found
