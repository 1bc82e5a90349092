"""Errors of the library.

GcvaeError
├── InputError              invalid input of the caller; carries `problems`
│   ├── TableError          unusable file or table
│   │   └── EmptyTableError file of a table without rows
│   ├── SchemaError         invalid schema document, or schema that contradicts its table
│   ├── UnknownColumnError  column that the schema or the table does not have
│   ├── SettingError        invalid training setting
│   ├── HardRuleError       hard rules that too few generated rows keep
│   ├── ConditionError      malformed or impossible condition
│   ├── LeftOutError        part that a minimal model file does not contain
│   ├── ScoringError        score of a model that was published without scoring
│   └── BudgetError         private models of a table that exceed its cap together
├── ArtifactError           unreadable model file
├── UnwritableFileError     file that can not be written
├── TrainingError           training that can not go on
│   └── DivergedError       training loss that is not finite
├── MissingPackageError     package of an extra that is needed and not installed
└── CancelledError          stop requested by the progress callback
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One error in an input: where it is, what is there, and what is expected.

    Attributes:
        message: Description of the error, as a clause without a final stop.
        pointer: JSON pointer of the offending field in a document.
        line: Physical line of a text file, counted from 1.
        column: Name of the table column.
        expected: Description of a valid value.
        suggestion: Name that was probably meant; shown in place of `expected`.
        row: Position of the row in a table that has no lines, counted from 0 like `DataFrame.iloc`.
    """

    message: str
    pointer: str | None = None
    line: int | None = None
    column: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        """Returns the problem in one line, its location first."""
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
    """Returns the JSON pointer (RFC 6901) that takes these steps from the root.

    >>> json_pointer("given", "price/m²")
    '/given/price~1m²'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class GcvaeError(Exception):
    """Base class of all errors that the library raises on purpose."""


class InputError(GcvaeError):
    """Invalid input of the caller.

    Attributes:
        problems: All problems that were found, at least one.
    """

    def __init__(self, *problems: Problem | str) -> None:
        """Stores the problems; a bare string is a problem without a location."""
        super().__init__(*problems)
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)

    def __str__(self) -> str:
        """Returns the first problem in one line, and the number of further ones."""
        if not self.problems:
            return self.__class__.__name__
        more = len(self.problems) - 1
        return f"{self.problems[0]}" + (f"; and {more} more" if more else "")


class TableError(InputError):
    """The file or the table is unusable."""


class EmptyTableError(TableError):
    """The table has columns and no rows.

    Attributes:
        names: Of its columns.
    """

    names: tuple[str, ...] = ()


class SchemaError(InputError):
    """The schema document is invalid, or contradicts its table."""


class UnknownColumnError(InputError):
    """An input names a column that the schema or the table does not have."""


class SettingError(InputError):
    """A training setting is unknown or out of its range."""


class HardRuleError(InputError):
    """Too few of the rows that a model generates keep the hard rules."""


class ConditionError(InputError):
    """A condition on sampling is malformed or impossible."""

    def __str__(self) -> str:
        """Returns all problems, at most one per column and rule."""
        return "; ".join(map(str, self.problems))


class LeftOutError(InputError):
    """The requested part is not in the model's file, because the file is minimal."""


class ScoringError(InputError):
    """A score was requested from a model that was published without scoring."""


class BudgetError(InputError):
    """The private models of a table would together exceed the cap on it."""


class ArtifactError(GcvaeError):
    """A model file is truncated, altered or of another version."""


class UnwritableFileError(GcvaeError, OSError):
    """A file can not be written, for example because its folder does not exist."""

    def __str__(self) -> str:
        """Returns the path and what is wrong."""
        return f"{self.filename}: {self.strerror}"


class ModelVersionError(ArtifactError):
    """A model file is of a version that this library does not read."""


class TrainingError(GcvaeError):
    """Training can not go on."""


class DivergedError(TrainingError):
    """The training loss is no longer a finite number."""


class MissingPackageError(GcvaeError):
    """A package of an extra is needed and not installed.

    Attributes:
        package: Name of the missing package.
        extra: Extra of gcvae that installs it.
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        """Builds the message; `purpose` names what needs the package, in the plural."""
        super().__init__(
            f"{purpose} need {package}, which is not installed: pip install 'gcvae[{extra}]'"
        )
        self.package = package
        self.extra = extra


class CancelledError(GcvaeError):
    """The progress callback requested that training stop."""
