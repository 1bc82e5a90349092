"""What several tests need: the folder of real tables, and the kept wordings of errors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.lengths import AT_LENGTH, TIMES
from tests.servers.servers import MariaDBServer, PostgresServer, ServerError
from tests.wordings import WORDINGS

_REPOSITORY = Path(__file__).resolve().parents[1]
# A busy machine is no fault, and the same cases are tried at each run.
settings.register_profile(
    "gcvae", deadline=None, derandomize=TIMES <= 1, max_examples=100 if AT_LENGTH else 20
)
settings.load_profile("gcvae")


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "keep the wordings of the tests that run as they are, in tests/wordings.json"
    parser.addoption("--write-wordings", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    WORDINGS.writes = config.getoption("--write-wordings")
    if WORDINGS.writes and (config.getoption("numprocesses", None) or config.getoption("lf", None)):
        raise pytest.UsageError("--write-wordings goes with one process and whole files: no -n")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not any("::" in arg for arg in config.args):
        WORDINGS.collect(item.nodeid for item in items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with WORDINGS.of(item.nodeid):
        return (yield)


def pytest_sessionfinish() -> None:
    if WORDINGS.writes:
        WORDINGS.write()


@pytest.fixture(scope="session", autouse=True)
def _folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    WORDINGS.folders = tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real tables, `GCVAE_DATA_DIR` or ../shared/data beside the repository."""
    given = os.environ.get("GCVAE_DATA_DIR")
    folder = Path(given) if given else _REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there are no real tables in {folder}; set GCVAE_DATA_DIR to their folder")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests that neither stop it nor set it up."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    """A MariaDB server for all tests; without one on the machine they are skipped."""
    try:
        server = MariaDBServer()
    except ServerError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes an empty disk of so many bytes; it is gone after the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a disk: the test needs one that is full")

    with ExitStack() as stack:

        def make(size_bytes: int) -> Path:
            folder = tmp_path / "disk"
            folder.mkdir()
            size = f"size={size_bytes}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
            stack.callback(subprocess.run, ["umount", folder], check=True)
            return folder

        yield make
