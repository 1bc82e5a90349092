"""A report as one HTML page: no script, no other file, no host; on screen, phone and paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gcvae.evaluation.report.histograms import LEAST_SHOWN
from gcvae.evaluation.report.parts import MOST_VISIBLE
from gcvae.evaluation.report.pictures import bars, two_ways

_QUESTIONS = {
    "fidelity": ("Is it good?", "Do the drawn rows look like real ones?"),
    "utility": ("Is it useful?", "Can one learn from drawn rows what one learns from real ones?"),
    "likelihood": (
        "Has the model learned the table, and not its rows by heart?",
        "Does it describe rows that it has not seen as well as those that it learned from?",
    ),
    "privacy": ("Is it safe?", "Does anything tell which real rows the model learned from?"),
}
_OF_ONE = {
    ("privacy", "green"): "green: no leak found",
    ("likelihood", "green"): "green: nothing found",
    ("likelihood", "amber"): "amber: about the model",
    ("likelihood", "red"): "red: about the model",
}
"""What a colour says of a question that is not about handing rows on alone."""
_WORDS = {
    "green": "green: nothing against it",
    "amber": "amber: look at it first",
    "red": "red: do not hand on",
    "not_measured": "not measured",
    "shown": "not counted",
}
_OLDER = "This report is of an older version: make it again."
_MARKS = {"green": "✓", "amber": "!", "red": "✕", "not_measured": "–", "shown": "·"}
_MOST_LINES = 30
_NO_BREAK = "\u00a0"
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--line:#d5dae0;
--card:#f6f8fa;--green:#1a7f37;--amber:#9a6700;--red:#c62828;--none:#59636e;--real:#57606a;
--drawn:#0969da}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--paper:#0d1117;--line:#30363d;
--card:#161b22;--green:#3fb950;--amber:#d29922;--red:#ff6b6b;--none:#9aa5b1;--real:#9aa5b1;
--drawn:#58a6ff}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);
color:var(--ink);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:0}
h3{font-size:1rem;margin:1rem 0 .3rem}
p{margin:.4rem 0}.soft{color:var(--soft);font-size:.9em}
section{border:1px solid var(--line);border-left-width:.5rem;border-radius:.4rem;padding:.8rem 1rem;
margin:1rem 0}.green{border-left-color:var(--green)}.amber{border-left-color:var(--amber)}
.red{border-left-color:var(--red)}.not_measured{border-left-color:var(--none)}
.badge{display:inline-block;font-weight:700;border:2px solid;border-radius:1rem;padding:0 .7rem}
.green .badge,.green.badge{color:var(--green)}.amber .badge,.amber.badge{color:var(--amber)}
.red .badge,.red.badge{color:var(--red)}.not_measured .badge,.not_measured.badge{color:var(--none)}
b.green{color:var(--green)}b.amber{color:var(--amber)}b.red{color:var(--red)}
b.shown,b.not_measured{color:var(--soft);font-weight:400}
.verdict{font-size:1.1rem}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}
th,.figures td:not(:first-child){overflow-wrap:normal;white-space:nowrap}
.figures td{font-variant-numeric:tabular-nums}details{margin:.6rem 0}
summary{cursor:pointer;font-weight:600}.pictures{display:flex;flex-wrap:wrap;gap:1rem}
figure{margin:0;flex:1 1 16rem;min-width:0}figcaption{font-size:.9rem}svg{width:100%;height:auto}
svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .few{stroke:var(--soft)}
svg .head{fill:var(--soft)}
.r{fill:var(--real)}.d{fill:var(--drawn)}
.short{font-size:1.2rem;font-weight:600}.lead{padding:0}.lead li{list-style:none;
background:var(--card);border-radius:.4rem;padding:.6rem .8rem;margin:.5rem 0}
.printed{display:none}.short b{font-size:1.1em}
a{color:inherit;font-weight:600}dt{font-weight:600;float:left;clear:left;margin-right:.5rem}
dd{margin:0 0 .2rem}dl{margin:.4rem 0}.box{border-left-color:var(--line)}
@media(max-width:40rem){thead{display:none}tr{display:block;border-bottom:1px solid var(--line);
padding:.4rem 0}td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0}
td:first-child{display:block;font-weight:600}td:first-child .soft{font-weight:400}
td:not(:first-child){text-align:right}
td:not(:first-child)::before{content:attr(data-label);color:var(--soft);text-align:left;
white-space:normal}}
@page{margin:14mm}@media print{details::details-content{content-visibility:visible;block-size:auto}
:root{--ink:#000;--soft:#444;--paper:#fff;--line:#bbb;--card:#fff;--green:#1a7f37;--amber:#9a6700;
--red:#c62828;--none:#59636e;--real:#57606a;--drawn:#0969da}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}summary{list-style:none}
.unprinted{display:none}.printed{display:block}.answer{break-inside:avoid}section{break-inside:auto;box-decoration-break:clone}
body{max-width:none;font-size:9.5pt;padding:0}figure,tr,.lead li{break-inside:avoid}
table{font-size:8pt}th,.figures td:not(:first-child){white-space:normal}
.figures td:first-child{min-width:38%}td,th{overflow-wrap:normal}figure{flex:0 1 46%}
h2,h3,summary,.badge,.verdict{break-after:avoid}}
"""


def html_page(report: Mapping[str, Any], subject: str = "") -> str:
    """The page of a report's JSON document.

    Args:
        subject: Whose report it is, for the line under the title.
    """
    sections = "".join(_section(name, report[name]) for name in _QUESTIONS)
    limits = "".join(f"<li>{escape(text)}</li>" for text in report["not_covered"])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Report on synthetic rows</title><style>{_STYLE}</style></head><body>"
        f"<h1>Report on synthetic rows</h1>{_subject(subject)}"
        f"{_in_short(report)}{_EXPLAINED}{sections}"
        f'<section class="box"><h2>What this report does not cover</h2><ul>{limits}</ul></section>'
        f'{_made_with(report)}<p class="printed soft">More tables are in the file itself: open it'
        " on a screen.</p></body></html>\n"
    )


def _subject(subject: str) -> str:
    return f'<p class="soft">{escape(subject)}</p>' if subject else ""


def _in_short(report: Mapping[str, Any]) -> str:
    """What to do with rows and model, which rows were judged, and a line for each question."""
    answers = "".join(
        f'<li class="{part["verdict"]}"><a href="#{name}">{question}</a>'
        f" {_badge(name, part)}<br>{escape(part['sentence'])}{_to_do(name, part)}</li>"
        for name, (question, _) in _QUESTIONS.items()
        for part in [report[name]]
    )
    return (
        f"{_decisions(report)}<p>{escape(report.get('judged', _OLDER))}</p>"
        f'<ul class="lead">{answers}</ul>'
    )


def _decisions(report: Mapping[str, Any]) -> str:
    """One line each; of an older report, or where nothing was measured, its headline."""
    found = report.get("decisions", ())
    if all(decision["verdict"] == "not_measured" for decision in found):
        return f'<p class="short">{escape(report.get("headline", ""))}</p>'
    return "".join(
        f'<p class="short {decision["verdict"]}"><b class="{decision["verdict"]}">'
        f"{_MARKS[decision['verdict']]}</b> {escape(decision['sentence'])}</p>"
        for decision in found
    )


def _to_do(name: str, part: Mapping[str, Any]) -> str:
    """What to do, where there is something; of privacy there always is."""
    if not part["advice"] or (part["verdict"] == "green" and name != "privacy"):
        return ""
    return f"<br><b>What to do:</b> {escape(part['advice'])}"


_EXPLAINED = (
    "<dl><dt>Real rows</dt><dd>are of your table; in pictures and figures those that the model has"
    " not seen, where there are any.</dd>"
    "<dt>Drawn rows</dt><dd>are synthetic: the model made them, or they are the table that is"
    " judged.</dd>"
    "<dt>Rows of training</dt><dd>are real rows that the model learned from.</dd>"
    "<dt>Unseen rows</dt><dd>are real rows that were kept from it.</dd>"
    "<dt>The floor</dt><dd>of a figure is what other real rows would show in the place of drawn"
    " ones. Better than that is chance.</dd></dl>"
)


def _section(name: str, part: Mapping[str, Any]) -> str:
    question, meaning = _QUESTIONS[name]
    more = _MORE.get(name, lambda _: "")(part)
    advice = f"<p><b>What to do:</b> {escape(part['advice'])}</p>" if part["advice"] else ""
    return (
        f'<section id="{name}" class="{part["verdict"]}"><div class="answer"><h2>{question}</h2>'
        f'<p class="soft">{meaning} <em>({name})</em></p><p>{_badge(name, part)}</p>'
        f'<p class="verdict">{escape(part["sentence"])}</p>{advice}</div>{more}</section>'
    )


def _badge(name: str, part: Mapping[str, Any]) -> str:
    verdict = part["verdict"]
    words = _OF_ONE.get((name, verdict), _WORDS[verdict])
    leaks = part.get("leaks", {"rows": verdict})
    if verdict in ("amber", "red") and leaks["rows"] in ("green", "not_measured"):
        words = f"{verdict}: about the model"
    return f'<span class="badge {verdict}">{_MARKS[verdict]} {words}</span>'


def _figures(part: Mapping[str, Any]) -> str:
    """The figures as a table, each beside its floor and the limits that judge it."""
    lines = [
        (
            escape(figure["label"]) + _noted(figure["note"]),
            _value(figure["value"], figure["unit"]),
            _value(figure["floor"], figure["unit"]),
            _interval(figure["interval"], figure["unit"]),
            _limits(figure),
            _judged(figure["verdict"]),
        )
        for figure in part["figures"]
    ]
    heads = "figure", "value", "floor", "95 % interval", "limits", "verdict"
    return _details("The figures", _table(heads, lines), printed=True)


def _noted(note: str) -> str:
    return f'<br><span class="soft">{escape(note)}</span>' if note else ""


def _judged(verdict: str) -> str:
    word = "not counted" if verdict == "shown" else verdict.replace("_", " ")
    return f'<b class="{verdict}">{_MARKS[verdict]}{_NO_BREAK}{word}</b>'


def _fidelity(part: Mapping[str, Any]) -> str:
    pictures = "".join(map(bars, part.get("worst_columns", ())))
    pairs = "".join(map(two_ways, part.get("worst_pairs", ())))
    columns = [
        (escape(found["column"]), _share(found["value"]), _share(found["floor"]))
        for found in part.get("columns", ())
    ]
    pair_lines = [
        (escape(" × ".join(found["columns"])), _share(found["value"]), _share(found["floor"]))
        for found in part.get("pairs", ())
    ]
    rules = [
        (escape(found["rule"]), _share(found["value"]), _share(found["floor"]))
        for found in part.get("rules", ())
    ]
    moved = [
        (
            escape(each["column"]),
            escape(each["cells"]),
            *map(_share, (each["before"], each["after"])),
        )
        for each in part.get("moved_by_constraints", ())
    ]
    dependencies = [
        (
            escape(" × ".join(each["columns"])),
            *(_number(each[k]) for k in ("real", "drawn", "error")),
        )
        for each in part.get("dependencies", ())
    ]
    shown = (
        f'<h3>The columns that differ most</h3>{_FEW}<div class="pictures">{pictures}</div>'
        f'<h3>The pairs of columns that differ most</h3><div class="pictures">{pairs}</div>'
        if pictures
        else ""
    )
    heads = "difference", "floor"
    kept = "drawn rows that keep it", "real rows"
    nats = "columns", "nats in real rows", "in drawn rows", "sampling error"
    shares = "column", "cells", "of all drawn rows", "of those that satisfy the constraints"
    return (
        shown
        + (_figures(part) if part["figures"] else "")
        + (
            _details("The strongest dependencies", _table(nats, dependencies), printed=True)
            if dependencies
            else ""
        )
        + _details("Every column", _table(("column", *heads), columns))
        + _details("The pairs", _table(("columns", *heads), pair_lines))
        + (_details("The rules", _table(("rule", *kept), rules)) if rules else "")
        + (_details("Columns that the constraints move", _table(shares, moved)) if moved else "")
    )


_FEW = (
    f'<p class="soft">What fewer than {LEAST_SHOWN} real rows have is not told: in the place of'
    " their share stands “few”, and their words are among “all others”.</p>"
)


def _utility(part: Mapping[str, Any]) -> str:
    lines = [
        (
            escape(found["target"]),
            _LEARNERS[found["learner"]],
            found["measure"],
            _number(found["drawn"]),
            _number(found["real"]),
            "–" if found["skill_kept"] is None else f"{found['skill_kept']:.0%}",
        )
        for found in part.get("targets", ())
    ]
    heads = "column", "learner", "measure", "from drawn rows", "from real rows", "skill kept"
    table = _details("Every column that was predicted", _table(heads, lines)) if lines else ""
    return (_figures(part) if part["figures"] else "") + table


_LEARNERS = {"trees": "boosted trees", "linear": "a linear model"}


def _privacy(part: Mapping[str, Any]) -> str:
    lines = [
        (
            escape(found["label"]),
            _share(found["area"]),
            _interval(found["interval_corrected"], "share"),
            _chance(found["p_holm"]),
            _share(found["area_that_would_have_been_seen"]),
            f"{found['rows_of_each_class']:,}",
            _judged_attack(found),
        )
        for found in part.get("attacks", ())
    ]
    if not lines:
        return ""
    heads = "attack", "right in", "interval", "p", "noticed from", "rows", "verdict"
    explained = (
        '<p class="soft">Each attack is shown a row of training and an unseen row, and says which'
        " is which. Who guesses is right in 50 % of such pairs, and who knows in 100 %. Amber: it"
        " is right more often than chance would have it (p below 0.05). Red: its interval begins at"
        " 55 % or above. Intervals and p are corrected for the number of attacks. A leak below"
        " “noticed from” would most likely have gone unnoticed: of few rows a higher share can be"
        " chance. Isolated rows are the tenth that is least like others.</p>"
    )
    counted = [found for found in part["attacks"] if found["counts"]]
    n_found = sum(found["verdict"] != "green" for found in counted)
    said = f"{n_found or 'none'} found something" if counted else "none counts here"
    title = f"Every attack: {len(lines)} were tried, {said}"
    return _details(title, explained + _table(heads, lines), printed=True)


def _judged_attack(found: Mapping[str, Any]) -> str:
    """That nothing was found is no verdict where only a very large leak would have been noticed."""
    if not found["counts"]:
        return _judged("shown")
    is_blind = (
        found["verdict"] == "green"
        and (found["area_that_would_have_been_seen"] or 1.0) > MOST_VISIBLE
    )
    if is_blind:
        return f'<b class="not_measured">{_MARKS["not_measured"]} too few rows</b>'
    return _judged(found["verdict"])


_MORE = {
    "fidelity": _fidelity,
    "utility": _utility,
    "likelihood": lambda part: _figures(part) if part["figures"] else "",
    "privacy": _privacy,
}


_SORTS = {
    "members": "rows that the model learned from, at most 20,000 of them",
    "reference": "rows that decided when to stop",
    "unseen": "rows that the model has not seen",
    "drawn": "rows that were judged, at most 20,000 of them",
}


def _made_with(report: Mapping[str, Any]) -> str:
    """Row counts, settings and seed: who makes the report again gets the same one."""
    rows = {_SORTS[name]: n for name, n in report["rows"].items()}
    tables = {f"rows of the {name} table": n for name, n in report["table_rows"].items()}
    settings = {name: n for name, n in report["settings"].items() if n is not None}
    known = {**rows, **tables, **settings, "seed": report["seed"]}
    lines = [(escape(name.replace("_", " ")), escape(str(value))) for name, value in known.items()]
    return _details("Rows, settings and seed", _table(("what", "value"), lines, "settings"))


def _details(title: str, content: str, *, printed: bool = False) -> str:
    """What opens when touched; on paper some of it is open, and the rest is left out."""
    css = "" if printed else ' class="unprinted"'
    return f"<details{css}><summary>{title}</summary>{content}</details>"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], css: str = "figures") -> str:
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
    return f'<table class="{css}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}'


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def _chance(p: float | None) -> str:
    """A p-value, to three places."""
    return "–" if p is None else "below 0.001" if p < 0.001 else f"{p:.3f}"


def _share(value: float | None) -> str:
    """A share or an area in percent, with a decimal; two where that would be a zero."""
    if value is None:
        return "–"
    decimals = 2 if 0 < abs(value) < 0.001 else 1
    return f"{100 * value:.{decimals}f}{_NO_BREAK}%".replace("-", "−")


def _value(value: float | None, unit: str) -> str:
    return _share(value) if unit == "share" else _number(value)


def _interval(ends: Sequence[float | None] | None, unit: str) -> str:
    return "" if not ends else f"{_value(ends[0], unit)} to {_value(ends[1], unit)}"


def _limits(figure: Mapping[str, Any]) -> str:
    side = "more" if figure["worse"] == "higher" else "less"
    return "<br>".join(
        f"{name}: {_value(figure[name], figure['unit'])} or {side}"
        for name in ("amber", "red")
        if figure[name] is not None and not (figure["unit"] == "share" and figure[name] > 1)
    )
