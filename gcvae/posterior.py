"""Draws of p(z | row), by importance from the encoder."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gcvae.codec import EncodedTable
from gcvae.errors import Problem, TableError
from gcvae.generators import normal, uniform
from gcvae.model import GenerativeModel
from gcvae.normal import log_normal_density
from gcvae.refinement import RefinedConditional


def posterior_draws(
    model: GenerativeModel,
    row: EncodedTable,
    n_draws: int,
    names: Sequence[str],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """z_s ~ q(z|x) with weights w_s proportional to p(x|z_s) p(z_s) / q(z_s|x), which sum to one.

    Blank cells are integrated out.

    Args:
        row: One row.
        names: Of the columns, for the error.

    Shape: (S, K), (S,).
    Raises: TableError for a row that the model gives no probability at any draw.
    """
    with torch.no_grad():
        eta, log_tau = model.encoder(row)
        eps = normal((n_draws, 1, eta.shape[-1]), generator).to(eta.dtype)
        z = eta + log_tau.exp() * eps
        log_q = (log_normal_density(eps) - log_tau).sum(-1)
        log_joint = _log_likelihood(model, row, z, generator) + model.prior.log_prob(z)
    log_weight = (log_joint - log_q).double()[:, 0]
    if bool(torch.isneginf(log_weight).all()):
        raise TableError(_impossible(row, names))
    return z[:, 0], torch.softmax(log_weight, 0)


def _log_likelihood(
    model: GenerativeModel, row: EncodedTable, z: Tensor, generator: torch.Generator
) -> Tensor:
    conditional = model.conditional(z)
    draws_blanks = isinstance(conditional, RefinedConditional) and not bool(row.observed.all())
    shape = (*z.shape[:-1], row.codes.shape[-1])
    noise = uniform(shape, generator, torch.float64) if draws_blanks else None
    return conditional.log_prob(row, noise)


def _impossible(row: EncodedTable, names: Sequence[str]) -> Problem:
    unseen = [name for name, code in zip(names, row.codes[0].tolist(), strict=True) if code < 0]
    return Problem(
        "the row has no probability under the model",
        "/row",
        column=unseen[0] if unseen else None,
        expected="cells such as the training table had" if unseen else "a row that it could draw",
    )
