"""Samples the posterior p(z | row) by importance sampling from the encoder's q(z | row)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import Problem, TableError
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import normal, uniform
from gcvae.numerics.normal import log_normal_density


def posterior_draws(
    model: GenerativeModel,
    row: EncodedTable,
    n_draws: int,
    names: Sequence[str],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Returns S = `n_draws` samples z_s ~ q(z|x) for one row x, with importance weights
    proportional to p(x|z_s) p(z_s) / q(z_s|x), which add up to one. Unobserved cells are integrated
    out.

    Shape: samples (S, K), weights (S,).

    Raises:
        TableError: The row has probability zero at every sample; `names` are those of the columns.
    """
    with torch.no_grad():
        eta, log_tau = model.encoder(row)
        eps = normal((n_draws, 1, eta.shape[-1]), generator).to(eta.dtype)
        z = eta + log_tau.exp() * eps
        log_q = (log_normal_density(eps) - log_tau).sum(-1)
        noise = uniform((n_draws, *row.codes.shape), generator, torch.float64)
        log_prob = model.decoder.row_likelihoods()(row, z, noise)[..., -1]
        log_joint = log_prob + model.prior.log_prob(z)
    log_weight = (log_joint - log_q).double()[:, 0]
    if bool(torch.isneginf(log_weight).all()):
        raise TableError(_impossible(row, names))
    return z[:, 0], torch.softmax(log_weight, 0)


def _impossible(row: EncodedTable, names: Sequence[str]) -> Problem:
    unseen = [name for name, code in zip(names, row.codes[0].tolist(), strict=True) if code < 0]
    return Problem(
        "the row has no probability under the model",
        "/row",
        column=unseen[0] if unseen else None,
        expected="cells such as the training table had" if unseen else "a row that it could draw",
    )
