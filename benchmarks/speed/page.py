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

After this page you know what fits, samples and scores cost, beside other programs and beside the
limits of the machine.

`make bench-speed` writes this page from `benchmarks/results/speed-*.json`. Figures are CPU seconds
on one thread, median (least–most); other work on the machine changes them by a fifth and more.
Adult is its training table, 32,561 rows and 15 columns. Parts of different machines do not compare.
"""
_RATIO_HINT = """
*Limit* is the matrix products of the networks, each weight once, in float32, 4,096 rows at once,
and the faster CSV writer of Arrow and polars, measured alternately with sampling. The products are
computed by torch's `mm` and by oneDNN.
"""
_INGESTED = """
gcvae also checks every cell, infers the schema and searches for rules.
"""
_STARTED = """
CPU seconds, except the last line, which is elapsed time.
"""
_COLUMNS = """Fits of 10,000 rows and 40 updates, each in its own process:

"""
_LEVELS = """
Whole fits of 600,000 rows and 10 columns, one of which has this number of levels:

"""
_BESIDE = """
MOSTLY AI's engine (TabularARGN, defaults), run alternately: three fits each, two samples of each
fit. gcvae's rows are written to CSV, the peer's are not.
"""
_DOORS = """
By the command including its start, and through REST by all processes of `gcvae serve`, once each:

"""
_SCALE = "\nCPU seconds per million rows, by number of rows:\n"


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
            measured = f"{part['date']}, {part.get('machine') or document['machine']}."
            parts += [f"\n## {title}\n\n{measured}\n\n", write(subjects[name], document)]
    return "".join(parts)


def _start(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    lines = [[each.what, _told(each, 3)] for each in measures]
    return _table(["command", "s"], lines) + _STARTED


def _fit(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    lines = [[each.subject.removeprefix("fit "), _told(each, 1)] for each in measures]
    return _table(["Adult", "CPU s"], lines)


def _sample(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {(each.subject, each.what): each for each in measures}
    lines = []
    for preset in document["products"]:
        own, writer, *limits = (
            found[f"sample {preset}", what]
            for what in ("gcvae", "fastest writer", "matrix products", "oneDNN's products")
        )
        line = [preset, _told(own, 1), _told(writer, 2)]
        for products in limits:
            runs = zip(own.values, products.values, writer.values, strict=True)
            ratio = statistics.median(a / (b + c) for a, b, c in runs)
            line += [_told(products, 1), f"{ratio:.2f}"]
        lines.append([*line, f"{1e6 / own.median:,.0f}"])
    names = [
        "preset",
        "1,000,000 rows to CSV, CPU s",
        "writer",
        "products by `mm`",
        "times the limit",
        "by oneDNN",
        "times the limit",
        "rows per CPU s",
    ]
    text = _table(names, lines)
    text += _RATIO_HINT + _products(document["products"])
    doors = [each for each in measures if each.subject.startswith("door")]
    if doors:
        lines = [[d.subject.removeprefix("door "), d.what, _told(d, 1)] for d in doors]
        text += _DOORS + _table(["preset", "by", "1,000,000 rows to CSV, CPU s"], lines)
    scale = [each for each in measures if each.subject.startswith("scale")]
    if scale:
        text += (
            _SCALE
            + "\n"
            + _table(
                ["preset", "rows", "CPU s"],
                [
                    [s.subject.removeprefix("scale "), f"{int(s.what):,}", _told(s, 1)]
                    for s in scale
                ],
            )
        )
    return text


def _score(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {each.what: each for each in measures}
    names = {
        "tolerance": "to within 0.1 nats, as by default",
        "fixed": "64 draws",
        "products": "the matrix products of 64 draws, by `mm`",
        "oneDNN's products": "the same by oneDNN",
    }
    ratios = [
        statistics.median(
            limit / own
            for own, limit in zip(found["fixed"].values, found[what].values, strict=True)
        )
        for what in ("products", "oneDNN's products")
    ]
    deciles = ", ".join(f"{share:.0f}" for share in found["coverage by decile"].values)
    return (
        _table(
            ["Adult's test rows, preset default", "rows per CPU s"],
            [[text, _told(found[what], 0)] for what, text in names.items()],
        )
        + f"\n64 draws take {ratios[0]:.2f} times their products by `mm`, {ratios[1]:.2f} times "
        + "those by oneDNN. Scores by tolerance differ from those of 1,000 draws by "
        + f"{found['mean difference'].median:+.4f} nats on average, with a mean standard error of "
        + f"{found['mean error'].median:.3f}; {found['coverage'].median:.1f}% of rows lie within "
        + f"1.96 standard errors (by tenths, the least likely first: {deciles}).\n"
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
    names = ["table", "model", "fit, CPU s", "of the peer's", "1,000,000 rows, CPU s"]
    return _table([*names, "of the peer's", "rows per CPU s"], lines) + _BESIDE


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
    names = ["columns", "fit, CPU s per column", "sampled cell, CPU µs", "peak memory, MB"]
    text = _COLUMNS + _table(names, by_columns) + _LEVELS
    return text + _table(["levels of one column", "a fit, CPU s", "memory, MB"], by_levels)


def _products(products: Mapping[str, Any]) -> str:
    total = {
        preset: sum(n_in * n_out * times for _, (n_in, n_out), times in shapes)
        for preset, shapes in products.items()
    }
    sums = [f"{count:,} with `{preset}`" for preset, count in total.items()]
    return f"\nMultiply-adds of a row: {', '.join(sums)}.\n"


def _ingest(measures: Sequence[Measure], document: Mapping[str, Any]) -> str:
    found = {(each.subject, each.what): each for each in measures}
    lines = []
    for subject in dict.fromkeys(each.subject for each in measures):
        own, bare, size = (found[subject, what] for what in (OWN, BARE, "size"))
        share = f"{own.median / bare.median:.0%}"
        name = subject.removeprefix("ingest ")
        lines.append([name, _told(size, 0), _told(own, 1), _told(bare, 1), share])
    names = ["CSV file", "MB", "gcvae, MB per CPU s", "Arrow's reader, MB per CPU s", "share"]
    return _table(names, lines) + _INGESTED


def _told(measure: Measure, digits: int) -> str:
    ends = f"{min(measure.values):.{digits}f}–{max(measure.values):.{digits}f}"
    alone = f"{measure.median:.{digits}f}"
    return alone if len(measure.values) == 1 else f"{alone} ({ends})"


def _table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [names, ["---"] * len(names), *lines]
    return "".join(f"|{'|'.join(row)}|\n" for row in rows)


_SECTIONS = (
    ("sample", "Generating rows", _sample),
    ("score", "Scoring rows", _score),
    ("fit", "Fitting", _fit),
    ("beside", "Beside a peer", _beside),
    ("ingest", "Reading a file", _ingest),
    ("growth", "Columns and levels", _growth),
    ("start", "Starting", _start),
)
