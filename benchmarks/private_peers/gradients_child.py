"""DP-SGD of MOSTLY AI's engine, by opacus, in a Python that has them and nothing of ours.

    python gradients_child.py FOLDER

reads `task.json` and `bins.csv` of the folder, trains TabularARGN on one thread of the CPU until
the budget, its early stopping or the time limit ends it, and writes `drawn.csv` and `outcome.json`.
Bins are declared, so its own protection of rare values is off and the whole budget is training's.
"""

import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch

TRAINING_SHARE = 0.75
"""Of the time limit; the rest is for what comes before and after."""


def main() -> None:
    """Fits, draws and writes."""
    torch.set_num_threads(1)
    from mostlyai.engine import TabularARGN, set_random_state

    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    frame = pd.read_csv(folder / "bins.csv")
    noise = {"noise_multiplier": task["noise_multiplier"]} if "noise_multiplier" in task else {}
    began_at = time.process_time()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as workspace:
        model: Any = TabularARGN(
            workspace_dir=workspace,
            device="cpu",
            random_state=task["seed"],
            max_training_time=TRAINING_SHARE * task["limit_minutes"],
            value_protection=False,
            tgt_encoding_types=dict.fromkeys(frame.columns, "TABULAR_CATEGORICAL"),
            differential_privacy={"max_epsilon": task["epsilon"], "delta": task["delta"]} | noise,
        )
        model.fit(frame.astype(str))
        set_random_state(task["seed"])
        drawn = model.sample(task["n_rows"], device="cpu")
        seconds = time.process_time() - began_at
        [progress] = Path(workspace).rglob("progress-messages.csv")
        messages = pd.read_csv(progress)
    drawn[list(frame.columns)].to_csv(folder / "drawn.csv", index=False)
    kept = messages[messages["is_checkpoint"] == 1].iloc[-1]
    outcome = {
        "library": f"mostlyai-engine {version('mostlyai-engine')}, opacus {version('opacus')}",
        "cpu_seconds": round(seconds, 1),
        "epochs_kept": round(float(kept["epoch"]), 1),
        "epsilon_kept": round(float(kept["dp_eps"]), 3),
    }
    (folder / "outcome.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
