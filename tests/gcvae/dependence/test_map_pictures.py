"""Pictures of maps: what they show of pairs without a sign, in which order, and that texts fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.text import Text

from gcvae import Synthesizer
from gcvae.dependence.heat_map import CAPTIONS, scales_of
from gcvae.dependence.maps import DependencyMap
from gcvae.figures.figures import save_figure
from gcvae.figures.fonts import FontWarning
from gcvae.numerics.cramers_v import cramers_v, group
from tests.lengths import first_of

LONG = (
    "Gesamtbetrag der Bestellung einschließlich Umsatzsteuer (EUR)",
    "客户所在城市的行政区划代码和邮政编码的完整名称以及备注信息和联系方式说明",
    "إجمالي مبلغ الطلب بما في ذلك ضريبة القيمة المضافة والشحن",
    "x",
    "Ελληνικά: το πλήρες όνομα της περιοχής του πελάτη",
    44 * "W",
    "a$b_{c}^2 price in $ per unit of measurement",
)


def map_of(names: tuple[str, ...], nominal: tuple[str, ...], kind: str = "total") -> DependencyMap:
    """A map of columns of these names, whose tau and V are far from each other."""
    loadings = np.random.default_rng(0).normal(size=(len(names), 4))
    covariance = loadings @ loadings.T + np.eye(len(names))
    scale = np.sqrt(np.diag(covariance))
    tau = covariance / scale / scale[:, None]
    return DependencyMap(names, kind, tau, np.abs(tau) ** 0.5, "V", (), nominal=nominal)


@pytest.fixture(name="texts")
def _texts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Text, Any, Any]]:
    """Every text of the pictures that are drawn, with its box and its sheet's, in dots."""
    found: list[tuple[Text, Any, Any]] = []

    def measure_and_save(figure: Any, *of_the_file: Any) -> None:
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        sheet = figure.get_tightbbox(renderer).transformed(figure.dpi_scale_trans)
        for text in figure.findobj(Text):
            if text.get_visible() and text.get_text().strip():
                found.append((text, text.get_window_extent(renderer), sheet))
        save_figure(figure, *of_the_file)

    monkeypatch.setattr("gcvae.dependence.heat_map.save_figure", measure_and_save)
    return found


def tables() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names of columns, and those of the nominal ones."""
    wide = tuple(f"{name} {i}" for i in range(9) for name in LONG)[:60]
    return {
        "one": (LONG[:1], ()),
        "two long": (LONG[:2], ()),
        "two long, nominal": (LONG[:2], LONG[:1]),
        "a few": (LONG, LONG[::2]),
        "all nominal": (LONG, LONG),
        "sixty": (wide, wide[::3]),
    }


@pytest.mark.filterwarnings("ignore::gcvae.figures.fonts.FontWarning")
@pytest.mark.parametrize(
    ("table", "kind"),
    first_of(
        ("sixty", "difference"),
        *((table, kind) for table in tables() if table != "sixty" for kind in CAPTIONS),
    ),
)
def test_every_text_lies_on_the_sheet_and_on_no_other(
    table: str, kind: str, texts: list[tuple[Text, Any, Any]]
) -> None:
    map_of(*tables()[table], kind).picture("png")
    assert texts
    for text, box, sheet in texts:
        said = f"{text.get_text()!r} at {box} leaves the sheet {sheet}"
        assert box.x0 >= sheet.x0 - 1, said
        assert box.x1 <= sheet.x1 + 1, said
        assert box.y0 >= sheet.y0 - 1, said
        assert box.y1 <= sheet.y1 + 1, said
    level = [(text, box) for text, box, _ in texts if text.get_rotation() == 0.0]
    for (one, a), (other, b) in combinations(level, 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(overlap) < 1.5, f"{one.get_text()!r} lies on {other.get_text()!r}"


def test_pairs_with_a_nominal_column_show_their_unsigned_measure_and_no_sign(
    texts: list[tuple[Text, Any, Any]],
) -> None:
    map_ = map_of(("a", "b", "c"), ("b",))
    assert map_.strength[0, 2] == map_.tau[0, 2]
    assert map_.strength[0, 1] == map_.unsigned[0, 1] != map_.tau[0, 1]
    signed, unsigned = scales_of(map_.strength, map_.is_unsigned, map_.kind)
    assert np.argwhere(signed.pairs).tolist() == [[0, 2], [2, 0]]
    assert (signed.pairs ^ unsigned.pairs ^ np.eye(3, dtype=bool)).all()
    map_.picture("svg")
    said = [text.get_text() for text, _, _ in texts]
    assert f"{map_.unsigned[0, 1]:.2f}" in said
    assert f"{map_.tau[0, 2]:+.2f}".replace("-", "−") in said
    assert any("Cramér's V\nof pairs with a column\nwhose levels have no order" in s for s in said)
    texts.clear()
    replace(map_, nominal=()).picture("svg")
    assert not any("Cramér" in text.get_text() for text, _, _ in texts)


def test_a_file_says_what_it_shows() -> None:
    map_ = map_of(("a", "b", "c"), ())
    title = "Kendall's tau-b of the model's rows, 3 columns"
    svg = ElementTree.fromstring(map_.picture("svg"))
    assert svg.findtext("{http://www.w3.org/2000/svg}title") == title
    assert f"Title\0{title}".encode() in map_.picture("png")


@pytest.mark.parametrize(("n_columns", "n_marks"), [(80, 2), (81, 0)])
def test_negative_cells_are_marked_where_there_is_no_room_for_numbers(
    n_columns: int, n_marks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[PathCollection] = []
    monkeypatch.setattr(
        "gcvae.dependence.heat_map.save_figure",
        lambda figure, *_: marked.extend(figure.findobj(PathCollection)),
    )
    tau = np.eye(n_columns)
    tau[0, 1] = tau[1, 0] = -0.2
    tau[0, 2] = tau[2, 0] = -0.05  # too weak
    tau[1, 2] = tau[2, 1] = 0.9
    names = tuple(f"c{i}" for i in range(n_columns))
    DependencyMap(names, "total", tau, abs(tau), "V", ()).picture()
    assert sum(len(marks.get_offsets()) for marks in marked) == n_marks


def test_cells_without_a_sign_have_no_hue_and_those_with_one_have(tmp_path: Path) -> None:
    map_ = map_of(tuple(f"c{i}" for i in range(20)), ("c0",))
    path = tmp_path / "map.png"
    map_.draw(path, order=range(20))
    pixels = matplotlib.image.imread(path)[..., :3]
    is_hued = np.ptp(pixels, axis=-1) > 0.1
    left = np.nonzero(is_hued.any(axis=0))[0][0]
    map_.draw(tmp_path / "other.png", order=[*range(1, 20), 0])
    other = matplotlib.image.imread(tmp_path / "other.png")[..., :3]
    assert np.nonzero((np.ptp(other, axis=-1) > 0.1).any(axis=0))[0][0] < left


@pytest.fixture(scope="module", name="synthesizer")
def _synthesizer() -> Synthesizer:
    rng = np.random.default_rng(1)
    n = 300
    kind = rng.choice(["oak", "ash", "elm"], n)
    height = rng.normal(10.0, 2.0, n) + 4.0 * (kind == "ash")
    frame = pd.DataFrame(
        {"Höhe": height.round(2), "树种": kind, "alt": rng.random(n) < height / 20.0}
    )
    settings = {"max_steps": 30}
    return Synthesizer.fit(frame, preset="paper-gcvae", settings=settings, device="cpu")


def test_a_map_says_which_columns_are_nominal_after_save_and_load_too(
    synthesizer: Synthesizer,
) -> None:
    loaded = Synthesizer.from_bytes(synthesizer.to_bytes())
    for kind in ("total", "data", "difference", "expected"):
        found = loaded.dependencies(kind).to_json()
        assert found["nominal"] == ["树种"], kind
        assert found == synthesizer.dependencies(kind).to_json()
        assert any("have no sign" in note for note in found["notes"])
    assert loaded.dependencies("local", row={"Höhe": 9.0}).nominal == ("树种",)
    assert DependencyMap.from_json(found).to_json() == found


def test_a_map_is_drawn_in_the_order_of_another(
    synthesizer: Synthesizer, texts: list[tuple[Text, Any, Any]]
) -> None:
    total, expected = (synthesizer.dependencies(kind) for kind in ("total", "expected"))
    order = [2, 0, 1]
    assert expected.to_json(order)["order"] == order
    with pytest.warns(FontWarning):
        expected.picture("png", order)
    names = [total.columns[i] for i in order]
    drawn = [t.get_text() for t, _, _ in texts if t.get_rotation() == 45.0]
    assert drawn == [name.encode("unicode_escape").decode() if "树" in name else name
                     for name in names]  # fmt: skip


def test_a_column_of_hardly_anything_but_zeros_has_a_v_with_others() -> None:
    n = 4000
    amount = np.where(np.arange(n) % 25 == 0, np.arange(n) + 1.0, 0.0)
    paid = (np.arange(n) % 25 == 0).astype(np.int64)
    for cells in (amount, -amount):
        v = cramers_v([group(cells), group(paid.astype(np.float64))])
        assert v[0, 1] == pytest.approx(1.0, abs=1e-6)
