"""Parts of a page that a benchmark writes: what stands between two marks."""

from __future__ import annotations

from collections.abc import Sequence


def table_of(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(table_of(["a", "b"], [["1", "2"]]))
    |a|b|
    |---|---|
    |1|2|
    """
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def replaced_part(page: str, name: str, text: str) -> str:
    """The page with another text between the marks of a part.

    >>> replaced_part("a <!-- x --> old <!-- end of x --> b", "x", "new")
    'a <!-- x -->\\nnew\\n<!-- end of x --> b'
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    assert page.count(begin) == page.count(end) == 1, f"the page has no part {name!r}"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"
