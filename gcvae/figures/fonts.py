"""Text in pictures: names of any script, in fonts of this machine that have their characters.

The font that comes with matplotlib has no Chinese, Japanese or Korean and no emoji. Where another
font of the machine has them, it draws them. Where none has, an SVG keeps its texts as text, which
the viewer's fonts draw, and a PNG has the characters' code points: never a box for any of them.
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
_LAST_RESORT = "last resort", "lastresort"  # fonts that have a box for every character
_NO_TEXT = ("Cc", "Cs", "Cn")
_WIDE = ("W", "F")


class FontWarning(UserWarning):
    """No font of this machine has some characters of a picture."""


@dataclass(frozen=True)
class Lettering:
    """How the texts of one picture are drawn.

    Attributes:
        families: Fonts, beside the default one, that have what that one has not.
        escaped: Characters that are drawn as their code points.
        has_foreign: The picture has characters that no font of this machine has.
    """

    families: tuple[str, ...] = ()
    escaped: frozenset[str] = frozenset()
    has_foreign: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], *, is_svg: bool) -> Lettering:
        """The lettering of a picture with these texts; warns of what a PNG can not have."""
        found = fonts_with(frozenset("".join(texts)))
        control = {c for c in found if unicodedata.category(c) in _NO_TEXT}
        foreign = {c for c, family in found.items() if family is None} - control
        if foreign and not is_svg:
            warnings.warn(_warning(foreign), FontWarning, stacklevel=2)
        families = {family for c, family in found.items() if family and c not in control}
        escaped = control if is_svg else control | foreign
        return cls(tuple(sorted(families)), frozenset(escaped), bool(foreign))

    def drawn(self, text: str, longest: int) -> str:
        r"""The text as it is drawn, without its middle where it is longer than so many letters.

        Names that begin alike often end apart.

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
    """How many letters wide a text is: Chinese, Japanese and Korean ones count as two."""
    return sum(1 + (unicodedata.east_asian_width(c) in _WIDE) for c in text)


def _within(letters: list[str], most: int, step: int = 1) -> str:
    """The first of the letters that are together no wider than that; `step` -1 turns them round."""
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
    """For each character the family of a font that has it, the default's as ""; None for none.

    Each font is opened once: a machine may have hundreds.
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
