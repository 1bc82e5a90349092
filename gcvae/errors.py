"""Errors of the library.

GcvaeError
├── InputError              what the caller gave is wrong; carries `problems`
│   ├── TableError          the file or the table
│   ├── SchemaError         the schema document, or a schema that contradicts its table
│   ├── UnknownColumnError  a column that the schema or the table does not have
│   ├── SettingError        a training setting
│   ├── ConstraintError     constraints that too few rows of a model satisfy
│   ├── ConditionError      a condition on sampling
│   ├── LeftOutError        what a minimal model file does not hold
│   ├── ScoringError        scores of a model that was published without
│   └── BudgetError         private models of a table that exceed its cap together
├── ArtifactError           a model file that can not be read
├── TrainingError           training can not go on
│   └── DivergedError       the loss left the finite numbers
├── MissingPackageError     a package of an extra is asked for, and not installed
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
        suggestion: The name that was probably meant; in the line it stands for what is expected.
        row: Position of a row that has no line, counted from 0 as `DataFrame.iloc` does.
    """

    message: str
    pointer: str | None = None
    line: int | None = None
    column: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        """The problem in one line, the place first."""
        place = ", ".join(self._places())
        text = f"{place}: {self.message}" if place else self.message
        if self.suggestion is not None:
            return f"{text}; did you mean {self.suggestion!r}?"
        return f"{text} (expected: {self.expected})" if self.expected else text

    def _places(self) -> list[str]:
        places = [self.pointer] if self.pointer else []
        places += [f"line {self.line}"] if self.line is not None else []
        places += [f"row {self.row}"] if self.row is not None else []
        return places + ([f"column {self.column!r}"] if self.column is not None else [])


def json_pointer(*steps: object) -> str:
    """The JSON pointer (RFC 6901) of the place that these steps lead to.

    >>> json_pointer("given", "price/m²")
    '/given/price~1m²'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


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


class LeftOutError(InputError):
    """What is asked was left out of the model's file, which is minimal."""


class ScoringError(InputError):
    """A score is asked of a model that was published without."""


class BudgetError(InputError):
    """The private models of a table would together exceed the cap on it."""


class ArtifactError(GcvaeError):
    """A model file is truncated, altered or of another version."""


class ModelVersionError(ArtifactError):
    """A model file is of a version that this library does not read."""


class TrainingError(GcvaeError):
    """Training can not go on."""


class DivergedError(TrainingError):
    """The training loss is no longer a finite number."""


class MissingPackageError(GcvaeError):
    """A package of an extra is asked for, and not installed.

    Attributes:
        package: What is missing.
        extra: The extra of gcvae that brings it.
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        """Names what installs the package; `purpose` is what needs it, in the plural."""
        super().__init__(
            f"{purpose} need {package}, which is not installed: pip install 'gcvae[{extra}]'"
        )
        self.package = package
        self.extra = extra


class CancelledError(GcvaeError):
    """The progress callback asked training to stop."""
