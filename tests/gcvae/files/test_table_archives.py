"""ZIP files of tables: what is read of them, and that what is written lies where it is said."""

from __future__ import annotations

import io
import random
from contextlib import suppress

import pytest

from gcvae.errors import TableError
from gcvae.files.table_archives import (
    archive_as_file,
    files_by_table,
    opened_archive,
    unpack,
    write_archive,
)
from tests.linked_tables import FILES, unzipped, zipped
from tests.wordings import refuses

CONTENTS = {"users.csv": b"id\n1\n2\n", "märz.csv": b"a,b\n1,2\n", "empty.csv": b""}


def written(contents: dict[str, bytes]) -> tuple[io.BytesIO, dict[str, tuple[int, int]]]:
    file = io.BytesIO()
    found = write_archive(file, [(n, lambda sink, c=c: sink.write(c)) for n, c in contents.items()])
    return file, {name: (t.offset, t.offset + t.size_bytes) for name, t in found.items()}


def test_each_table_is_a_run_of_bytes_of_an_archive_that_any_program_reads() -> None:
    file, places = written(CONTENTS)
    assert unzipped(file.getvalue()) == CONTENTS
    assert {name: file.getvalue()[slice(*place)] for name, place in places.items()} == CONTENTS
    assert written(CONTENTS)[0].getvalue() == file.getvalue()


def test_an_archive_becomes_one_of_its_tables() -> None:
    long = {"first.csv": b"a\n1\n", "second.csv": bytes(range(256)) * 10_000}
    file = io.BytesIO()
    writes = [(name, lambda sink, c=c: sink.write(c)) for name, c in long.items()]
    archive_as_file(file, write_archive(file, writes)["second.csv"])
    assert file.getvalue() == long["second.csv"]


def test_tables_are_unpacked_and_counted_as_they_come() -> None:
    seen: list[int] = []
    with opened_archive(io.BytesIO(zipped())) as (archive, members):
        for name, member in members.items():
            target = io.BytesIO()
            unpack(archive, member, target, seen.append)
            assert target.read() == FILES[f"{name}.csv"].encode()
    assert seen == [len(text) for text in FILES.values()]


def test_two_files_of_one_table_are_refused() -> None:
    assert files_by_table(["b.CSV", "a.tsv.gz"]) == {"b": "b.CSV", "a": "a.tsv.gz"}
    for names in (["a.csv", "a.txt"], ["a.csv", "a.csv"], ["a\n.csv"], ["a"]):
        with refuses(TableError):
            files_by_table(names)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_archive_is_refused_and_nothing_else_happens(seed: int) -> None:
    rng, whole = random.Random(seed), zipped()
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8])):
            place = rng.choice([rng.randrange(60), -1 - rng.randrange(170)])
            damaged[place] = rng.randrange(256)
        with (
            suppress(TableError),
            opened_archive(io.BytesIO(bytes(damaged))) as (archive, members),
        ):
            for member in members.values():
                unpack(archive, member, io.BytesIO(), lambda _: None)
