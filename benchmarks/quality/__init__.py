"""Fidelity, utility, privacy, likelihood and cost of models on real tables: `docs/quality.md`.

    python -m benchmarks.quality --tables adult,magic --models default,sdv-tvae --seeds 3

The measures themselves are `gcvae.evaluation`'s.
"""
