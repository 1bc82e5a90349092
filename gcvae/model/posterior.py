"""Samples the posterior p(z | row) by importance sampling."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import Problem, TableError
from gcvae.model.decoders import GenerativeModel
from gcvae.model.proposals import draw_latents
from gcvae.numerics.row_noise import RowNoise


def posterior_draws(
    model: GenerativeModel,
    row: EncodedTable,
    n_draws: int,
    names: Sequence[str],
    noise: RowNoise,
) -> tuple[Tensor, Tensor]:
    """Returns S = `n_draws` samples z_s for one row x, with importance weights that add up to one:
    weighted by them, the samples represent the posterior p(z|x). The weights are proportional to
    p(x|z_s) p(z_s) / q(z_s), with q the density from which `draw_latents` samples. Unobserved cells
    are integrated out.

    Args:
        row: Table of one encoded row.
        names: Names of the columns, for error messages.
        noise: Source of random numbers for one row.

    Shape: samples (S, K), weights (S,).

    Raises:
        TableError: The row has probability zero at every sample.
    """
    with torch.no_grad():
        latents = draw_latents(model, row, n_draws, [noise])
        z, log_ratio = latents.z[:n_draws], latents.log_ratio[:n_draws]
        of_cells = noise.of("cells").uniform(n_draws, row.codes.shape[1])
        log_prob = model.decoder.row_likelihoods()(row, z, of_cells)[..., -1]
    log_weight = (log_prob + log_ratio)[:, 0]
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
