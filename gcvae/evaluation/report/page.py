"""A report as one HTML page: no script, no other file, no host; on screen, phone and paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gcvae.evaluation.report.pictures import bars, two_ways

_QUESTIONS = {
    "fidelity": ("Is it good?", "Do the drawn rows look like real ones?"),
    "utility": ("Is it useful?", "Can one learn from drawn rows what one learns from real ones?"),
    "likelihood": ("Does the model know the table?", "How well it describes rows it has not seen."),
    "privacy": ("Is it safe?", "Do attacks tell which rows the model learned from?"),
}
_WORDS = {
    "green": "green: nothing against it",
    "amber": "amber: look at it",
    "red": "red: do not hand on",
    "not_measured": "not measured",
}
_MARKS = {"green": "✓", "amber": "!", "red": "✕", "not_measured": "–"}
_MOST_LINES = 30
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--line:#d5dae0;
--card:#f6f8fa;--green:#1a7f37;--amber:#9a6700;--red:#c62828;--none:#59636e;--real:#57606a;--drawn:#0969da}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--paper:#0d1117;--line:#30363d;
--card:#161b22;--green:#3fb950;--amber:#d29922;--red:#ff6b6b;--none:#9aa5b1;--real:#9aa5b1;
--drawn:#58a6ff}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);
color:var(--ink);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:0}
h3{font-size:1rem;margin:1rem 0 .3rem}
p{margin:.4rem 0}.soft{color:var(--soft);font-size:.9rem}
section{border:1px solid var(--line);border-left-width:.5rem;border-radius:.4rem;padding:.8rem 1rem;
margin:1rem 0}.green{border-left-color:var(--green)}.amber{border-left-color:var(--amber)}
.red{border-left-color:var(--red)}.not_measured{border-left-color:var(--none)}
.badge{display:inline-block;font-weight:700;border:2px solid;border-radius:1rem;padding:0 .7rem}
.green .badge,.green.badge{color:var(--green)}.amber .badge,.amber.badge{color:var(--amber)}
.red .badge,.red.badge{color:var(--red)}.not_measured .badge,.not_measured.badge{color:var(--none)}
.verdict{font-size:1.1rem}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}details{margin:.6rem 0}
summary{cursor:pointer;font-weight:600}.pictures{display:flex;flex-wrap:wrap;gap:1rem}
figure{margin:0;flex:1 1 16rem;min-width:0}figcaption{font-size:.9rem}svg{width:100%;height:auto}
svg text{fill:var(--ink);font:11px system-ui,sans-serif}.r{fill:var(--real)}.d{fill:var(--drawn)}
.lead{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.6rem;padding:0}
.lead li{list-style:none;background:var(--card);border-radius:.4rem;padding:.6rem}
@media(max-width:36rem){thead{display:none}tr{display:block;border-bottom:1px solid var(--line);
padding:.4rem 0}td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0}
td::before{content:attr(data-label);color:var(--soft);flex:0 0 40%}td.n{white-space:normal}}
@media print{details::details-content{content-visibility:visible;block-size:auto}
body{max-width:none;font-size:10pt}section,figure,tr{break-inside:avoid-page}
section{break-inside:auto}}
"""


def html_page(report: Mapping[str, Any]) -> str:
    """The page of a report's JSON document."""
    lead = "".join(
        f'<li><a href="#{name}">{question}</a><br>{_badge(report[name]["verdict"])}</li>'
        for name, (question, _) in _QUESTIONS.items()
    )
    sections = "".join(_section(name, report[name]) for name in _QUESTIONS)
    limits = "".join(f"<li>{escape(text)}</li>" for text in report["not_covered"])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Report on synthetic rows</title><style>{_STYLE}</style></head><body>"
        "<h1>Report on synthetic rows</h1>"
        '<p class="soft">Is it good, is it useful, is it safe? Each answer has a colour, a'
        " sentence, and what to do. The figures behind it stand below it, each beside its"
        " <em>floor</em>: what other real rows of the same number would show.</p>"
        f'<ul class="lead">{lead}</ul>{sections}'
        f"<section><h2>What this report does not cover</h2><ul>{limits}</ul></section>"
        f"{_made_with(report)}</body></html>\n"
    )


def _section(name: str, part: Mapping[str, Any]) -> str:
    question, meaning = _QUESTIONS[name]
    more = _MORE.get(name, lambda _: "")(part)
    advice = f"<p><b>What to do:</b> {escape(part['advice'])}</p>" if part["advice"] else ""
    return (
        f'<section id="{name}" class="{part["verdict"]}"><h2>{question}'
        f' <span class="soft">{name}</span></h2><p class="soft">{meaning}</p>'
        f"<p>{_badge(part['verdict'])}</p>"
        f'<p class="verdict">{escape(part["sentence"])}</p>{advice}{more}</section>'
    )


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict}">{_MARKS[verdict]} {_WORDS[verdict]}</span>'


def _figures(part: Mapping[str, Any]) -> str:
    """The judged figures as a table."""
    lines = [
        (
            escape(figure["label"]),
            _number(figure["value"]),
            _number(figure["floor"]),
            _interval(figure["interval"]),
            _limits(figure),
            _MARKS[figure["verdict"]] + " " + figure["verdict"].replace("_", " "),
            escape(figure["note"]),
        )
        for figure in part["figures"]
    ]
    heads = "figure", "value", "floor", "interval", "amber / red", "verdict", "note"
    return _table(heads, lines)


def _fidelity(part: Mapping[str, Any]) -> str:
    pictures = "".join(map(bars, part.get("worst_columns", ())))
    pairs = "".join(map(two_ways, part.get("worst_pairs", ())))
    columns = [
        (escape(found["column"]), _number(found["value"]), _number(found["floor"]))
        for found in part.get("columns", ())
    ]
    pair_lines = [
        (escape(" × ".join(found["columns"])), _number(found["value"]), _number(found["floor"]))
        for found in part.get("pairs", ())
    ]
    shown = (
        f'<h3>The columns that differ most</h3><div class="pictures">{pictures}</div>'
        f'<h3>The pairs of columns that differ most</h3><div class="pictures">{pairs}</div>'
        if pictures
        else ""
    )
    heads = "column", "difference", "floor"
    return (
        shown
        + _details("The figures", _figures(part))
        + _details("Every column", _table(heads, columns))
        + _details("The pairs", _table(heads, pair_lines))
    )


def _utility(part: Mapping[str, Any]) -> str:
    lines = [
        (
            escape(found["target"]),
            escape(found["learner"]),
            found["measure"],
            _number(found["drawn"]),
            _number(found["real"]),
            "–" if found["skill_kept"] is None else f"{found['skill_kept']:.0%}",
        )
        for found in part.get("targets", ())
    ]
    heads = "column", "learner", "measure", "from drawn rows", "from real rows", "skill kept"
    table = _details("Every column that was predicted", _table(heads, lines)) if lines else ""
    return _details("The figures", _figures(part)) + table


def _privacy(part: Mapping[str, Any]) -> str:
    lines = [
        (
            escape(found["label"]),
            _number(found["area"]),
            _interval(found["interval_corrected"]),
            _number(found["p_holm"]),
            f"{found['rows_of_each_class']:,}",
            _number(found["area_that_would_have_been_seen"]),
            found["verdict"] if found["counts"] else "shown only",
        )
        for found in part.get("attacks", ())
    ]
    if not lines:
        return ""
    heads = ("attack", "area", "interval", "p", "rows of each", "would have been seen", "verdict")
    explained = (
        '<p class="soft">The area is how often an attack ranks a row of training above an unseen'
        " one: 0.5 is chance, 1 is always. Intervals and p-values are corrected for the number of"
        " attacks. Amber: a leak is found (p below 0.05). Red: the interval begins at 0.55 or"
        " above.</p>"
    )
    return _details("Every attack", explained + _table(heads, lines))


_MORE = {
    "fidelity": _fidelity,
    "utility": _utility,
    "likelihood": lambda part: _details("The figures", _figures(part)) if part["figures"] else "",
    "privacy": _privacy,
}


def _made_with(report: Mapping[str, Any]) -> str:
    """Row counts, settings and seed: who makes the report again gets the same one."""
    known = {**report["rows"], **report["settings"], "seed": report["seed"]}
    lines = [
        (escape(name.replace("_", " ")), escape("–" if value is None else str(value)))
        for name, value in known.items()
    ]
    return _details("Rows, settings and seed", _table(("", ""), lines))


def _details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{label}">{cell or "–"}</td>'
            for label, cell in zip(heads, line, strict=True)
        )
        + "</tr>"
        for line in lines[:_MOST_LINES]
    )
    more = len(lines) - _MOST_LINES
    rest = f'<p class="soft">and {more:,} more, in the JSON document</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def _interval(ends: Sequence[float | None] | None) -> str:
    return "" if not ends else f"{_number(ends[0])} to {_number(ends[1])}"


def _limits(figure: Mapping[str, Any]) -> str:
    if figure["amber"] is None and figure["red"] is None:
        return ""
    sign = "≥" if figure["worse"] == "higher" else "≤"
    return f"{sign} {_number(figure['amber'])} / {_number(figure['red'])}"
