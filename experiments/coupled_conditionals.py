"""The single-model form: the copula on the refinement's own conditional distributions.

    p(x|z) = c_Psi(z)(u) prod_j p_j(x_j | x_<j, z),   u_j = F_j(x_j | x_<j, z)

The map x -> u is triangular, so this is a density. The default instead trains the copula beside the
refinement, on the marginals at z. Here both are trained alike and compared by held-out nats per
row: `python -m experiments.coupled_conditionals TRAIN.csv TEST.csv [--seeds 3]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gcvae import infer_schema, read_table
from gcvae.assembly import build_model
from gcvae.bounds import iwae_bound
from gcvae.codec import EncodedTable, TableCodec
from gcvae.fitted_priors import mixture_prior
from gcvae.generators import generator_for
from gcvae.model import GenerativeModel
from gcvae.networks import Dropout
from gcvae.presets import TrainingConfig, configure, settle
from gcvae.refinement import RefinedConditional, RefinedDecoder
from gcvae.synthesizer import column_shapes
from gcvae.tables import parse_table
from gcvae.training import train

_N_DRAWS, _N_JITTERS, _BLOCK_ROWS, _MOST_ROWS = 50, 10, 64, 2_000


@dataclass(frozen=True)
class CoupledConditional:
    """c_Psi(z)(u) prod_j p_j(x_j | x_<j, z), by the continuous extension of discrete cells."""

    refined: RefinedConditional

    @property
    def loadings(self) -> Tensor | None:
        """Of the copula."""
        return self.refined.loadings

    @property
    def order(self) -> Sequence[int]:
        """The refinement's."""
        return self.refined.order

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """log p(x|z) with one jitter. Shape: rows (n, D), jitter (..., n, D) -> (..., n)."""
        return self.log_prefixes(rows, None, jitter)[..., -1]

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """The same of the first column in `order`, of the first two, and so on. (..., n, D)."""
        assert jitter is not None, "the coupled form has no exact value"
        refined = self.refined
        outputs = refined.outputs + refined.refinement(refined.context, rows, refined.dropout)
        marginals = refined.marginals
        cells = marginals.cells(marginals.parameters_of(outputs), rows)
        scores = cells.jittered_scores(jitter)
        copula, order = refined.head.copula, torch.tensor(list(self.order))
        rank = order.argsort()
        log_copula = [
            copula.log_density(scores, rows.observed & (rank <= j)) for j in range(len(rank))
        ]
        return cells.log_prob[..., order].cumsum(-1) + torch.stack(log_copula, -1)

    def correlation(self) -> Tensor:
        """Of the copula. Shape: (..., D, D)."""
        return self.refined.correlation()


class CoupledDecoder(RefinedDecoder):
    """z -> the coupled conditional, which is not drawn from: only its bound is compared."""

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> CoupledConditional:  # type: ignore[override]
        """p(x|z)."""
        return CoupledConditional(super().forward(z, dropout))


def main() -> None:
    """Prints one line for each seed and form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    frame = read_table(given.train)
    schema = infer_schema(frame).schema
    typed = parse_table(frame, schema)
    codec = TableCodec.fit(typed, schema, numbers="quantile", levels="learned")
    test = codec.encode(parse_table(read_table(given.test), schema))
    test = test.take((test.codes >= 0).all(1).nonzero()[:_MOST_ROWS, 0])
    print("seed  form      nats per row (standard error)  mean |rho|")
    for seed in range(given.seeds):
        for form in ("default", "coupled"):
            config = settle(configure("default"), n_rows=len(typed), n_columns=len(codec.columns))
            model = fitted(config, codec, codec.encode(typed), form, seed)
            print(f"{seed:4d}  {form:8s}  {figures(model, codec, test, form, seed)}", flush=True)


def fitted(
    config: TrainingConfig, codec: TableCodec, rows: EncodedTable, form: str, seed: int
) -> GenerativeModel:
    """A trained model of either form, its prior fitted; not calibrated."""
    model = build_model(config, column_shapes(codec), seed)
    model.marginals.start_at(rows.code_counts)
    decoder = model.decoder
    assert isinstance(decoder, RefinedDecoder)
    if form == "coupled":
        model.decoder = CoupledDecoder(decoder.head, decoder.refinement)
    result = train(model, rows, config, seed=seed)
    model.prior = mixture_prior(model, rows, result.held_out, seed)
    return model.eval()


def figures(
    model: GenerativeModel, codec: TableCodec, rows: EncodedTable, form: str, seed: int
) -> str:
    """Mean of minus the importance-weighted bound, and how strong the copula is."""
    generator = generator_for(seed, "comparison")
    n_jitters = _N_JITTERS if form == "coupled" else 0
    with torch.no_grad():
        bounds = [
            iwae_bound(
                model, rows.take(index), generator, n_draws=_N_DRAWS, n_jitters=n_jitters
            ).bound
            for index in torch.arange(len(rows)).split(_BLOCK_ROWS)
        ]
        z = model.prior.sample(500, generator)
        correlation = model.conditional(z).correlation()
    scores = torch.cat(bounds) - codec.log_units(rows)
    d = correlation.shape[-1]
    strength = (correlation.abs().sum((-2, -1)) - d).mean() / (d * (d - 1))
    error = scores.std() / len(scores) ** 0.5
    return f"{float(-scores.mean()):.3f} ({float(error):.3f})  {float(strength):.3f}"


if __name__ == "__main__":
    main()
