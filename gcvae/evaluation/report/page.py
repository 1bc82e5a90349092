"""A report as one HTML page: no script, no other file, no host."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any


def html_page(report: Mapping[str, Any]) -> str:
    """The page of a report's JSON document."""
    parts = "".join(
        f"<h2>{name.title()}: {escape(part['verdict'])}</h2><p>{escape(part['sentence'])}</p>"
        for name in ("fidelity", "utility", "likelihood", "privacy")
        for part in [report[name]]
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>Report</title><body>{parts}</body></html>"
    )
