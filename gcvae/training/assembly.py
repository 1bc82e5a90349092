"""Builds an untrained model: the networks, marginals and prior that a configuration selects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from gcvae.model.change_points import ChangePoints
from gcvae.model.decoders import CopulaDecoder, Decoder, GenerativeModel
from gcvae.model.level_functions import LevelFunction
from gcvae.model.networks import ColumnShape, Encoder
from gcvae.model.priors import AutoregressiveMixturePrior, Prior, StandardNormalPrior
from gcvae.numerics.generators import generator_for
from gcvae.paper.principal_direction import PrincipalDirectionDecoder
from gcvae.training.settings import SettledConfig

_POSTERIOR_SPREAD = 4.0
"""Factor on the initial posterior means if the prior is learned and so does not pull them to zero.
"""


def column_shapes(codec: TableCodec) -> list[ColumnShape]:
    """Returns the properties of the codec's columns that determine the sizes of the networks'
    layers."""
    column_index, parents = codec.places, codec.reduction.parents
    return [
        ColumnShape(
            column.name,
            column.n_codes,
            point_code=column.n_codes - 1 if column.is_real else None,
            code_scores=column.scores if isinstance(column, QuantileCodec) else None,
            discrete_codes=column.discrete_codes if isinstance(column, QuantileCodec) else range(0),
            parents=tuple(
                column_index[name] for name in parents.get(column.name, ()) if name in column_index
            ),
            other_code_values=tuple(column.code_values.tolist())
            if isinstance(column, QuantileCodec)
            else None,
        )
        for column in codec.columns
    ]


def context_shapes(codec: ContextCodec | None) -> list[ColumnShape]:
    """Returns the properties of a context's columns that determine the sizes of the networks'
    layers; an empty list for a model that is not conditioned on a context."""
    columns = () if codec is None else codec.columns
    return [
        ColumnShape(
            column.name,
            column.n_codes,
            point_code=column.n_codes - 1 if scores else None,
            code_scores=scores,
            other_code_values=(-math.inf, *scores[1:-1]) if scores else None,
        )
        for column in columns
        for scores in [column.code_scores]
    ]


def build_model(
    config: SettledConfig,
    columns: Sequence[ColumnShape],
    seed: int,
    functions: Sequence[LevelFunction] = (),
    change_points: Sequence[ChangePoints] = (),
    context: Sequence[ColumnShape] = (),
) -> GenerativeModel:
    """Returns an untrained model.

    Args:
        columns: Properties of the table's columns.
        functions: Functional dependencies that an autoregressive decoder enforces.
        change_points: Numbers at which densities of an autoregressive decoder are discontinuous.
        context: Columns on which the model is conditional; empty for an unconditional model.
    """
    widths = [config.d_hidden] * config.n_hidden_layers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator_for(seed, "weights").initial_seed())
        encoder = Encoder(columns, widths, config.d_latent, config.activation)
        decoder = _decoder(config, columns, widths, functions, change_points, context)
        if config.prior == "autoregressive":
            encoder.spread(_POSTERIOR_SPREAD)
        return GenerativeModel(_prior(config), encoder, decoder)


def _prior(config: SettledConfig) -> Prior:
    """Returns the prior for training. With the setting `prior` = `mixture`, a Gaussian mixture
    replaces the standard normal prior after training."""
    if config.prior == "autoregressive":
        return AutoregressiveMixturePrior(config.d_latent)
    return StandardNormalPrior(config.d_latent)


def _decoder(
    config: SettledConfig,
    columns: Sequence[ColumnShape],
    widths: list[int],
    functions: Sequence[LevelFunction],
    change_points: Sequence[ChangePoints],
    context: Sequence[ColumnShape],
) -> Decoder:
    layers = columns, config.d_latent, widths, config.activation
    in_unit = config.encoding == "unit"
    if config.decoder == "principal-direction":
        return PrincipalDirectionDecoder(*layers, means_in_unit=in_unit)
    head = CopulaDecoder(
        *layers,
        config.rank,
        config.score_gradient,
        config.n_components,
        in_unit,
        context=context,
    )
    if not config.refinement:
        return head
    network = AutoregressiveNetwork(
        columns,
        head.marginals,
        head.d_hidden,
        config.d_sum,
        config.d_column,
        functions,
        change_points,
    )
    return AutoregressiveDecoder(head, network)
