"""Other people's private models: what is said where one could not be run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.private_peers.__main__ import Peer, failure_of, lines_of_page


@pytest.mark.parametrize("mechanism", ["mst", "aim"])  # their library takes an older NumPy
def test_a_python_without_the_peer_is_named_as_the_failure(mechanism: str, tmp_path: Path) -> None:
    task = {"mechanism": mechanism, "epsilon": 1.0, "delta": 1e-6, "seed": 0}
    task |= {"sizes": [2], "n_rows": 2, "limit_minutes": 1}
    (tmp_path / "task.json").write_text(json.dumps(task))
    pd.DataFrame({"a": [0, 1]}).to_csv(tmp_path / "bins.csv", index=False)
    failure = failure_of(Peer(mechanism, Path(sys.executable), 1, {}), tmp_path)
    assert failure is not None
    assert "No module named" in failure
    page = lines_of_page({"runs": [{"mechanism": mechanism, "epsilon": 1.0, "failure": failure}]})
    assert failure in page
