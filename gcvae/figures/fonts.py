"""Selects fonts for the texts of a picture, in any script.

matplotlib's default font has no Chinese, Japanese or Korean characters and no emoji; other fonts of
the machine are used for them. If no font has a character, an SVG keeps it as text for the viewer's
fonts, and a PNG shows its code point.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_PREFERRED = (
    "Noto Sans CJK", "Source Han Sans", "WenQuanYi", "Hiragino", "PingFang", "Microsoft YaHei",
    "Yu Gothic", "IPA", "Apple SD", "Malgun", "Nanum", "Arial Unicode",
)  # fmt: skip
_LAST_RESORT = "last resort", "lastresort"  # fonts with a placeholder for every character
_NO_TEXT = ("Cc", "Cs", "Cn")
_WIDE = ("W", "F")


class FontWarning(UserWarning):
    """Warns that no font of this machine has some characters of a picture."""


@dataclass(frozen=True)
class Lettering:
    """Fonts and replacements for the texts of one picture.

    Attributes:
        families: Fonts used in addition to the default one.
        escaped: Characters that are shown as code points.
        has_foreign: Whether the picture has characters that no font of this machine has.
    """

    families: tuple[str, ...] = ()
    escaped: frozenset[str] = frozenset()
    has_foreign: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], *, is_svg: bool) -> Lettering:
        """Returns the lettering for these texts; warns about characters that a PNG can not show."""
        found = fonts_with(frozenset("".join(texts)))
        control = {c for c in found if unicodedata.category(c) in _NO_TEXT}
        foreign = {c for c, family in found.items() if family is None} - control
        if foreign and not is_svg:
            warnings.warn(_warning(foreign), FontWarning, stacklevel=2)
        families = {family for c, family in found.items() if family and c not in control}
        escaped = control if is_svg else control | foreign
        return cls(tuple(sorted(families)), frozenset(escaped), bool(foreign))

    def drawn(self, text: str, longest: int) -> str:
        r"""Returns the text to draw; a text longer than `longest` letters loses its middle.

        Beginning and end stay, because names with the same beginning often differ at the end.

        >>> Lettering(escaped=frozenset("价格")).drawn("价格 (EUR)", 24)
        '\\u4ef7\\u683c (EUR)'
        >>> Lettering().drawn("a_long_name_of_a_column", 12)
        'a_long_…lumn'
        """
        letters = [_escape(c) if c in self.escaped else c for c in text]
        if width("".join(letters)) <= longest:
            return "".join(letters)
        tail = longest // 3
        return _within(letters, longest - tail - 1) + "…" + _within(letters[::-1], tail, -1)


def width(text: str) -> int:
    """Returns the width of a text in letters; Chinese, Japanese and Korean characters count as
    two."""
    return sum(1 + (unicodedata.east_asian_width(c) in _WIDE) for c in text)


def _within(letters: list[str], most: int, step: int = 1) -> str:
    """Returns the first letters with a total width of at most `most`; the last with `step` -1."""
    kept: list[str] = []
    for letter in letters:
        if width("".join([*kept, letter])) > most:
            break
        kept.append(letter)
    return "".join(kept[::step])


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _warning(foreign: set[str]) -> str:
    shown = "".join(sorted(foreign)[:10])
    return (
        f"no font of this machine has {shown!r}: the picture has code points such as"
        f" {_escape(shown[0])} instead; install a font that does, such as Noto Sans CJK, or have"
        " the picture as SVG"
    )


@lru_cache(maxsize=64)
def fonts_with(characters: frozenset[str]) -> dict[str, str | None]:
    """Returns the font family for each character: "" for the default font, None if no font has it.

    Each font is opened once.
    """
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    fonts = [font for font in fontManager.ttflist if not font.name.lower().startswith(_LAST_RESORT)]
    upright = [(font.name, font.fname) for font in fonts if font.style == "normal"]
    others = sorted(upright, key=lambda font: (not font[0].startswith(_PREFERRED), font))
    found: dict[str, str | None] = dict.fromkeys(characters)
    for name, path in [("", findfont(FontProperties())), *others]:
        open_ = [c for c, family in found.items() if family is None]
        if not open_:
            break
        font = get_font(path)
        found |= {c: name for c in open_ if font.get_char_index(ord(c)) > 0}
    return found
