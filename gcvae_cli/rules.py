"""Prints rules between columns that were inferred from a table."""

from __future__ import annotations

import sys
from typing import Any


def report_rule(found: dict[str, Any]) -> None:
    """Prints a rule to standard error: its formula, how many rows satisfy it, and the first lines
    that violate it.

    Args:
        found: The rule as JSON. `formula` is its expression, `rows` the number of rows to which it
            applies, and `kept` the number of these rows that satisfy it. `exceptions` lists the
            first rows that violate it.
    """
    broken = found["exceptions"]
    place = "row" if any(where["line"] is None for where in broken) else "line"
    places = [where[place] for where in broken]
    but = f"; not in {place}s {', '.join(map(str, places))}" if places else ""
    more = ", ..." if found["rows"] - found["kept"] > len(places) else ""
    held = f"{found['kept']:,} of {found['rows']:,} rows" if found["rows"] else "applies to no row"
    print(f"gcvae: rule: {found['formula']} ({held}{but}{more})", file=sys.stderr)
