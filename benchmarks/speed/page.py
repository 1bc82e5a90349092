"""docs/performance.md, made of the results alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.speed.beside import PEER
from benchmarks.speed.growth import COLUMNS, DRAWN, LEVELS
from benchmarks.speed.ingestion import BARE, OWN
from benchmarks.speed.measures import Measure
from benchmarks.speed.sampling import PRESETS

_HEAD = """# Performance

After this page you know how long fits, samples and scores take.

Times are CPU seconds on one thread: the median of several measurements, with the smallest and the
largest in parentheses. Other work on the machine changes times by a fifth or more, so compare only
figures of one section. *Adult* is a public table with 32,561 training rows and 15 columns.
`make bench-speed` writes this page.
"""
_RATIO_HINT = """The table shows the time to generate 1,000,000 rows of Adult into a CSV file.
The *limit* is the time that no program for these networks can avoid: that of their matrix products
(float32, by oneDNN), plus that of the faster of two CSV writers (Arrow and polars).

"""
_INGESTED = """The table compares gcvae with Arrow's CSV reader. gcvae also checks every cell,
infers the schema and searches for rules, which the reader does not.

"""
_COLUMNS = """The first table shows how cost grows with the number of columns. Each fit takes 40
updates on 10,000 rows.

"""
_LEVELS = """
The second table shows how cost grows with the number of levels (distinct values) of one column.
These fits run to the end on 600,000 rows and 10 columns.

"""
_BESIDE = """A ratio is the time of a model divided by that of MOSTLY AI's engine (TabularARGN with
its defaults). Both programs ran alternately on the same machine. The times of gcvae include writing
a CSV file; those of the engine do not.

"""
_NAMES = {
    "the same by the clock": "gcvae api, until it answers, elapsed time",
    "an empty Python": "Python without a program",
    "Adult, its rows again and again": "Adult, its rows repeated",
    "27,000 rows, 14 numbers, 10 columns of levels": "27,000 rows, 14 numeric and 10 categorical "
    "columns",
}
"""Plainer words for names in the results."""


def page(document: Mapping[str, Any]) -> str:
    """The page of a result."""
    subjects = {
        name: [Measure(**each) for each in part["measures"]]
        for name, part in document["subjects"].items()
    }
    parts = [_HEAD]
    for name, title, write in _SECTIONS:
        if name in subjects:
            part = document["subjects"][name]
            machine = part.get("machine") or document["machine"]
            measured = f"Date: {part['date']}. Processor: {machine}."
            parts += [f"\n## {title}\n\n{measured}\n\n", write(subjects[name], document)]
    return "".join(parts)


def _start(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    lines = [[each.what, _told(each, 3)] for each in measures]
    return _table(["command", "CPU s"], lines)


def _fit(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    lines = [[each.subject.removeprefix("fit "), _told(each, 1)] for each in measures]
    return _table(["preset", "fit of Adult, CPU s"], lines)


def _sample(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {(each.subject, each.what): each for each in measures}
    lines = []
    for preset in document["products"]:
        own, writer, products = (
            found[f"sample {preset}", what]
            for what in ("gcvae", "fastest writer", "oneDNN's products")
        )
        runs = zip(own.values, products.values, writer.values, strict=True)
        ratio = statistics.median(a / (b + c) for a, b, c in runs)
        times = [_told(own, 1), _told(products, 1), _told(writer, 2)]
        lines.append([preset, *times, f"{ratio:.2f}", f"{1e6 / own.median:,.0f}"])
    names = ["preset", "gcvae, CPU s", "matrix products, CPU s", "CSV writer, CPU s"]
    text = _RATIO_HINT + _table([*names, "gcvae / limit", "rows per CPU s"], lines)
    more = [
        each.median - found[each.subject.replace("door", "sample"), "gcvae"].median
        for each in measures
        if each.subject.startswith("door")
    ]
    if more:
        text += f"\n`gcvae sample` and REST took {min(more):.1f} to {max(more):.1f} CPU s more.\n"
    return text


def _score(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {each.what: each for each in measures}
    names = {
        "tolerance": "scores with a standard error of 0.1 nats (default)",
        "fixed": "scores from 64 draws of the latent vector",
        "oneDNN's products": "only the matrix products of 64 draws (limit)",
    }
    return _table(
        ["Adult's test rows, preset default", "rows per CPU s"],
        [[text, _told(found[what], 0)] for what, text in names.items()],
    ) + (
        "\nDefault scores differ from scores of 1,000 draws by "
        f"{found['mean difference'].median:+.4f} nats on average. For "
        f"{found['coverage'].median:.1f}% of rows,\nthe difference is at most 1.96 standard "
        "errors.\n"
    )


def _beside(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    """By table and model; ratios are medians of the rounds."""
    found = {(each.subject, each.what): each for each in measures}
    lines = []
    for subject in dict.fromkeys(each.subject for each in measures):
        peer = {what: found[subject, f"{PEER} {what}"] for what in ("fit", "draw")}
        for model in (*PRESETS, PEER):
            line = [subject.removeprefix("beside "), model]
            for what, digits in (("fit", 1), ("draw", 1)):
                own = found[subject, f"{model} {what}"]
                runs = zip(own.values, peer[what].values, strict=True)
                ratio = statistics.median(a / b for a, b in runs)
                line += [_told(own, digits), f"{ratio:.2f}"]
            lines.append([*line, f"{1e6 / found[subject, f'{model} draw'].median:,.0f}"])
    names = ["table", "model", "fit, CPU s", "fit, ratio", "1,000,000 rows, CPU s", "rows, ratio"]
    return _BESIDE + _table([*names, "rows per CPU s"], lines)


def _growth(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    """By columns per column, by levels whole."""
    found = {(each.subject, each.what): each.median for each in measures}
    by_columns = [
        [
            f"{count}",
            f"{found[f'growth columns {count}', 'fit'] / count:.2f}",
            f"{1e6 * found[f'growth columns {count}', 'draw'] / (count * DRAWN):.2f}",
            f"{found[f'growth columns {count}', 'memory'] / 1e6:,.0f}",
        ]
        for count in COLUMNS
    ]
    by_levels = [
        [
            f"{count:,}",
            f"{found[f'growth levels {count}', 'fit']:.1f}",
            f"{found[f'growth levels {count}', 'memory'] / 1e6:,.0f}",
        ]
        for count in LEVELS
    ]
    names = ["columns", "fit, CPU s per column", "generated cell, CPU µs", "peak memory, MB"]
    text = _COLUMNS + _table(names, by_columns) + _LEVELS
    return text + _table(["levels of one column", "fit, CPU s", "peak memory, MB"], by_levels)


def _ingest(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {(each.subject, each.what): each for each in measures}
    lines = []
    for subject in dict.fromkeys(each.subject for each in measures):
        own, bare, size = (found[subject, what] for what in (OWN, BARE, "size"))
        share = f"{own.median / bare.median:.0%}"
        name = subject.removeprefix("ingest ")
        lines.append([name, _told(size, 0), _told(own, 1), _told(bare, 1), share])
    names = ["CSV file", "MB", "gcvae, MB per CPU s", "Arrow's reader, MB per CPU s", "ratio"]
    return _INGESTED + _table(names, lines)


def _told(measure: Measure, digits: int) -> str:
    ends = f"{min(measure.values):.{digits}f}–{max(measure.values):.{digits}f}"
    alone = f"{measure.median:.{digits}f}"
    return alone if len(measure.values) == 1 else f"{alone} ({ends})"


def _table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [names, ["---"] * len(names), *([_NAMES.get(c, c) for c in line] for line in lines)]
    return "".join(f"|{'|'.join(row)}|\n" for row in rows)


_SECTIONS = (
    ("sample", "Generating rows", _sample),
    ("score", "Scoring rows", _score),
    ("fit", "Fitting", _fit),
    ("beside", "Compared with MOSTLY AI", _beside),
    ("ingest", "Reading a file", _ingest),
    ("growth", "Columns and levels", _growth),
    ("start", "Starting", _start),
)
