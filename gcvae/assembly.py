"""An untrained model of a configuration: which objects it is made of, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gcvae.generators import generator_for
from gcvae.model import CopulaDecoder, GenerativeModel, PrincipalDirectionDecoder
from gcvae.networks import ColumnShape, Encoder
from gcvae.presets import TrainingConfig
from gcvae.priors import AutoregressiveMixturePrior, Prior, StandardNormalPrior
from gcvae.refinement import RefinedDecoder, Refinement

_POSTERIOR_SPREAD = 4.0
"""A learned prior does not hold posterior means near zero, and from far apart they tell more."""


def build_model(
    config: TrainingConfig, columns: Sequence[ColumnShape], seed: int
) -> GenerativeModel:
    """An untrained model of a settled configuration, its weights a function of the seed."""
    assert config.d_latent is not None, "settle() comes first"
    assert config.d_hidden is not None, "settle() comes first"
    widths = [config.d_hidden] * config.n_hidden_layers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator_for(seed, "weights").initial_seed())
        encoder = Encoder(columns, widths, config.d_latent, config.activation)
        decoder = _decoder(config, columns, widths)
        if config.prior == "autoregressive":
            encoder.spread(_POSTERIOR_SPREAD)
        return GenerativeModel(_prior(config), encoder, decoder)


def _prior(config: TrainingConfig) -> Prior:
    """The prior that the model is trained with; a mixture takes its place afterwards."""
    assert config.d_latent is not None, "settle() comes first"
    if config.prior == "autoregressive":
        return AutoregressiveMixturePrior(config.d_latent)
    return StandardNormalPrior(config.d_latent)


def _decoder(
    config: TrainingConfig, columns: Sequence[ColumnShape], widths: list[int]
) -> torch.nn.Module:
    assert config.d_latent is not None, "settle() comes first"
    layers = columns, config.d_latent, widths, config.activation
    if config.decoder == "principal-direction":
        return PrincipalDirectionDecoder(*layers)
    head = CopulaDecoder(*layers, config.rank, config.score_gradient, config.n_components)
    if not config.refinement:
        return head
    assert config.d_sum is not None, "settle() comes first"
    assert config.d_column is not None, "settle() comes first"
    refinement = Refinement(columns, head.marginals, widths[-1], config.d_sum, config.d_column)
    return RefinedDecoder(head, refinement)
