"""Options and arguments of the commands on files.

Commands on a service use those with the same meaning.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcvae.dependence.notes import KINDS
from gcvae.numerics.seeds import MAX_SEED
from gcvae.scoring.served_scores import SCORINGS
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
    typer.Argument(callback=existing_file, help="A table: .csv, .csv.gz or .parquet."),
]
ModelFile = Annotated[
    Path, typer.Argument(callback=existing_file, help="A trained model, model.gcvae.")
]
ModelOutput = Annotated[
    str, typer.Option("--output", "-o", help="A name that ends in .gcvae; - is standard output.")
]
Minimal = Annotated[
    bool,
    typer.Option(
        "--minimal",
        help="Leave out what drawing and completing do not need: the training record, scores, the "
        "map and the checksum of the table, counts.",
    ),
]


def _check_scoring(scoring: str | None) -> str | None:
    if scoring is not None and scoring not in SCORINGS:
        raise WrongUsageError(f"--scoring {scoring}: it is one of {', '.join(SCORINGS)}")
    return scoring


Scoring = Annotated[
    str | None,
    typer.Option(
        callback=_check_scoring,
        metavar="WORD",
        help="What the file's model says of rows: their scores (full), whether they are rare "
        "(flag), nothing (off); never more than the model itself does.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", callback=existing_file, help="What is known of the columns."),
]
TableOutput = Annotated[
    str, typer.Option("--output", "-o", help=".csv, .csv.gz or .parquet; - is standard output.")
]


def _check_encoding(name: str | None) -> str | None:
    from gcvae.files.text_encodings import check_encoding

    try:
        if name is not None:
            check_encoding(name)
    except ValueError as error:
        message = f"--encoding {name}: there is no such encoding (expected: {error})"
        raise WrongUsageError(message) from None
    return name


Encoding = Annotated[
    str | None,
    typer.Option(
        callback=_check_encoding,
        metavar="NAME",
        help="Of the text file: cp1252, latin-1, utf-16, ... Else UTF-8, as what is written is.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="The same seed gives the same answer.")
]
# The networks are small; on a busy machine a second thread makes them ten times slower.
Threads = Annotated[int, typer.Option(min=1, help="Computing threads.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for scripts.")]

# Options of single commands.
SchemaOutput = Annotated[str, typer.Option("--output", "-o", help="A file; - prints.")]
PresetName = Annotated[str, typer.Option(help="A named configuration.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One setting of the preset; repeatable."),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
RowCount = Annotated[
    int | None, typer.Option(min=1, help="How many rows to draw; as many as --given-rows has.")
]
Given = Annotated[
    str | None, typer.Option(metavar="JSON|@FILE", help='Such as {"age": {"min": 30}}.')
]
GivenRows = Annotated[
    Path | None,
    typer.Option(callback=existing_file, help="Known cells: a row is drawn around each."),
]
Distribution = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE", help='Such as {"sex": {"Female": 0.5, "Male": 0.5}}.'),
]
Completions = Annotated[int, typer.Option(min=1, help="Completions of each row.")]
FilledColumns = Annotated[
    str | None,
    typer.Option(metavar="NAME,…", help="Fill only these; blanks of all others stay."),
]
KeptBlanks = Annotated[
    str | None,
    typer.Option(metavar="NAME,…", help="Blanks of these are values: they stay, and count."),
]
ScoreDraws = Annotated[
    int | None, typer.Option(min=1, help="Draws of z per row, in place of a tolerance.")
]
Tolerance = Annotated[
    float | None, typer.Option(help="Nats: standard error of a row's score, 0.1 by default.")
]
Jitters = Annotated[
    int, typer.Option(min=0, help="Of a copula's discrete cells per draw; 0 is exact.")
]
Measure = Annotated[
    str, typer.Option(help="Of continuous values: density, rounding_cell or pmf (of bins).")
]
ScoreMissingness = Annotated[
    bool, typer.Option("--score-missingness", help="Blanks count; else any outcome may be.")
]
MapOutput = Annotated[
    str, typer.Option("--output", "-o", help=".png, .svg, .json or .csv; - prints JSON.")
]
MapKind = Annotated[
    str | None,
    typer.Option(help=f"{', '.join(KINDS)}. [default: expected, or local with --row or --z]"),
]
MapRow = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="The row whose local map it is, cells by column."),
]
MapPlace = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="A place in the latent space instead: [0.5, -1.2]."),
]
MapOrder = Annotated[
    str | None,
    typer.Option(help="A kind in whose map's order the columns stand. [default: the map's]"),
]
ManifoldOutput = Annotated[
    str, typer.Option("--output", "-o", help=".png, .svg or .json; - prints JSON.")
]
GridSteps = Annotated[int, typer.Option(min=2, max=50, help="Quantiles a dimension.")]
ReportOutput = Annotated[str, typer.Option("--output", "-o", help=".html or .json; - prints JSON.")]


def read_option(name: str, text: str | None, form: type) -> Any:
    """Returns an option's JSON, an object (dict) or a list."""
    if text is None:
        return None
    wanted = """an object such as '{"age": 40}'""" if form is dict else "a list of numbers"
    try:
        found = read_json(text)
    except ValueError as error:
        raise WrongUsageError(f"{name} is no JSON ({error}); write {wanted}") from None
    if not isinstance(found, form):
        raise WrongUsageError(f"{name} is {text}; write {wanted}")
    return found


def check_device(device: str) -> None:
    if device not in DEVICES:
        raise WrongUsageError(f"--device {device}: choose one of {', '.join(DEVICES)}")


def use_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def load_model(model: Path, threads: int) -> Synthesizer:
    from gcvae import Synthesizer

    use_threads(threads)
    return Synthesizer.load(model)


def table_reader(table: Path, encoding: str | None) -> TableReader:
    from gcvae import TableReader

    return TableReader(table, encoding=encoding)
