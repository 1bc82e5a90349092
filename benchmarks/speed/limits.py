"""What no sampler can beat: the matrix products of a row, and the fastest writer of CSV.

The products are those of the networks as they are written down in docs/model.md, each weight once:
what is saved by tables, by leaving out the padding or by the last column's step is no part of them.
They are measured by torch's own product, and by that of oneDNN, which draws and scores ask.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pandas as pd
import polars
import pyarrow as pa
import torch
from pyarrow import csv

from benchmarks.speed.measures import cpu_seconds_of
from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.affine import affine

ROWS_AT_ONCE = 4096
Shape = tuple[int, int]


def products(model: GenerativeModel) -> list[tuple[str, Shape, int]]:
    """(which, (inputs, outputs), how many times) of the products that a drawn row takes."""
    decoder = model.decoder
    assert isinstance(decoder, AutoregressiveDecoder), "the presets default and fast have one"
    network, marginals = decoder.refinement, decoder.marginals
    n_columns, d_features, d_sum = network.add.shape
    d_column, d_context = network.inner.shape[-1], network.read.in_features
    n_real, n_mixture = len(network.real), 3 * marginals.n_components
    found = [
        ("trunk", (model.prior.d_latent, d_context), 1),
        ("trunk", (d_context, d_context), 1),
        ("read", (d_context, d_sum), 1),
        ("add", (d_features, d_sum), n_columns),
        ("narrow", (d_sum, d_column), n_columns),
        ("inner and outer", (d_column, d_column), 2 * n_columns),
        ("marginals' mixtures", (d_context, n_real * n_mixture), 1),
        ("mixtures", (d_column, n_mixture), n_real),
        ("bins", (d_column, network.steps.width), len(network.steps.points)),
    ]
    for at, (n_group, width) in network.groups:
        found.append(("marginals' logits", (d_context, n_group * width), 1))
        found.append(("logits", (d_column, width), len(at)))
    return [each for each in found if each[1][1] and each[2]]


def products_step(
    model: GenerativeModel, left_out: Sequence[str] = (), *, by_onednn: bool = False
) -> Callable[[], None]:
    """What computes the products of ROWS_AT_ONCE rows, but those left out, and nothing else."""
    matrices = [
        (torch.randn(ROWS_AT_ONCE, n_in), torch.randn(n_in, n_out))
        for which, (n_in, n_out), times in products(model)
        if which not in left_out
        for _ in range(times)
    ]
    if by_onednn:
        turned = [(rows, weight.T.contiguous()) for rows, weight in matrices]

        @torch.no_grad()
        def step() -> None:
            for rows, weight in turned:
                affine(rows, weight, None)

        return step
    placed = [(*pair, torch.empty(ROWS_AT_ONCE, pair[1].shape[1])) for pair in matrices]

    def plain_step() -> None:
        for rows, weight, out in placed:
            torch.mm(rows, weight, out=out)

    return plain_step


def writer_seconds(frame: pd.DataFrame) -> float:
    """CPU seconds that the faster of Arrow's and polars' writers takes for the typed rows."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    own = polars.DataFrame(table)
    return min(
        cpu_seconds_of(lambda: csv.write_csv(table, io.BytesIO())),
        cpu_seconds_of(lambda: own.write_csv(io.BytesIO())),
    )
