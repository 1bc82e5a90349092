"""The command `gcvae report`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gcvae_cli.files.options import (
    REPORT_FORMATS,
    AsJson,
    Encoding,
    ModelFile,
    ReportOutput,
    Seed,
    Threads,
    load_model,
    table_reader,
)
from gcvae_cli.inputs import existing_file
from gcvae_cli.outputs import (
    STANDARD_OUTPUT,
    answer,
    format_of,
    opened_output,
    refuse_two_answers,
)
from gcvae_cli.progress import progress_bar


def report(
    model: ModelFile,
    real: Annotated[
        Path, typer.Option(callback=existing_file, help="The table it was trained on.")
    ],
    output: ReportOutput,
    holdout: Annotated[
        Path | None,
        typer.Option(callback=existing_file, help="Rows that had no part in training."),
    ] = None,
    synthetic: Annotated[
        Path | None,
        typer.Option(callback=existing_file, help="A table to judge; else rows are drawn."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column to predict; repeatable. [default: all]"),
    ] = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Report on a model's rows: are they realistic, useful, and safe to share?"""
    refuse_two_answers(output, as_json)
    report_format = format_of(output, REPORT_FORMATS, standard_output="json")
    synthesizer = load_model(model, threads)
    unseen, judged = (
        None if path is None else table_reader(path, encoding) for path in (holdout, synthetic)
    )
    with progress_bar("reporting") as bar, opened_output(output) as stream:
        made = synthesizer.report(
            table_reader(real, encoding),
            unseen,
            synthetic=judged,
            seed=seed,
            targets=target or None,
            progress=lambda share: bar.move(share, ""),
        )
        document = made.to_json()
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        page = made.to_html(_subject(model, real, synthetic))
        stream.write((page if report_format == "html" else text).encode())
    verdicts = {name: document[name]["verdict"] for name in made.parts}
    if as_json:
        answer({"output": output, "verdicts": verdicts})
    elif output != STANDARD_OUTPUT:
        for name, part in made.parts.items():
            print(f"{name}: {part.verdict.replace('_', ' ')}. {part.sentence}")


def _subject(model: Path, real: Path, synthetic: Path | None) -> str:
    """Returns the subject of a report: the names of the files, and today's date."""
    judged = "rows drawn by" if synthetic is None else f"{synthetic.name}, beside"
    today = datetime.now(UTC).date()
    return f"{judged} {model.name}; real table: {real.name}; gcvae {version('gcvae')}, {today}"
