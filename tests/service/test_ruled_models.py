"""Models of tables with rules: the same by the library, by REST and by the command."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, format_table, read_table
from gcvae_cli.__main__ import main
from tests.running_service import Running, train

_SETTINGS: dict[str, Any] = {"preset": "fast", "max_steps": 120, "patience_steps": 120}


def _orders(n: int = 500) -> bytes:
    """Totals of prices and quantities, ends after starts, a tax in a total; found by themselves."""
    rng = np.random.default_rng(3)
    price, quantity = rng.integers(100, 5000, n) / 100, rng.integers(1, 9, n)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    net = rng.integers(1_000, 90_000, n) / 100
    tax = np.round(net * rng.choice([0.07, 0.19], n), 2)
    frame = pd.DataFrame(
        {
            "сумма": (price * quantity).round(2),
            "price": price,
            "quantity": quantity,
            "конец": (start + pd.to_timedelta(rng.geometric(0.2, n), "D")).strftime("%d.%m.%Y"),
            "начало": start.strftime("%d.%m.%Y"),
            "gross": (net + tax).round(2),
            "net": net,
            "tax": tax,
        }
    )
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def ruled(service: Running) -> dict[str, Any]:
    """A ready model, whose rules were found when the table came."""
    return train(service, _orders(), **_SETTINGS)


@pytest.fixture(scope="module")
def artifact(
    service: Running, ruled: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("ruled") / "model.gcvae"
    path.write_bytes(service.http.get(f"/v1/models/{ruled['id']}/artifact").content)
    return path


def test_the_rules_of_an_upload_are_found_and_kept_by_its_model(
    service: Running, ruled: dict[str, Any]
) -> None:
    found = service.http.get(f"/v1/datasets/{ruled['dataset_id']}/rules").json()
    texts = {rule["rule"]["rule"] for rule in found["rules"]}
    assert texts >= {"сумма == price * quantity", "конец >= начало", "gross == net + tax"}
    record = service.http.get(f"/v1/models/{ruled['id']}").json()["record"]
    assert all(rule["share_of_drawn"] > 0.98 for rule in record["rules"])


@pytest.mark.parametrize(
    "given",
    [{"сумма": {"min": 20, "max": 60}}, {"конец": {"min": "01.05.2024"}}, {"gross": {"max": 300}}],
)
def test_a_condition_on_what_a_rule_gives_is_met_alike_by_every_way(
    service: Running, ruled: dict[str, Any], artifact: Path, given: dict[str, Any]
) -> None:
    body = {"rows": 40, "seed": 5, "given": given, "format": "csv"}
    rest = service.http.post(f"/v1/models/{ruled['id']}/samples", json=body).content
    model = Synthesizer.load(artifact)
    drawn = model.sample(40, seed=5, given=given)
    own = format_table(drawn, model.schema)
    pd.testing.assert_frame_equal(read_table(io.BytesIO(rest)), own, check_dtype=False)
    output = artifact.with_name("drawn.csv")
    words = ["--rows", "40", "--given", json.dumps(given), "--seed", "5", "-o", str(output)]
    assert main(["sample", str(artifact), *words]) == 0
    assert output.read_bytes() == rest
    [(name, ends)] = given.items()
    cells = drawn[name]
    low, high = (ends.get(key) for key in ("min", "max"))
    if cells.dtype.kind == "M":
        low = pd.to_datetime(low, format="%d.%m.%Y")
    assert low is None or (cells >= low).all()
    assert high is None or (cells <= high).all()


def test_a_missing_term_is_filled_with_what_the_rule_leaves(
    service: Running, ruled: dict[str, Any], artifact: Path
) -> None:
    rows = pd.read_csv(io.BytesIO(_orders()), dtype=str).head(30)
    blank = rows.assign(tax="", quantity="")
    rest = service.http.post(
        f"/v1/models/{ruled['id']}/imputations?seed=2",
        content=blank.to_csv(index=False).encode(),
        headers={"Content-Type": "text/csv", "Accept": "text/csv"},
    ).content
    filled = read_table(io.BytesIO(rest))
    assert (filled["quantity"] == rows["quantity"]).mean() > 0.9
    assert (filled["tax"].astype(float) - rows["tax"].astype(float)).abs().lt(0.005).mean() > 0.9
    of_library = Synthesizer.load(artifact).impute(blank, seed=2)
    assert of_library["tax"].astype(float).equals(filled["tax"].astype(float))
