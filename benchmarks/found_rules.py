"""What is found in a table: `python -m benchmarks.found_rules [--chance 20] [--tables flights]`.

With `--chance` the rules and steps found in that many tables of independent columns, where there
are no rules; with `--tables` those of the tables of `benchmarks.rules`. Each line has the CPU
seconds that the search took.
"""

from __future__ import annotations

import argparse
import time

import pandas as pd

from benchmarks.known_truth.independent_columns import draw_independent
from benchmarks.rules import TABLES
from gcvae import infer_schema
from gcvae.cells.values import parse_table
from gcvae.rules.search import RuleFinding, find_rules
from gcvae.rules.splits import Split, splits_of


def search(frame: pd.DataFrame) -> tuple[list[RuleFinding], list[Split], float]:
    """The rules and the splits of a table of text cells, and the CPU seconds of the search."""
    schema = infer_schema(frame).schema
    typed = parse_table(frame, schema)
    started = time.process_time()
    rules = find_rules(typed, schema)
    splits = splits_of(schema)
    return rules, splits, time.process_time() - started


def show(title: str, frame: pd.DataFrame) -> int:
    """Prints what is found. Returns: the number of rules."""
    rules, splits, seconds = search(frame)
    print(
        f"{title}, {len(frame):,} rows: {len(rules)} rules, {len(splits)} splits; "
        f"{seconds:.1f} CPU s",
        flush=True,
    )
    for finding in rules:
        print(f"  {finding.rule}  ({finding.kept:,} of {finding.rows:,})")
    for split in splits:
        print(f"  steps      {split.original.name}: {split.steps}, ending {split.ending}")
    return len(rules)


def main() -> None:
    """Prints what is found in the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chance", type=int, default=0, help="tables of independent columns")
    parser.add_argument("--tables", default="", help=f"of {', '.join(TABLES)}")
    given = parser.parse_args()
    n_rules = [show(f"independent {i}", draw_independent(i)) for i in range(given.chance)]
    if n_rules:
        print(f"tables of independent columns with a rule: {sum(n > 0 for n in n_rules)}")
    for name in filter(None, given.tables.split(",")):
        show(name, TABLES[name](None).train)


if __name__ == "__main__":
    main()
