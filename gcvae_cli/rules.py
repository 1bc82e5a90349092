"""Rules that were found in a table, as lines for people."""

from __future__ import annotations

import sys
from typing import Any


def report_rule(found: dict[str, Any]) -> None:
    """A rule in words, how often it holds, and the first lines that break it."""
    places = [where["line"] or where["row"] for where in found["exceptions"]]
    lines = bool(places) and found["exceptions"][0]["line"] is not None
    but = f"; not in {'lines' if lines else 'rows'} {', '.join(map(str, places))}" if places else ""
    more = ", ..." if found["rows"] - found["kept"] > len(places) else ""
    held = f"{found['kept']:,} of {found['rows']:,} rows"
    print(f"gcvae: rule: {found['formula']} ({held}{but}{more})", file=sys.stderr)
