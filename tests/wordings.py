"""Errors asserted by class and place, their texts beside those of one file, `wordings.json`.

The file has the texts of each test in their order. `pytest --write-wordings` writes those of the
tests that run anew, `make wordings` those of all; git shows what has changed.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

E = TypeVar("E", bound=BaseException)
ROOT = Path(__file__).resolve().parents[1]


class Wordings:
    """The kept texts of all tests, and where the running test stands among its own.

    Attributes:
        path: The file.
        writes: Texts are kept as they are, not compared.
        folders: The folder that holds the temporary folders of all tests.
    """

    def __init__(self, path: Path, root: Path = ROOT) -> None:
        self.writes = False
        self.folders: Path | None = None
        self.path = path
        self._root = root
        self._kept: dict[str, dict[str, list[str]]] = {}
        if path.exists():
            self._kept = json.loads(path.read_text(encoding="utf-8"))
        self._collected: dict[str, set[str]] = {}
        self._test = ""
        self._texts: list[str] = []

    def collect(self, tests: Iterable[str]) -> None:
        """Notes all tests of some files: what is kept of others in these files is stale."""
        for test in tests:
            file, _, name = test.partition("::")
            self._collected.setdefault(file, set()).add(name)

    def stale(self) -> list[str]:
        """The tests that texts are kept of and that do not exist, as far as it is known."""
        return [
            f"{file}::{name}"
            for file, names in self._kept.items()
            for name in names
            if not (self._root / file).exists() or name not in self._collected.get(file, names)
        ]

    @contextmanager
    def of(self, test: str) -> Iterator[None]:
        """While this test runs: its texts are compared in order, and none is left over."""
        self._test, self._texts = test, []
        try:
            yield
            self._end()
        finally:
            self._test = ""

    def compare(self, text: str) -> None:
        """The next text of the running test is the one that is kept."""
        assert self._test, "wordings are compared by tests, not by what they share"
        text = self._steady(text)
        number = len(self._texts)
        self._texts.append(text)
        if self.writes:
            return
        kept = self._of_test()
        if number >= len(kept):
            pytest.fail(self._told(f"wording {number + 1} is not kept:\n{text}"))
        if text != kept[number]:
            pytest.fail(self._told(f"wording {number + 1} was\n{kept[number]}\nand is\n{text}"))

    def write(self) -> None:
        """Writes the file anew, without what is stale."""
        for test in self.stale():
            file, _, name = test.partition("::")
            del self._kept[file][name]
        kept = {
            file: {name: texts for name, texts in sorted(names.items()) if texts}
            for file, names in sorted(self._kept.items())
        }
        written = {file: names for file, names in kept.items() if names}
        text = json.dumps(written, ensure_ascii=False, indent=1)
        self.path.write_text(text + "\n", encoding="utf-8")

    def _end(self) -> None:
        if self.writes:
            file, _, name = self._test.partition("::")
            self._kept.setdefault(file, {})[name] = self._texts
        elif len(self._texts) < len(self._of_test()):
            pytest.fail(self._told(f"only {len(self._texts)} of its wordings came"))

    def _of_test(self) -> list[str]:
        file, _, name = self._test.partition("::")
        return self._kept.get(file, {}).get(name, [])

    def _told(self, what: str) -> str:
        file, _, _ = self._test.partition("::")
        return f"{self._test}: {what}\nIf it is right: pytest --write-wordings {file}"

    def _steady(self, text: str) -> str:
        """The text, names in the place of what differs by run and by machine."""
        folders = [str(self.folders)] if self.folders else []
        folders += [tempfile.gettempdir()]
        for found, name in [
            *((rf"{re.escape(folder)}/[^/\s'\":;,]+", "<folder>") for folder in folders),
            (re.escape(str(ROOT)), "<repository>"),
            (r"\b([a-z]{2,4})_[0-9a-hjkmnp-tv-z]{26}\b", r"\1_<id>"),
            (r"(127\.0\.0\.1:|localhost:|\bport )\d+", r"\1<port>"),
            (r"\b[0-9a-f]{64}\b", "<sha256>"),
            (r"\[Errno \d+\]", "[Errno <number>]"),
            (r"\b\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)", "<time>"),
            (r"\b[\d,.]+ ([KMGT]iB left)", r"<number> \1"),
            (r"(this machine has |need about )[\d,.]+", r"\1<number>"),
            (r"(errors\.pydantic\.dev/)[\d.]+", r"\1<version>"),
        ]:
            text = re.sub(found, name, text)
        return text


WORDINGS = Wordings(Path(__file__).with_suffix(".json"))


@contextmanager
def refuses(
    error: type[E] | tuple[type[E], ...],
    at: str | None = None,
    *,
    line: int | None = None,
    column: str | None = None,
    names: str | None = None,
) -> Iterator[pytest.ExceptionInfo[E]]:
    """The block raises this error, at this place and in the words that are kept of this test.

    Args:
        at: JSON pointer of the first problem; as `line` and `column`, unasked if not given.
        names: What the text must contain that is another at each run, such as an id.
    """
    with pytest.raises(error) as raised:
        yield raised
    place = {"pointer": at, "line": line, "column": column}
    asked = {key: value for key, value in place.items() if value is not None}
    found = _first_place(raised.value) if asked else {}
    assert {key: found.get(key) for key in asked} == asked, f"the error is: {raised.value}"
    same_wording(str(raised.value), names)


def same_wording(text: str, names: str | None = None) -> None:
    """The text is the one that is kept of this test.

    Args:
        names: What it must contain that is another at each run, such as an id.
    """
    assert names is None or names in text, f"{names} is not named in: {text}"
    WORDINGS.compare(text)


def _first_place(error: Any) -> Mapping[str, Any]:
    """Of an error of the library, or of a refusal that the client got from a service."""
    problems = getattr(error, "problems", None) or error.errors
    return problems[0] if isinstance(problems[0], dict) else vars(problems[0])
