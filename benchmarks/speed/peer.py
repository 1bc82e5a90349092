"""MOSTLY AI's engine, in a Python that has it and nothing of ours.

    python peer.py TABLE.parquet ROWS REPEATS

fits the table by TabularARGN with its defaults, on one thread of the CPU, draws rows of it, and
prints the CPU seconds of each as JSON.
"""

import json
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

import pandas as pd
import torch


def main() -> None:
    """Measures and prints."""
    torch.set_num_threads(1)
    from mostlyai.engine import TabularARGN, set_random_state

    table, rows, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    frame = pd.read_parquet(table)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        model: Any = TabularARGN(workspace_dir=folder, device="cpu", random_state=0)
        began_at = time.process_time()
        model.fit(frame)
        fit_seconds = time.process_time() - began_at
        drawing = []
        for seed in range(repeats):
            set_random_state(seed)
            began_at = time.process_time()
            drawn = model.sample(rows, device="cpu")
            drawing.append(time.process_time() - began_at)
            assert len(drawn) == rows
    print(json.dumps({"version": version("mostlyai-engine"), "fit": fit_seconds, "draw": drawing}))


if __name__ == "__main__":
    main()
