"""Pictures of a report as SVG in the page: they take its colours, light or dark, and its fonts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_WIDTH, _LINE, _LABEL = 360, 26, 124
_CELL, _HEAD = 20, 16
_NUMBERS = 76
"""Right of a bar, for the two shares."""
_LONGEST = 19


def bars(found: Mapping[str, Any]) -> str:
    """Shares of a column's bins, real above drawn."""
    most = max([*(share or 0.0 for share in found["real"]), *found["drawn"], 1e-9])
    scale = (_WIDTH - _LABEL - _NUMBERS) / most
    parts = []
    lines = zip(found["labels"], found["real"], found["drawn"], strict=True)
    for i, (label, real, drawn) in enumerate(lines):
        y, long = i * _LINE, (real or 0.0) * scale
        parts.append(
            f'<text x="{_LABEL - 6}" y="{y + 15}" text-anchor="end">{escape(_short(label))}</text>'
            f'<rect class="r" x="{_LABEL}" y="{y + 3}" width="{long:.1f}" height="9"/>'
            f'<rect class="d" x="{_LABEL}" y="{y + 12}" width="{drawn * scale:.1f}" height="9"/>'
            f'<text x="{_LABEL + max(long, drawn * scale) + 4:.1f}" y="{y + 16}">'
            f"{'few' if real is None else _percent(real)} → {_percent(drawn)} %</text>"
        )
    name = escape(found["column"])
    svg = _svg(_WIDTH, len(found["labels"]) * _LINE, "".join(parts), f"Shares of {name}")
    return f"<figure><figcaption><b>{name}</b> {_LEGEND}</figcaption>{svg}</figure>"


def two_ways(found: Mapping[str, Any]) -> str:
    """The two-way shares of two columns: real on the left, drawn on the right."""
    (down, across), (a, b) = found["labels"], found["columns"]
    shares = [share or 0.0 for side in ("real", "drawn") for row in found[side] for share in row]
    most = max([*shares, 1e-9])
    width = len(across) * _CELL
    parts = [
        f'<text class="head" x="{left}" y="11">{word}</text>'
        for word, left in (("real", _LABEL), ("drawn", _LABEL + width + 12))
    ]
    for side, left, css in (("real", _LABEL, "r"), ("drawn", _LABEL + width + 12, "d")):
        for i, row in enumerate(found[side]):
            for j, share in enumerate(row):
                place = left + j * _CELL, _HEAD + i * _CELL
                cell = f"{escape(down[i])}, {escape(across[j])}"
                parts.append(_square(place, css, share, most, cell))
    for i, label in enumerate(down):
        parts.append(
            f'<text x="{_LABEL - 6}" y="{_HEAD + i * _CELL + 14}" text-anchor="end">'
            f"{escape(_short(label))}</text>"
        )
    names = f"{escape(a)} × {escape(b)}"
    height = _HEAD + len(down) * _CELL
    svg = _svg(_LABEL + 2 * width + 12, height, "".join(parts), f"Shares of {names}")
    return (
        f"<figure><figcaption><b>{names}</b> {_LEGEND}<br>"
        f'<span class="soft">The darker, the more rows{_CROSSED}. From top to bottom {escape(a)},'
        f" from left to right {escape(b)}: {escape(_listed(across))}</span>"
        f"</figcaption>{svg}</figure>"
    )


def _square(place: tuple[int, int], css: str, share: float | None, most: float, cell: str) -> str:
    """A cell of a two-way table; one whose share is not told is crossed out, not empty."""
    (x, y), size = place, _CELL - 1
    told = "few" if share is None else f"{share:.1%}"
    opacity = 0.06 + 0.94 * ((share or 0.0) / most) ** 0.5
    cross = f'<path class="few" d="M{x} {y + size}L{x + size} {y}"/>' if share is None else ""
    return (
        f'<rect class="{css}" x="{x}" y="{y}" width="{size}" height="{size}"'
        f' fill-opacity="{opacity:.2f}"><title>{cell}: {told}</title></rect>{cross}'
    )


_CROSSED = "; a stroke: fewer real rows than are told"
_LEGEND = (
    '<span class="soft"><span style="color:var(--real)">■</span> real → '
    '<span style="color:var(--drawn)">■</span> drawn</span>'
)


def _svg(width: int, height: int, content: str, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}" '
        f'style="max-width:{1.4 * width:.0f}px">{content}</svg>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 or share == 0 else f"{100 * share:.1f}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 5] + "…" + text[-4:]


def _listed(labels: list[str]) -> str:
    return ", ".join(map(_short, labels))
