"""Text in pictures: what the font can draw, as it is written."""

from __future__ import annotations


def drawable(text: str) -> str:
    r"""The text with a mark for each character that the font of the pictures does not have.

    The font that comes with matplotlib has no Chinese, Japanese or Korean and no emoji. matplotlib
    would draw a box for each and warn each time; the reader of a picture can do nothing about it.

    >>> drawable("größe (µm)\n"), drawable("价格")
    ('größe (µm)�', '��')
    """
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    known = {c: font.get_char_index(ord(c)) > 0 for c in set(text)}
    return "".join(c if known[c] else "\N{REPLACEMENT CHARACTER}" for c in text)
