"""Small models in float64 whose decoder is a constant or random function of z, for the laws."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for, normal
from gcvae.training.assembly import build_model
from gcvae.training.settings import configure, settle


def levels(n: int, name: str = "level") -> ColumnShape:
    return ColumnShape(name, n_codes=n, point_code=None)


def number(name: str = "number") -> ColumnShape:
    return ColumnShape(name, n_codes=1, point_code=0)


def number_or_missing(name: str = "number") -> ColumnShape:
    return ColumnShape(name, n_codes=2, point_code=1)


def rows_of(
    codes: Sequence[Sequence[int]], values: Sequence[Sequence[float]] | None = None
) -> EncodedTable:
    code_tensor = torch.tensor(codes, dtype=torch.int32)
    value_tensor = torch.zeros(code_tensor.shape, dtype=torch.float64)
    if values is not None:
        value_tensor = torch.tensor(values, dtype=torch.float64)
    return EncodedTable(code_tensor, value_tensor, torch.ones_like(code_tensor, dtype=torch.bool))


def random_model(
    preset: str,
    columns: Sequence[ColumnShape],
    *,
    strength: float = 1.0,
    seed: int = 0,
    **settings: object,
) -> GenerativeModel:
    """An untrained model whose heads are scaled by `strength`, in float64."""
    config = configure(preset, {"d_latent": 2, "d_hidden": 8, **settings})
    model = build_model(settle(config, n_rows=100, n_columns=len(columns)), columns, seed).double()
    with torch.no_grad():
        for name, parameter in model.decoder.named_parameters():
            if not name.startswith("trunk"):
                parameter.mul_(strength)
    return model


def latents(n: int, seed: int = 0) -> Tensor:
    return normal((n, 2), generator_for(seed, "latents")).double()
