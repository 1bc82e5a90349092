"""Kinds of dependency maps, their meaning and their limitations.

The module does not import torch, so that the service and the commands can list the kinds without
waiting for this import.
"""

from __future__ import annotations

KIND_NOTES: dict[str, tuple[str, ...]] = {
    "local": (
        "tau = (2/pi) arcsin rho of the decoder copula at one latent vector z: how columns move "
        "together among rows similar to this one; `spread` is the standard deviation "
        "over draws of z",
        "it does not describe other rows or the dependence through z, so that a pair may have the "
        "opposite sign in the table; it is computed from latent scores, not as tau-b of cells",
    ),
    "expected": (
        "tau = (2/pi) arcsin rho of the decoder copula, averaged over the prior of z (before "
        "hard rules are applied); `spread` is its standard deviation over z",
        "the dependence through z is not included, so that a pair may have the opposite sign in "
        "the table (see kind total); it is computed from latent scores, not as tau-b "
        "of cells",
    ),
    "total": (
        "Kendall's tau-b of synthetic rows: all dependence that the model has between two columns",
        "monotone dependence only: one that rises and falls has tau 0, but appears in `unsigned`; "
        "kind difference compares it with the training table",
    ),
    "data": (
        "Kendall's tau-b of the training table, computed during training",
        "it has sampling noise; dependence that is not monotone appears only in `unsigned`",
    ),
    "difference": (
        "kind total minus kind data: the error of the model",
        "both are estimated from samples: a difference within three standard errors is not "
        "significant",
    ),
}
KINDS = tuple(KIND_NOTES)
"""Names of all kinds of maps."""
MAPS_OF_MODEL = tuple(kind for kind in KINDS if kind != "local")
"""Names of the kinds that describe a whole model; a local map describes one row or one z."""
