"""Reads the command-line options that specify conditions on generated rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files.json_texts import read_json
from gcvae_cli.inputs import existing_file


def read_conditions(
    given: str | None,
    given_rows: Path | None,
    distribution: str | None,
    encoding: str | None = None,
) -> dict[str, Any]:
    """Returns the conditions as arguments of `Synthesizer.sampler`, without absent ones.

    Args:
        given: `--given`: JSON, or @ and the path of a JSON file; None if absent.
        given_rows: `--given-rows`: path of a table of known cells; None if absent.
        distribution: `--distribution`: JSON, or @ and the path of a JSON file; None if absent.
        encoding: Text encoding of `given_rows`; None for UTF-8.

    Raises:
        WrongUsageError: A condition is not a JSON object, or its file does not exist.
        TableError: The file `given_rows` is not a table.
    """
    from gcvae import read_table

    conditions = {
        "given": _read_object(given, "--given"),
        "given_rows": None if given_rows is None else read_table(given_rows, encoding=encoding),
        "distribution": _read_object(distribution, "--distribution"),
    }
    return {name: condition for name, condition in conditions.items() if condition is not None}


def number_of_rows(rows: int | None, given_rows: Any) -> int:
    """Returns the number of rows to generate, from `--rows` or the length of `--given-rows`.

    Args:
        rows: `--rows`; None if absent.
        given_rows: Table of known cells; None if absent.

    Raises:
        WrongUsageError: Both are absent, or the numbers differ.
    """
    if given_rows is None:
        if rows is None:
            raise WrongUsageError("--rows is missing: give the number of rows to generate")
        return rows
    if rows not in (None, len(given_rows)):
        raise WrongUsageError(
            f"--rows {rows}: --given-rows has {len(given_rows)} rows; leave --rows out"
        )
    return len(given_rows)


def report_condition(summary: Mapping[str, Any]) -> None:
    """Prints statistics of the conditions, such as their probability, to standard error.

    Args:
        summary: Result of `Sampler.summary`; empty without conditions, which prints nothing.
    """
    if summary:
        known = ", ".join(f"{name.replace('_', ' ')} {n:.4g}" for name, n in summary.items())
        print(f"gcvae: {known}", file=sys.stderr)


_EXAMPLE = """write it as '{"age": 40}', or @FILE"""


def _text_in(path: Path) -> str:
    existing_file(path)
    return path.read_text(encoding="utf-8")


def _read_object(text: str | None, option: str) -> dict[str, Any] | None:
    """Returns the JSON object in an option's text, or in the file named after `@`."""
    if text is None:
        return None
    try:
        if text.startswith("@"):
            text = _text_in(Path(text[1:]))
        document = read_json(text)
    except ValueError as error:
        raise WrongUsageError(f"{option}: not valid JSON ({error}); {_EXAMPLE}") from None
    if not isinstance(document, dict):
        raise WrongUsageError(f"{option}: {text[:40]} is not a JSON object; {_EXAMPLE}")
    return document
