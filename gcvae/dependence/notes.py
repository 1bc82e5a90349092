"""Kinds of dependency maps, their meaning and their limitations.

The module does not import torch, because the service and the commands list the kinds.
"""

from __future__ import annotations

KIND_NOTES: dict[str, tuple[str, ...]] = {
    "local": (
        "tau = (2/pi) arcsin rho of the decoder copula at one place of the latent space: how the "
        "columns move together in the neighbourhood of one row; `spread` is over the draws of z",
        "says nothing of other rows, nor of what tells neighbourhoods apart: a pair may well have "
        "the other sign in the table; it is of latent scores, not the tau-b of tied cells",
    ),
    "expected": (
        "tau = (2/pi) arcsin rho of the decoder copula, averaged over the prior of z (under "
        "hard rules, of rows before they are checked); `spread` is its standard deviation over z",
        "what is left once z is known: the dependence that runs through z is not in it, and a pair "
        "may well have the other sign in the table: see kinds total and between; it is of latent "
        "scores, not the tau-b of tied cells",
    ),
    "within": (
        "E_z Cov[s | z] of the normal scores s of rows drawn from the model, several for each z, "
        "as a share of correlation: within + between = the correlation of s; on the diagonal the "
        "share of the column's variance",
        "no tau: (2/pi) arcsin holds for the sum of both parts only; the split is the model's, and "
        "another model of the same table may put the same dependence into the other part",
    ),
    "between": (
        "Cov_z E[s | z] of the normal scores s of rows drawn from the model, several for each z, "
        "as a share of correlation: within + between = the correlation of s; on the diagonal the "
        "share of the column's variance",
        "no tau: (2/pi) arcsin holds for the sum of both parts only; the split is the model's, and "
        "another model of the same table may put the same dependence into the other part",
    ),
    "total": (
        "tau-b of rows drawn from the model: all of their dependence, whatever its path",
        "what the model holds, right or wrong (see kind difference), of pairs, and monotone: a "
        "dependence that rises and falls has tau 0, but is in `unsigned`",
    ),
    "data": (
        "tau-b of the training table, computed when the model was trained",
        "no model: sampling noise is in it, and dependence that is not monotone only in `unsigned`",
    ),
    "difference": (
        "total less data: where the model is off",
        "both are samples: a difference within three standard errors says nothing",
    ),
}
KINDS = tuple(KIND_NOTES)
"""Every kind of map."""
MAPS_OF_MODEL = tuple(kind for kind in KINDS if kind != "local")
"""Kinds that need no row."""
