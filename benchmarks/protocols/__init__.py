"""The two published protocols of detection, beside published figures: `docs/protocols.md`.

    python -m benchmarks.protocols --tables adult,magic --seeds 3

Both are written anew from their descriptions. They need XGBoost (extra `protocols`).
"""
