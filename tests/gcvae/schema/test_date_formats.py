"""Formats of dates that a schema may give, and what is said of others."""

from __future__ import annotations

import pytest

from tests.gcvae.schema.test_schema import TEXT, problems_of


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"name": "age", "datetime_format": "%Y-%m-%0"},
            "/columns/0/datetime_format, column 'age': datetime_format cannot be '%Y-%m-%0'"
            " (expected: a format with a letter behind each %, and %% for a % of its own)",
        ),
        (
            {"name": "age", "datetime_format": "%Y-%m-%d %-d"},
            "/columns/0/datetime_format, column 'age': datetime_format cannot be '%Y-%m-%d %-d'"
            " (expected: a format that has %d once)",
        ),
    ],
)
def test_a_format_that_reads_no_date_names_what_would_be_right(
    given: dict[str, object], problem: str
) -> None:
    assert problems_of(TEXT, given) == [problem]
