"""Selects fonts for the texts of a picture, in any script.

matplotlib's default font has no Chinese, Japanese or Korean characters and no emoji; they are drawn
with fonts that are installed on the machine. If no font contains a character, an SVG stores it as
text for the fonts of its viewer, and a PNG shows its code point.
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
    """Warns that some characters of a picture are in no font installed on this machine."""


@dataclass(frozen=True)
class Lettering:
    """Fonts for the strings of one picture, and the characters that are replaced by code points.

    Attributes:
        families: Font families used in addition to the default one.
        escaped: Characters that are drawn as their code point, such as `\\u4ef7`.
        has_foreign: Whether some characters are in no font installed on this machine.
    """

    families: tuple[str, ...] = ()
    escaped: frozenset[str] = frozenset()
    has_foreign: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], *, is_svg: bool) -> Lettering:
        """Selects fonts for all strings of one picture.

        Characters that are in no installed font become code points in a PNG, with a `FontWarning`.
        An SVG stores them as text, because its viewer can use other fonts.
        """
        found = fonts_with(frozenset("".join(texts)))
        control = {c for c in found if unicodedata.category(c) in _NO_TEXT}
        foreign = {c for c, family in found.items() if family is None} - control
        if foreign and not is_svg:
            warnings.warn(_warning(foreign), FontWarning, stacklevel=2)
        families = {family for c, family in found.items() if family and c not in control}
        escaped = control if is_svg else control | foreign
        return cls(tuple(sorted(families)), frozenset(escaped), bool(foreign))

    def drawn(self, text: str, longest: int) -> str:
        r"""Returns a string as it is drawn: escaped, and shortened to a width of `longest` letters.

        Characters in `escaped` are replaced by their code points. In a string that is too long, an
        ellipsis replaces the middle, because names with the same beginning often differ at the end.

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
    """Returns the width of a string in Latin letters; wide characters, such as Chinese ones, count
    as two."""
    return sum(1 + (unicodedata.east_asian_width(c) in _WIDE) for c in text)


def _within(letters: list[str], most: int, step: int = 1) -> str:
    """Joins the first letters that fit into the width `most`. With `step` -1, `letters` is given in
    reverse, and the result is in normal order."""
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
    """Returns the font family that contains each character.

    The family is "" for the default font, and None if no installed font contains the character.
    Each font is opened at most once.
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
