"""MST or AIM of dpmm, in a Python that has it and nothing of ours.

    python counts_child.py FOLDER

reads `task.json` and `bins.csv` of the folder, fits the mechanism with its defaults on one thread,
and writes `drawn.csv` and `outcome.json`.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def main() -> None:
    """Fits, draws and writes."""
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    frame = pd.read_csv(folder / "bins.csv")
    domain = dict(zip(frame.columns, task["sizes"], strict=True))
    np.random.seed(task["seed"])
    began_at = time.process_time()
    model = _model(task["mechanism"])(
        epsilon=task["epsilon"],
        delta=task["delta"],
        domain=domain,
        random_state=np.random.RandomState(task["seed"]),
        n_jobs=1,
    )
    model.fit(frame)
    drawn = model.generate(n_records=task["n_rows"])
    seconds = time.process_time() - began_at
    drawn[list(frame.columns)].to_csv(folder / "drawn.csv", index=False)
    outcome = {"library": f"dpmm {version('dpmm')}", "cpu_seconds": round(seconds, 1)}
    (folder / "outcome.json").write_text(json.dumps(outcome))


def _model(mechanism: str) -> Any:
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    return {"mst": MSTGM, "aim": AIMGM}[mechanism]


if __name__ == "__main__":
    main()
