"""How likely rows are that a model of few rows never saw, and the rows that it was trained on.

    python -m benchmarks.unseen_rows [--tables auto:261,adult:300,adult:1200,...] [--seeds 0,1,2]

Each fit takes so many rows of a table, another part and another start for each seed. It prints the
mean nats per row of fresh rows and of training rows, numbers counted by their density. Kinds and
levels are those of the whole table. The same command on two commits compares them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.quality.tables import data_folder, load_table
from gcvae import Synthesizer, infer_schema
from gcvae.schema.columns import TableSchema

_TABLES = "auto:261,adult:300,adult:1200,shoppers:300,shoppers:1200,magic:300,magic:1200"


def main() -> None:
    """Fits, scores and prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen_rows", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--tables", default=_TABLES)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--fresh", type=int, default=600, help="rows to score, at most")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--draws", type=int, default=50)
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for part in given.tables.split(","):
        name, n_rows = part.split(":")
        source = load_table(name, given.data)
        both = pd.concat([source.train, source.test], ignore_index=True)
        schema = infer_schema(both).schema
        found = []
        for seed in (int(seed) for seed in given.seeds.split(",")):
            rows = both.iloc[np.random.default_rng(seed).permutation(len(both))]
            seen, fresh = rows[: int(n_rows)], rows[int(n_rows) : int(n_rows) + given.fresh]
            found.append(measured(seen, fresh, schema, given.preset, given.draws, seed))
            print(json.dumps({"table": part, "seed": seed} | found[-1]), flush=True)
        means = {name: round(float(np.mean([one[name] for one in found])), 3) for name in found[0]}
        print(json.dumps({"table": part, "seeds": len(found)} | means), flush=True)


def measured(
    seen: pd.DataFrame,
    fresh: pd.DataFrame,
    schema: TableSchema,
    preset: str,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    """The figures of one fit."""
    begun_at = time.process_time()
    model = Synthesizer.fit(seen, schema=schema, preset=preset, seed=seed, device="cpu")
    fit_seconds = time.process_time() - begun_at
    scores = {
        name: model.log_likelihood(rows, draws=draws)["log_likelihood"]
        for name, rows in (("fresh", fresh), ("training", seen[: len(fresh)]))
    }
    return {name: round(float(found.mean()), 3) for name, found in scores.items()} | {
        "fit_seconds": round(fit_seconds, 1)
    }


if __name__ == "__main__":
    main()
