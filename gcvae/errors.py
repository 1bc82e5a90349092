"""Errors of the library.

GcvaeError
├── InputError              what the caller gave is wrong; carries `problems`
│   ├── TableError          the file or the table
│   ├── SchemaError         the schema document, or a schema that contradicts its table
│   ├── UnknownColumnError  a column that the schema or the table does not have
│   ├── SettingError        a training setting
│   ├── ConstraintError     constraints that too few rows of a model satisfy
│   └── ConditionError      a condition on sampling
├── ArtifactError           a model file that can not be read
├── TrainingError           training can not go on
│   └── DivergedError       the loss left the finite numbers
└── CancelledError          the progress callback asked to stop
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input: the place, what is there, and what would be right.

    Attributes:
        message: What is wrong, as a clause without a final stop.
        pointer: JSON pointer of the offending field in a document.
        line: Physical line of a text file, counted from 1.
        column: Name of the table column.
        expected: What would be right.
    """

    message: str
    pointer: str | None = None
    line: int | None = None
    column: str | None = None
    expected: str | None = None

    def __str__(self) -> str:
        """The problem in one line, the place first."""
        place = ", ".join(self._places())
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} (expected: {self.expected})" if self.expected else text

    def _places(self) -> list[str]:
        places = [self.pointer] if self.pointer else []
        places += [f"line {self.line}"] if self.line is not None else []
        return places + ([f"column {self.column!r}"] if self.column is not None else [])


class GcvaeError(Exception):
    """The root of every error that the library raises on purpose."""


class InputError(GcvaeError):
    """What the caller gave is wrong.

    Attributes:
        problems: Everything found, at least one.
    """

    def __init__(self, *problems: Problem | str) -> None:
        """Keeps the problems; a bare string is a problem without a place."""
        super().__init__(*problems)
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)

    def __str__(self) -> str:
        """The first problem in one line, and how many more there are."""
        if not self.problems:
            return self.__class__.__name__
        more = len(self.problems) - 1
        return f"{self.problems[0]}" + (f"; and {more} more" if more else "")


class TableError(InputError):
    """The file or the table can not be used."""


class SchemaError(InputError):
    """The schema document is wrong, or contradicts its table."""


class UnknownColumnError(InputError):
    """A column is named that the schema or the table does not have."""


class SettingError(InputError):
    """A training setting is unknown or out of its range."""


class ConstraintError(InputError):
    """Too few of the rows that a model draws satisfy the constraints."""


class ConditionError(InputError):
    """A condition on sampling is malformed or impossible."""


class ArtifactError(GcvaeError):
    """A model file is truncated, altered or of another version."""


class TrainingError(GcvaeError):
    """Training can not go on."""


class DivergedError(TrainingError):
    """The training loss is no longer a finite number."""


class CancelledError(GcvaeError):
    """The progress callback asked training to stop."""
