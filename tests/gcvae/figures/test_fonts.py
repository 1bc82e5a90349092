"""Names of any script in pictures: in a font that has them, as text, or as code points."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib.font_manager import FontProperties, findfont, fontManager

from gcvae.dependence.maps import DependencyMap
from gcvae.figures.fonts import FontWarning, Lettering, fonts_with, width

# In a private area of Unicode, where no font of a machine has anything.
OURS, NOWHERE = chr(0x10F0F0), chr(0x10F0F1)
FAMILY = "Font Of The Test"


@pytest.fixture(name="font")
def _font(tmp_path: Path) -> Iterator[str]:
    """A font that draws OURS, known to matplotlib as one of the machine."""
    font = TTFont(findfont(FontProperties()))
    for table in font["cmap"].tables:
        if table.format == 12:
            table.cmap = {ord(OURS): table.cmap[ord("A")]}
    font["cmap"].tables = [table for table in font["cmap"].tables if table.format == 12]
    for record in font["name"].names:
        if record.nameID in (1, 4, 16):
            record.string = FAMILY
    path = tmp_path / "ours.ttf"
    font.save(path)
    known = list(fontManager.ttflist)
    fontManager.addfont(path)
    fonts_with.cache_clear()
    yield FAMILY
    fontManager.ttflist = known
    fonts_with.cache_clear()


def drawn(names: list[str], path: Path) -> bytes:
    tau = np.eye(len(names))
    DependencyMap(tuple(names), "total", tau, tau, "measure", ()).draw(path)
    return path.read_bytes()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_font_of_the_machine_draws_what_the_default_has_not(
    font: str, ending: str, tmp_path: Path
) -> None:
    assert fonts_with(frozenset(OURS)) == {OURS: font}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = drawn([OURS, "b", "c"], tmp_path / f"own.{ending}")
        plain = drawn(["A", "b", "c"], tmp_path / f"plain.{ending}")
    if ending == "png":  # the glyph is the default font's A, to the pixel
        assert own == plain
    else:
        assert b"<text" not in own


def test_without_a_font_a_png_has_code_points_and_a_warning(tmp_path: Path) -> None:
    with pytest.warns(FontWarning, match="no font of this machine has"):
        own = drawn([f"a{NOWHERE}", "b"], tmp_path / "own.png")
    assert own == drawn([r"a\U0010f0f1", "b"], tmp_path / "plain.png")


def test_without_a_font_an_svg_keeps_the_name_as_text(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = drawn([f"a{NOWHERE}\n", "b"], tmp_path / "map.svg").decode()
    assert f">a{NOWHERE}\\n</text>" in found


def test_a_name_that_stays_text_has_room_for_a_wider_font_of_the_viewer(tmp_path: Path) -> None:
    widths = []
    for name in ("W", NOWHERE):
        root = ElementTree.fromstring(drawn([name, "b"], tmp_path / "map.svg"))
        widths.append(float(root.attrib["width"].removesuffix("pt")))
    assert widths[1] - widths[0] > 72  # points, at both sides


def test_ordinary_names_are_outlines_in_an_svg(tmp_path: Path) -> None:
    assert b"<text" not in drawn(["größe", "b"], tmp_path / "map.svg")


def test_a_box_for_any_character_is_no_font_that_has_it() -> None:
    assert fonts_with(frozenset(NOWHERE)) == {NOWHERE: None}


@pytest.mark.parametrize(
    ("name", "shown"),
    [("short", "short"), ("a" * 20 + "end", "aaaaaaa…aend"), ("长" * 9, "长长长…长长")],
)
def test_long_names_lose_their_middle(name: str, shown: str) -> None:
    found = Lettering().drawn(name, 12)
    assert found == shown
    assert width(found) <= 12
