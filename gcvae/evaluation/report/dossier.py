"""The dossier of a release: a report, extended for a data protection impact assessment.

It answers the three questions of the Article 29 Working Party, Opinion 05/2014 on anonymisation
techniques (WP 216), from the attacks of the report.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from gcvae.evaluation.report.attacks import METHODS
from gcvae.evaluation.report.histograms import LEAST_SHOWN
from gcvae.evaluation.report.page import rendered
from gcvae.evaluation.report.parts import MOST_VISIBLE, Verdict, worst

_PROGRAMS = "gcvae", "numpy", "pandas", "scikit-learn", "scipy", "torch"
_ISOLATED = "_isolated"
_SINGLING_OUT = "singling_out", "copies", "copies_isolated"
_QUESTIONS = (
    (
        "Singling out",
        "Is it still possible to single out an individual?",
        _SINGLING_OUT,
    ),
    (
        "Linkability",
        "Is it still possible to link records relating to an individual?",
        ("linkability",),
    ),
    (
        "Inference",
        "Can information be inferred concerning an individual?",
        ("attribute_inference",),
    ),
)
"""Name, wording and attacks of each question of the opinion."""
_ANSWERS = {
    "green": "No attack did it more often for training rows than for other rows.",
    "amber": "To some degree: an attack did it more often for training rows than for other rows.",
    "red": "Yes: an attack did it much more often for training rows than for other rows.",
    "not_measured": "Not measured: the part “Privacy” of the report tells why.",
}
_SCORES = {
    "full": "all scores of rows, by which membership can be guessed",
    "flag": "only whether a row is rare",
    "off": "none",
}


@dataclass(frozen=True)
class Release:
    """Information on a release that its dossier contains in addition to the report.

    Attributes:
        purpose: What the synthetic rows or the model are released for.
        retention: How long they and the report are kept; None if it is not stated.
        schema: Schema of the model, as JSON.
        record: Training record of the model.
        scoring: Which scores of rows the model returns: `full`, `flag` or `off`.
        digests: SHA-256 digests of files, by description of the file.
        command: Command or request that makes the same report again.
        subject: Line under the title, such as file names and a date.
    """

    purpose: str
    retention: str | None
    schema: Mapping[str, Any]
    record: Mapping[str, Any]
    scoring: str
    digests: Mapping[str, str]
    command: str
    subject: str


def dossier_page(report: Mapping[str, Any], release: Release) -> str:
    """Returns the dossier of a release as one HTML page without scripts or external files.

    It contains the page of the report (JSON, from `TableReport.to_json`). Of the table, it shows
    the names and kinds of the columns and their numbers of categories. It shows no cell that the
    report does not show.
    """
    return rendered(
        "dossier.html.jinja",
        report=report,
        subject=release.subject,
        release=release,
        answers=[_answer(report["privacy"], *question) for question in _QUESTIONS],
        methods=_methods(report["privacy"]),
        risks=_risks(report["privacy"]),
        protections=_protections(release),
        columns=[_column(column, release.record) for column in release.schema["columns"]],
        training=[*_training(release.record), *_versions()],
    )


def _answer(
    privacy: Mapping[str, Any], name: str, question: str, attacks: Sequence[str]
) -> dict[str, Any]:
    """Returns the verdict and the answer, in words, to a question on privacy, with the results of
    the `attacks` that determine it."""
    found = [attack for attack in privacy.get("attacks", ()) if attack["name"] in attacks]
    verdict, answer = _verdict_of(privacy, found), ""
    if privacy.get("exact_copies", {}).get("are_real_rows"):
        verdict, answer = "red", "Yes: the judged table contains real rows."
    elif attacks is _SINGLING_OUT and privacy["replay"]["cells"]:
        verdict, answer = "red", "Yes: it contains personal data or rare texts of real rows."
    return {
        "name": name,
        "question": question,
        "verdict": verdict,
        "answer": answer or _ANSWERS[verdict],
        "attacks": found,
    }


def _verdict_of(privacy: Mapping[str, Any], attacks: Sequence[Mapping[str, Any]]) -> Verdict:
    """Returns the worst verdict of some attacks; `not_measured` if the attacks are not meaningful,
    or would have found only a very large leak."""
    if not attacks or privacy["epsilon"] is None:
        return "not_measured"
    verdict = worst(attack["verdict"] for attack in attacks)
    detectable_auc = min(attack["area_that_would_have_been_seen"] for attack in attacks)
    return "not_measured" if verdict == "green" and detectable_auc > MOST_VISIBLE else verdict


def _methods(privacy: Mapping[str, Any]) -> dict[str, str]:
    return {
        attack["label"]: METHODS[attack["name"]]
        for attack in privacy.get("attacks", ())
        if not attack["name"].endswith(_ISOLATED)
    }


def _risks(privacy: Mapping[str, Any]) -> list[str]:
    said = [privacy["sentence"], privacy["advice"]]
    rates = [
        (one["false_positive_rate"], -one["rate"], -one["interval"][1])
        for attack in privacy.get("attacks", ())
        for one in attack["true_positive_rates"]
        if one["rate"] is not None and not attack["name"].endswith(_ISOLATED)
    ]
    if rates and privacy["epsilon"] is not None:
        false, rate, most = (abs(x) for x in min(rates))
        said.append(
            f"The strongest attack that takes {100 * false:g} % of the unseen rows for training"
            f" rows identifies {100 * rate:.2g} % of the training rows, and most likely less than"
            f" {100 * most:.2g} %."
        )
    for figure in privacy["figures"]:
        if figure["name"] == "epsilon" and figure["value"] is not None:
            said.append(f"{figure['label']} {figure['value']:.2g} ({figure['note']}).")
    return [sentence for sentence in said if sentence]


def _protections(release: Release) -> list[tuple[str, str]]:
    """Returns (name of a protection, its state) pairs for the training and for the model's file."""
    record, columns = release.record, release.schema["columns"]
    settings, guarantee = record.get("settings", {}), record.get("differential_privacy")
    named = {
        "Personal columns, made up": [c["name"] for c in columns if c.get("personal")],
        "Identifiers, replaced by new keys": [
            c["name"] for c in columns if c["kind"] == "identifier" and not c.get("drop")
        ],
        "Dropped columns": [c["name"] for c in columns if c.get("drop")],
    }
    rows = settings.get("rare_level_rows", 1) if settings.get("levels") == "learned" else 1
    cells = _count(sum(record.get("rows_of_withheld_levels", {}).values())) or "no"
    found = [
        (
            "Differential privacy",
            f"ε = {guarantee['epsilon']:g}, δ = {guarantee['delta']:g}, for"
            f" {guarantee['neighbours']}"
            if guarantee
            else "off: nothing is proved",
        )
    ]
    if settings:
        found += [
            (
                "Categories, extremes and repeated numbers of few rows",
                f"suppressed below {rows} rows ({cells} cells had such a category)"
                if rows > 1
                else "kept",
            ),
            ("Memorisation", f"memory: {settings['memory']}"),
            ("Rows held out of training", f"{100 * settings['report_share']:g} %"),
        ]
    else:
        found.append(("Training settings", "not recorded: the model's file is minimal"))
    found += [(name, ", ".join(names) or "none") for name, names in named.items()]
    return [*found, ("Scores that the model returns", _SCORES[release.scoring])]


def _column(column: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entry of a column in the dossier's data dictionary, given the training record."""
    levels, name = column.get("levels"), column["name"]
    if column.get("drop"):
        return {"name": name, "kind": "dropped", "content": "neither learned nor generated"}
    content = {
        "identifier": "new keys",
        "constant": "one value",
        "integer": "whole numbers",
        "continuous": "numbers",
        "datetime": "dates or times",
    }.get(column["kind"], f"{len(levels or ()):,} categories")
    if decimals := column.get("decimals"):
        content += f" with {decimals} decimal{'s' if decimals > 1 else ''}"
    if column.get("personal"):
        content = f"made-up personal data: {column['personal'].replace('_', ' ')}"
    return {
        "name": name,
        "kind": column["kind"],
        "content": content + ("; may be missing" if column["missing"]["allowed"] else ""),
        "suppressed": _count(record.get("rows_of_withheld_levels", {}).get(name, 0)),
    }


def _count(n: int) -> str:
    """Returns a count as text, empty for 0; small ones are hidden, to disclose no single row."""
    if 0 < n < LEAST_SHOWN:
        return f"fewer than {LEAST_SHOWN}"
    return f"{n:,}" if n else ""


def _versions() -> list[tuple[str, str]]:
    return [("python", platform.python_version()), *((name, version(name)) for name in _PROGRAMS)]


def _training(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = {
        "preset": "preset",
        "rows": "training rows",
        "seed": "seed of the training",
        "steps": "steps",
        "device": "device",
        "table_sha256": "SHA-256 of the training rows, as read",
    }
    return [(words, str(record[name])) for name, words in names.items() if name in record]
