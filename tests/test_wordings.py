"""The kept wordings: what is compared with them, what is written, and that none is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcvae.errors import Problem, SchemaError, TableError
from tests.wordings import WORDINGS, Wordings, refuses

TEST = "tests/test_wordings.py::test_any[1]"


def run(wordings: Wordings, test: str, *texts: str) -> None:
    """A test with these texts."""
    with wordings.of(test):
        for text in texts:
            wordings.compare(text)


def written(path: Path, *texts: str, test: str = TEST) -> Wordings:
    """The wordings of a file after a run that wrote them, read anew."""
    wordings = Wordings(path)
    wordings.writes = True
    run(wordings, test, *texts)
    wordings.write()
    return Wordings(path)


@pytest.mark.slow
def test_no_wording_is_kept_of_a_test_that_does_not_exist() -> None:
    assert WORDINGS.stale() == []


def test_a_test_has_its_wordings_in_their_order_and_all_of_them(tmp_path: Path) -> None:
    wordings = written(tmp_path / "kept.json", "one", "two")
    for texts, told in (
        (("one", "too"), "wording 2 was\ntwo\nand is\ntoo\n"),
        (("one",), "only 1 of its wordings came"),
        (("one", "two", "three"), "wording 3 is not kept:\nthree\n.*pytest --write-wordings tests"),
    ):
        with pytest.raises(pytest.fail.Exception, match=told):
            run(wordings, TEST, *texts)


def test_writing_keeps_tests_that_did_not_run_and_drops_those_that_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    for test in (TEST, "tests/test_wordings.py::test_gone", "tests/test_nowhere.py::test_any"):
        written(path, "text", test=test)
    wordings = Wordings(path)
    wordings.collect([TEST])
    wordings.write()
    assert path.read_text() == (
        '{\n "tests/test_wordings.py": {\n  "test_any[1]": [\n   "text"\n  ]\n }\n}\n'
    )


def test_what_differs_by_run_has_a_name_in_its_place(tmp_path: Path) -> None:
    wordings = Wordings(tmp_path / "kept.json")
    wordings.folders, wordings.writes = tmp_path.parent, True
    run(wordings, TEST, f"{tmp_path}/m.gcvae of job_{'0k' * 13} at http://127.0.0.1:8123/v1")
    wordings.write()
    assert "<folder>/m.gcvae of job_<id> at http://127.0.0.1:<port>/v1" in wordings.path.read_text()


def test_an_error_has_its_class_and_its_place() -> None:
    problem = Problem("it is wrong", pointer="/columns/0", line=3)
    for asked in ({"at": "/columns/1"}, {"line": 4}, {"column": "a"}, {"names": "job_1"}):
        with pytest.raises(AssertionError, match="it is wrong"), refuses(SchemaError, **asked):
            raise SchemaError(problem)
    with pytest.raises(TableError), refuses(SchemaError):
        raise TableError(problem)
    with refuses(SchemaError, "/columns/0", line=3):
        raise SchemaError(problem)
