"""Manifests of older versions, as the library has them now: one upgrade for each version.

A model that was published stays readable. A change of the format raises `VERSION` and adds a
function here that makes a manifest of the version before into one of it, and a stored file of that
version to the tests.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from gcvae.errors import ArtifactError

FORMAT = "gcvae-model"
VERSION = 4
NO_MODEL = (
    "not a gcvae file, or a truncated one; a model is what `gcvae train`, `save` or a service's "
    "download wrote, and all of it"
)
Manifest = dict[str, Any]


def current_manifest(manifest: Mapping[str, Any]) -> Manifest:
    """The manifest as this version writes it; the one that is given stays as it is.

    Raises:
        ArtifactError: It is of another format, of a later version, or of one that was never
            published.
    """
    found = manifest.get("format"), manifest.get("version")
    known = {(FORMAT, version) for version in (*_UPGRADES, VERSION)}
    if found not in known:
        oldest = min(_UPGRADES)
        is_newer = isinstance(found[1], int) and found[1] > VERSION
        remedy = "; a newer gcvae wrote it: upgrade this one" if is_newer else ""
        raise ArtifactError(
            f"the file is {found[0]} version {found[1]}; "
            f"this library reads {FORMAT} versions {oldest} to {VERSION}{remedy}"
        )
    upgraded = copy.deepcopy(dict(manifest))
    while upgraded["version"] != VERSION:
        upgraded = _UPGRADES[upgraded["version"]](upgraded)
    return upgraded


def _from_version_3(manifest: Manifest) -> Manifest:
    """Version 4 lists the columns of unique combinations in their order and a map's nominal ones,
    of a dropped column keeps nothing but its name, has templates of identifiers and classes of
    decimals, smooth F of numbers and atoms in their order among a column's other numbers, and
    knows no `head_weight`, which was always 1 but for those who set it.

    Version 3 knew no rules; it kept those values by name, and its writer sorted the names; it
    numbered identifiers from a start, or behind a prefix, rounded all drawn numbers of a column
    alike, had an F that is straight between its knots, and for a copula a column's atoms were
    below all its other numbers.
    """
    for schema in (manifest["schema"], manifest["codec"]["schema"]):
        schema["columns"] = [
            {"name": column["name"], "drop": True} if column.get("drop") else column
            for column in schema["columns"]
        ]
    data_map = manifest["data_map"]
    data_map["nominal"] = [
        column["name"]
        for column in manifest["schema"]["columns"]
        if column["name"] in data_map["columns"] and column["kind"] == "categorical"
    ]
    constraints = manifest["schema"]["constraints"]
    for number, found in manifest["constraints"]["combinations"].items():
        names = dict.fromkeys(constraints[int(number)]["columns"])
        values = found.pop("values")
        found["columns"] = [
            {"name": name, "values": values[name]} for name in names if name in values
        ]
    codecs = manifest["codec"]["columns"]
    for column in manifest["codec"]["schema"]["columns"]:
        name, kind = column["name"], column.get("kind")
        if kind == "identifier" and name in codecs:
            codecs[name] = _keys_from(**codecs[name])
        if kind == "continuous" and name in codecs:
            codecs[name].get("line", codecs[name])["decimal_classes"] = None
        if "atoms" in codecs.get(name, {}):
            codecs[name]["is_ordered"] = False
        if "knots" in codecs.get(name, {}):
            straight = {part: codecs[name].pop(part) for part in ("knots", "heights")}
            codecs[name]["distribution"] = straight | {"is_smooth": False}
    manifest["config"].pop("head_weight", None)
    manifest["config"]["rules"] = "none"
    manifest["codec"]["rules"] = []
    return manifest | {"version": 4, "functions": [], "scoring": "full"}


def _keys_from(start: int, prefix: str | None) -> Manifest:
    """The template of keys that version 3 numbered: from `start` on, or behind the prefix.

    At least 10^15 numbers from the start on are no originals.
    """
    digits = "0123456789"
    if prefix is not None:
        before, low, size, width = prefix, 0, 10**8, 8
    else:
        width = len(str(abs(start)))
        before = "-" if start < 0 else ""
        low = start if start >= 0 else 1 - start - 10**15
        size = min(10**width, 2**63 - 1023) - start if start >= 0 else 10**15
    number = [digits] * width
    if width == 19:  # more numbers than are counted, but for one first digit
        first = low // 10**18
        low, size = low % 10**18, min(size, (first + 1) * 10**18 - low)
        number[0] = str(first)
    more = min(width, 17)
    tiers = [
        {"alphabets": [*before, *number], "low": low, "size": size},
        {
            "alphabets": [*before, digits[1:], *[digits] * more],
            "low": 0,
            "size": 9 * 10**more,
        },
    ]
    template = {
        "kind": "characters",
        "rows": 1000,
        "tiers": [tier | {"modulus": 1, "residues": []} for tier in tiers],
        "at": len(before),
        "step": 1,
    }
    return {"are_numbers": prefix is None, "templates": [template]}


_UPGRADES: dict[int, Callable[[Manifest], Manifest]] = {3: _from_version_3}
