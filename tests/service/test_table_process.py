"""Reading a table takes no more memory and time than it may, and takes nobody with it."""

from __future__ import annotations

import io
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcvae.errors import Problem, TableError
from service.errors import ProcessDiedError, TableLimitError
from service.settings import ServiceSettings
from service.table_process import read_isolated
from tests.running_service import Running, assert_problem
from tests.wordings import refuses, same_wording

CSV = {"Content-Type": "text/csv"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
MEBIBYTE = 1 << 20


def upper(file: BinaryIO) -> bytes:
    return file.read().upper()


def take(file: BinaryIO, n_bytes: int) -> int:
    return len(bytearray(n_bytes))


def spin(file: BinaryIO) -> None:
    while True:
        pass


def end_by(file: BinaryIO, number: int) -> None:
    Path(tempfile.mkdtemp(), "half-made").write_bytes(file.read())
    os.kill(os.getpid(), number)


def niceness_and_session(file: BinaryIO) -> tuple[int, int]:
    return os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0)


def refuse(file: BinaryIO) -> None:
    raise TableError(Problem("is no table", line=3, expected="a table"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """An upload, in a folder of temporary files that has nothing else."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with tempfile.TemporaryFile() as file:
        file.write(b"a,b\n1,2\n")
        yield file


def test_the_work_is_done_on_the_whole_file_which_can_be_read_again(file: BinaryIO) -> None:
    assert read_isolated(upper, file, ServiceSettings()) == b"A,B\n1,2\n"
    file.seek(0)
    assert file.read() == b"a,b\n1,2\n"


def test_what_the_work_raises_is_raised_with_its_place(file: BinaryIO) -> None:
    with refuses(TableError, line=3):
        read_isolated(refuse, file, ServiceSettings())


def test_whoever_asks_the_service_goes_before_the_reading(file: BinaryIO) -> None:
    niceness, session = read_isolated(niceness_and_session, file, ServiceSettings())
    assert niceness == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    assert session != os.getsid(0)


@pytest.mark.slow
def test_memory_is_limited_beyond_what_the_process_begins_with(file: BinaryIO) -> None:
    settings = ServiceSettings(table_memory_bytes=256 * MEBIBYTE)
    assert read_isolated(partial(take, n_bytes=64 * MEBIBYTE), file, settings) == 64 * MEBIBYTE
    with refuses(TableLimitError):
        read_isolated(partial(take, n_bytes=300 * MEBIBYTE), file, settings)


def test_processor_time_is_limited(file: BinaryIO) -> None:
    with refuses(TableLimitError):
        read_isolated(spin, file, ServiceSettings(table_seconds=1))


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGSEGV, TableLimitError), (signal.SIGABRT, TableLimitError),
     (signal.SIGKILL, ProcessDiedError)],
)  # fmt: skip
def test_a_process_that_dies_leaves_nothing(
    file: BinaryIO, tmp_path: Path, number: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read_isolated(partial(end_by, number=number), file, ServiceSettings())
    assert not list(tmp_path.iterdir())


def packed(cells: list[str]) -> bytes:
    """A Parquet file of some hundred bytes for any number of equal cells."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": cells}), buffer, compression="zstd")
    return buffer.getvalue()


LONG = "z" * 101


@pytest.mark.parametrize(
    ("content", "headers", "place"),
    [(f"a,b\n1,x\n2,{LONG}\n".encode(), CSV, {"line": 3}),
     (f'a,b\n1,x\n2,"{LONG * 9}'.encode(), CSV, {"line": 3}),
     (packed(["x", LONG]), PARQUET, {"column": "text"})],
)  # fmt: skip
def test_a_cell_over_the_limit_is_refused_with_its_place(
    start: Callable[..., Running], content: bytes, headers: dict[str, str], place: dict[str, Any]
) -> None:
    service = start(max_cell_characters=100)
    response = service.http.post("/v1/datasets", content=content, headers=headers)
    assert_problem(response, 422, "limit-exceeded")
    assert response.json()["setting"] == "GCVAE_MAX_CELL_CHARACTERS"
    assert place.items() <= response.json()["errors"][0].items()


@pytest.mark.slow
def test_a_small_file_that_unfolds_to_more_than_memory_is_refused_and_the_service_goes_on(
    start: Callable[..., Running],
) -> None:
    service = start(table_memory_bytes=128 * MEBIBYTE, max_cell_characters=10**6)
    content = packed(["z" * 500_000] * 1000)
    assert len(content) < 1000
    response = service.http.post("/v1/datasets", content=content, headers=PARQUET)
    assert_problem(response, 422, "limit-exceeded")
    assert response.json()["setting"] == "GCVAE_TABLE_MEMORY_BYTES"
    table = b"a,b\n" + b"1,x\n2,y\n" * 20
    assert service.http.post("/v1/datasets", content=table, headers=CSV).status_code == 201
    assert service.http.get("/v1/datasets").json()["items"][0]["rows"] == 40


def test_a_header_is_refused_before_its_rows_are_read(start: Callable[..., Running]) -> None:
    service = start(max_columns=3)
    content = b"a,b,c,d,d\n" + b'"never closed'
    response = service.http.post("/v1/datasets", content=content, headers=CSV)
    assert_problem(response, 422, "limit-exceeded")
    same_wording(response.json()["detail"])
