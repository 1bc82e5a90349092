"""Options and arguments that several commands share, and functions that parse their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcvae.dependence.notes import KINDS
from gcvae.numerics.seeds import MAX_SEED
from gcvae.scoring.scoring_setting import SCORINGS
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files.json_texts import read_json
from gcvae_cli.inputs import existing_file

if TYPE_CHECKING:
    from gcvae.files.table_reader import TableReader
    from gcvae.synthesizer import Synthesizer

TABLE_FORMATS = {".csv": "csv", ".csv.gz": "csv.gz", ".parquet": "parquet"}
MODEL_FORMATS = {".gcvae": "gcvae"}
MAP_FORMATS = {".png": "png", ".svg": "svg", ".json": "json", ".csv": "csv"}
MANIFOLD_FORMATS = {".png": "png", ".svg": "svg", ".json": "json"}
REPORT_FORMATS = {".html": "html", ".json": "json"}
DEVICES = ("auto", "cpu", "cuda")
Table = Annotated[
    Path,
    typer.Argument(callback=existing_file, help="The table: a .csv, .csv.gz or .parquet file."),
]
ModelFile = Annotated[
    Path, typer.Argument(callback=existing_file, help="A trained model (.gcvae).")
]
ModelOutput = Annotated[
    str, typer.Option("--output", "-o", help="The model file (.gcvae), or - for standard output.")
]
Minimal = Annotated[
    bool,
    typer.Option(
        "--minimal",
        help="Leave out records of the training table: the training record, scores of held-out "
        "rows, data map, checksum and counts.",
    ),
]


def _check_scoring(scoring: str | None) -> str | None:
    if scoring is not None and scoring not in SCORINGS:
        raise WrongUsageError(f"--scoring {scoring}: choose one of {', '.join(SCORINGS)}")
    return scoring


Scoring = Annotated[
    str | None,
    typer.Option(
        callback=_check_scoring,
        metavar="WORD",
        help="Restrict scoring: full scores (full), only a flag of rare rows (flag), or none "
        "(off). It cannot be less restrictive than that of the model.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        callback=existing_file,
        help="Schema (JSON) of the columns; the rest is inferred.",
    ),
]
TableOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="The .csv, .csv.gz or .parquet file, an s3:// URL, the URL of a database (with "
        "--into), or - for standard output.",
    ),
]


def _check_encoding(name: str | None) -> str | None:
    from gcvae.errors import TableError
    from gcvae.files.text_encodings import checked_encoding

    try:
        checked_encoding(name)
    except TableError as error:
        expected = error.problems[0].expected
        message = f"--encoding {name}: unknown encoding (expected: {expected})"
        raise WrongUsageError(message) from None
    return name


Encoding = Annotated[
    str | None,
    typer.Option(
        callback=_check_encoding,
        metavar="NAME",
        help="Text encoding of the input: cp1252, latin-1, utf-16, … (default and output: UTF-8).",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="Random seed; the same seed gives the same result.")
]
FreshSeed = Annotated[
    int | None,
    typer.Option(
        min=0, max=MAX_SEED, help="Random seed; without one, a random seed is used and printed."
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In CSV: put ' before texts that a spreadsheet would read as formulas.",
    ),
]
# The default is 1, because the networks are small and more threads may slow training down.
Threads = Annotated[int, typer.Option(min=1, help="Number of threads.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

# Options of single commands, for files and for a service.
SchemaOutput = Annotated[str, typer.Option("--output", "-o", help="The file, or - to print.")]
PresetName = Annotated[str, typer.Option(help="Preset: a named configuration.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override one setting of the preset; repeatable."
    ),
]
Device = Annotated[str, typer.Option(help="Device: auto, cpu or cuda.")]
RowCount = Annotated[
    int | None,
    typer.Option(min=1, help="Number of rows to generate (default: one per row of --given-rows)."),
]
Given = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE", help='Conditions on columns, such as {"age": {"min": 30}}.'),
]
GivenRows = Annotated[
    Path | None,
    typer.Option(
        callback=existing_file, help="Table of known cells: each of its rows is completed."
    ),
]
Distribution = Annotated[
    str | None,
    typer.Option(
        metavar="JSON|@FILE",
        help='Target shares of one column, such as {"sex": {"Female": 0.5, "Male": 0.5}}.',
    ),
]
Completions = Annotated[int, typer.Option(min=1, help="Number of imputations per row.")]
FilledColumns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,…", help="Impute only these columns; others keep their missing values."
    ),
]
KeptMissing = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,…",
        help="Columns whose missing values are meaningful: they are kept, and count as known.",
    ),
]
ScoreDraws = Annotated[
    int | None,
    typer.Option(min=1, help="Fixed number of draws of z per row, instead of --tolerance."),
]
Tolerance = Annotated[
    float | None, typer.Option(help="Target standard error of each score in nats (default: 0.1).")
]
Measure = Annotated[
    str, typer.Option(help="Measure of continuous values: density, rounding_cell or pmf.")
]
ScoreMissingness = Annotated[
    bool,
    typer.Option(
        "--score-missingness",
        help="Score missing cells as values; by default they are integrated out.",
    ),
]
MapOutput = Annotated[
    str,
    typer.Option("--output", "-o", help="The .png, .svg, .json or .csv file, or - to print JSON."),
]
MapKind = Annotated[
    str | None,
    typer.Option(
        help=f"Kind of map: {', '.join(KINDS)}. [default: expected, or local with --row or --z]"
    ),
]
MapRow = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="Known cells of the row of a local map, by column."),
]
MapPlace = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help="Latent vector of a local map, instead of --row: [0.5, -1.2]."
    ),
]
MapOrder = Annotated[
    str | None,
    typer.Option(help="Kind of map that orders the columns. [default: the kind of the map]"),
]
ManifoldOutput = Annotated[
    str, typer.Option("--output", "-o", help="The .png, .svg or .json file, or - to print JSON.")
]
GridSteps = Annotated[int, typer.Option(min=2, max=50, help="Number of quantiles per dimension.")]
ReportOutput = Annotated[
    str, typer.Option("--output", "-o", help="The .html or .json file, or - to print JSON.")
]


def read_option(name: str, text: str | None, expected_type: type) -> Any:
    """Returns the parsed JSON value of an option; None if the option is absent.

    Args:
        name: Name of the option, for errors.
        text: JSON text; None if the option is absent.
        expected_type: Required type of the value: dict or list.

    Raises:
        WrongUsageError: The text is not JSON of this type.
    """
    if text is None:
        return None
    wanted = """an object such as '{"age": 40}'""" if expected_type is dict else "a list of numbers"
    try:
        found = read_json(text)
    except ValueError as error:
        raise WrongUsageError(f"{name} is not valid JSON ({error}); write {wanted}") from None
    if not isinstance(found, expected_type):
        raise WrongUsageError(f"{name} is {text}; write {wanted}")
    return found


def check_device(device: str) -> None:
    """Raises a WrongUsageError if the device is not `auto`, `cpu` or `cuda`."""
    if device not in DEVICES:
        raise WrongUsageError(f"--device {device}: choose one of {', '.join(DEVICES)}")


def use_threads(threads: int) -> None:
    """Sets the number of threads that torch uses."""
    import torch

    torch.set_num_threads(threads)


def load_model(model: Path, threads: int) -> Synthesizer:
    """Returns the model in a file, and sets the number of threads that torch uses."""
    from gcvae import Synthesizer

    use_threads(threads)
    return Synthesizer.load(model)


def table_reader(table: Path, encoding: str | None) -> TableReader:
    """Returns a reader of a table file; an encoding of None is UTF-8."""
    from gcvae import TableReader

    return TableReader(table, encoding=encoding)
