"""HTML tables for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_LEFT = "style='text-align:left'"


def facts_table(title: str, facts: Mapping[str, str]) -> str:
    """Returns an HTML table with one row for each entry of `facts`: its name, and its text.

    If a text begins with its name, the name is removed from the text.

    >>> facts_table("Model", {"rows": "rows 12 < 13"})
    "<table><caption>Model</caption><tr><th style='text-align:left'>rows</th>\
<td style='text-align:left'>12 &lt; 13</td></tr></table>"
    """
    lines = "".join(_line([name], [fact.removeprefix(f"{name} ")]) for name, fact in facts.items())
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"


def lines_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Returns an HTML table of `lines` with a header row; the first cell of each line is a row
    header."""
    body = "".join(_line(line[:1], line[1:]) for line in lines)
    return f"<table><thead>{_line(header, [])}</thead><tbody>{body}</tbody></table>"


def paragraphs(texts: Iterable[str]) -> str:
    """Returns the HTML code of one paragraph for each string; special characters are escaped."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def _line(names: Iterable[str], cells: Iterable[str]) -> str:
    parts = [f"<th {_LEFT}>{html.escape(name)}</th>" for name in names]
    parts += [f"<td {_LEFT}>{html.escape(cell)}</td>" for cell in cells]
    return f"<tr>{''.join(parts)}</tr>"
