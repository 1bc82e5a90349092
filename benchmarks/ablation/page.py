"""The page of the ablation: what each mechanism buys, and whether it stays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from benchmarks.ablation.switches import SWITCHES, Stage, Switch
from benchmarks.pages_of_results import table_of

Run = Mapping[str, Any]

_INTRODUCTION = """# What each mechanism buys

`python -m benchmarks.ablation` fits preset `{preset}` to at most {rows:,} rows of each of
{n_tables} tables ({tables}), with all mechanisms and without each of them, and compares with
{judged:,} unseen rows at most. {n_runs} runs took {minutes:.0f} minutes on one thread, with other
work on the machine. The baselines have seeds {baseline_seeds}, the variants seed {seeds}.

Each cell is the largest loss of any table without the mechanism; in brackets is the number of
tables on which the loss is decisive: more than two standard deviations over the baseline's seeds,
and at least {least}. A mechanism stays if one measure is decisive on two tables. It is undecided if
one measure is decisive on one table, or reaches the least loss by more than one deviation on two.
`–`: not measured. `in use` is the number of tables on which the mechanism changes an answer of the
library; elsewhere the model is the baseline's.

- *C2ST* compares drawn rows with unseen ones.
- *nats*: mean log-likelihood of {scored} unseen rows, of the cells as written
  (`benchmarks.quality.written_cells`), so that it is comparable across codings. Rows of score −∞
  are left out.
- *rules kept*: mean over the rules that the baseline finds, the steps and the shapes of keys.
- *attack AUC*: scores of {scored} rows of training against {scored} unseen ones.
- *broken*: of {imputed} imputed rows with 30 % of their cells blank, the share that breaks a rule
  which the row kept before. *no score*: of 12 such rows, the share whose score is −∞. The deviation
  of both is that of a share of so many rows.
- *fit*: relative change of the fit's CPU seconds; it decides nothing.

Mechanisms that enter after training start from the baseline's trained weights.
"""


@dataclass(frozen=True)
class Measure:
    """A figure of a run.

    Attributes:
        key: In the results.
        title: On the page.
        sign: 1 where more is worse.
        least: A loss that counts; None for figures that decide nothing.
        is_relative: The loss is a share of the baseline's figure.
        rows: Of a share that is measured once: its deviation is that of so many rows.
    """

    key: str
    title: str
    sign: int
    least: float | None
    is_relative: bool = False
    rows: int = 0


MEASURES = (
    Measure("c2st", "C2ST", 1, 0.02),
    Measure("two_way_tv", "two-way TV", 1, 0.10, is_relative=True),
    Measure("utility", "utility", -1, 0.01),
    Measure("unseen", "nats", -1, 0.1),
    Measure("rules_kept", "rules kept", -1, 0.02),
    Measure("attack_auc", "attack AUC", 1, 0.02),
    Measure("imputed_broken", "broken", 1, 0.02, rows=100),
    Measure("partly_impossible", "no score", 1, 0.02, rows=12),
    Measure("fit_seconds", "fit", 1, None, is_relative=True),
)


@dataclass(frozen=True)
class Loss:
    """What a table loses by one measure without a mechanism.

    Attributes:
        value: Positive where the model is worse; a share of relative measures.
        deviations: The same in standard deviations over seeds.
    """

    table: str
    value: float
    deviations: float


@dataclass(frozen=True)
class Verdict:
    """Whether a mechanism stays.

    Attributes:
        answer: `stays`, `goes` or `not decided`.
        reason: In a few words.
    """

    answer: str
    reason: str


def losses_of(runs: Sequence[Run], switch: Switch, measure: Measure) -> list[Loss]:
    """The losses on each table on which the variant and enough baselines are measured."""
    deviations = {table: _deviation(runs, table, measure) for table in _tables(runs)}
    known = [deviation for deviation in deviations.values() if np.isfinite(deviation)]
    usual = float(np.median(known)) if known else 0.0
    losses = []
    for table, own in deviations.items():
        baseline = _figures(runs, table, "", measure)
        variant = _figures(runs, table, switch.name, measure)
        common = baseline.keys() & variant.keys()
        is_whole_fit = switch.stage is Stage.TRAINING or measure.key != "fit_seconds"
        if not baseline or not variant or not is_whole_fit:
            continue
        is_paired = switch.stage is not Stage.TRAINING and common
        seeds = common if is_paired else baseline.keys()
        reference = float(np.mean([baseline[seed] for seed in seeds]))
        changed = float(np.mean([variant[seed] for seed in (common if is_paired else variant)]))
        unit = reference if measure.is_relative else 1.0
        value = measure.sign * (changed - reference) / unit
        share = (reference + changed) / 2.0
        of_rows = math.sqrt(2.0 * share * (1.0 - share) / measure.rows) if measure.rows else 0.0
        noise = max(usual, of_rows, 1e-9, own if np.isfinite(own) else 0.0)
        losses.append(Loss(table, value, value / noise))
    return losses


def verdict_of(runs: Sequence[Run], switch: Switch) -> Verdict:
    """Whether the mechanism stays, by the rule of the page."""
    in_use = tables_in_use(runs, switch)
    if not any(switch.name in run.get("watched", ()) for run in runs):
        return Verdict("not decided", "later than the baselines")
    if not in_use:
        return Verdict("goes", "no table uses it")
    if not any(losses_of(runs, switch, measure) for measure in MEASURES):
        return Verdict("not decided", "not measured")
    measured = {run["table"] for run in runs if run["switch"] == switch.name}
    n_left = len(set(in_use) - measured)
    once, nearly = [], []
    for measure in MEASURES:
        if measure.least is None:
            continue
        enough = [x for x in losses_of(runs, switch, measure) if x.value >= measure.least]
        sure = [x.table for x in enough if x.deviations > 2.0]
        if len(sure) >= 2:
            return Verdict("stays", f"{measure.title} on {', '.join(sure)}")
        once += [f"{measure.title} on {table}" for table in sure]
        close = [x.table for x in enough if x.deviations > 1.0]
        nearly += [f"{measure.title} on {', '.join(close)}"] if len(close) >= 2 else []
    if n_left + bool(once) >= 2:
        once.append(f"measured on {len(in_use) - n_left} of {len(in_use)} tables")
    if nearly or once:
        return Verdict("not decided", "; ".join(dict.fromkeys([*once, *nearly])))
    used = f"in use on {len(in_use)}" if len(in_use) < 2 else "no measure"
    return Verdict("goes", used)


def tables_in_use(runs: Sequence[Run], switch: Switch) -> list[str]:
    """The tables of whose baselines some use the mechanism."""
    users = {run["table"] for run in runs if switch.name in run.get("in_use", ())}
    return [table for table in _tables(runs) if table in users]


def _tables(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run["table"] for run in runs))


def _figures(runs: Sequence[Run], table: str, switch: str, measure: Measure) -> dict[int, float]:
    """The figure of each seed."""
    own = (run for run in runs if (run["table"], run["switch"]) == (table, switch))
    return {run["seed"]: run[measure.key] for run in own if run.get(measure.key) is not None}


def _deviation(runs: Sequence[Run], table: str, measure: Measure) -> float:
    """Over the seeds of the baseline, NaN of fewer than two."""
    found = np.array([*_figures(runs, table, "", measure).values()])
    if len(found) < 2:
        return float("nan")
    return float(found.std(ddof=1) / (found.mean() if measure.is_relative else 1.0))


# The page


def render_page(document: Mapping[str, Any]) -> str:
    """The page, in Markdown."""
    runs = [run for run in document["runs"] if "failed" not in run]
    if not runs:
        return "# What each mechanism buys\n\nNothing is measured yet.\n"
    lines = [_line(runs, switch) for switch in SWITCHES.values()]
    heads = ["mechanism", "lines", "in use", *(m.title for m in MEASURES), "verdict", "reason"]
    parts = [_introduction(document, runs), table_of(heads, lines), _baselines(runs)]
    rules = _lost_rules(runs)
    if rules:
        heads = ["mechanism", "table", "rule", "with", "without"]
        parts += ["\n## Rules lost\n\nThose kept by .1 fewer of the drawn rows.\n"]
        parts += [table_of(heads, rules)]
    failed = [run for run in document["runs"] if "failed" in run]
    parts += [f"\n{r['table']} without {r['switch']} failed: {r['failed']}" for r in failed]
    return "\n".join(parts) + "\n"


def _introduction(document: Mapping[str, Any], runs: Sequence[Run]) -> str:
    seeds = [
        sorted({r["seed"] for r in runs if bool(r["switch"]) is is_on}) for is_on in (True, False)
    ]
    least = [
        f"{f'{m.least:.0%}' if m.is_relative else f'{m.least:g}'} of {m.title}"
        for m in MEASURES
        if m.least is not None
    ]
    text = _INTRODUCTION.format(
        **{name: document[name] for name in ("preset", "rows", "judged", "scored", "imputed")},
        minutes=sum(run["wall_seconds"] for run in runs) / 60,
        tables=", ".join(_tables(runs)),
        n_tables=len(_tables(runs)),
        n_runs=len(runs),
        seeds=", ".join(map(str, seeds[0])),
        baseline_seeds=", ".join(map(str, seeds[1])),
        least=", ".join(least),
    )
    parts = [
        part if part.startswith(("-", "#")) else fill(part, 100) for part in text.split("\n\n")
    ]
    return "\n\n".join(parts) + "\n"


def _line(runs: Sequence[Run], switch: Switch) -> list[str]:
    verdict = verdict_of(runs, switch)
    cells = [_cell(losses_of(runs, switch, measure), measure) for measure in MEASURES]
    n_used = str(len(tables_in_use(runs, switch)))
    reason = "; ".join(filter(None, (verdict.reason, _gains(runs, switch), switch.note)))
    return [switch.name, str(switch.lines), n_used, *cells, verdict.answer, reason]


def _gains(runs: Sequence[Run], switch: Switch) -> str:
    """Where a table is better off without the mechanism, by as much as counts as a loss."""
    found = [
        f"{measure.title} of {loss.table}"
        for measure in MEASURES
        for loss in losses_of(runs, switch, measure)
        if measure.least is not None and loss.value <= -measure.least and loss.deviations < -2.0
    ]
    return f"better without: {', '.join(found)}" if found else ""


def _cell(losses: Sequence[Loss], measure: Measure) -> str:
    if not losses:
        return "–"
    worst = max(loss.value for loss in losses)
    text = f"{worst:+.0%}" if measure.is_relative else f"{worst:+.3f}"
    if measure.least is None:
        return text
    n_decisive = sum(x.value >= measure.least and x.deviations > 2.0 for x in losses)
    return f"{text} ({n_decisive})"


def _baselines(runs: Sequence[Run]) -> str:
    """What the tables have with all mechanisms: means, and standard deviations over seeds."""
    lines = []
    for table in _tables(runs):
        cells = []
        for measure in MEASURES:
            found = [*_figures(runs, table, "", measure).values()]
            spread = f" ± {np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
            cells.append(f"{np.mean(found):.3f}{spread}" if found else "–")
        seconds = [r["fit_seconds"] for r in runs if r["table"] == table and not r["switch"]]
        lines.append([table, *cells, f"{np.mean(seconds):.0f}"])
    heads = ["table", *(measure.title for measure in MEASURES), "fit, CPU s"]
    return f"\n## With all mechanisms\n\n{table_of(heads, lines)}"


def _lost_rules(runs: Sequence[Run]) -> list[list[str]]:
    """Single rules that are kept by .1 less without a mechanism."""
    lines = []
    for run in runs:
        twins = [r for r in runs if (r["table"], r["switch"]) == (run["table"], "")]
        kept = [twin["rules"] for twin in twins if "rules" in twin]
        if not run["switch"] or not kept:
            continue
        for name, share in run.get("rules", {}).items():
            before = float(np.mean([rules[name] for rules in kept if name in rules]))
            if before - share >= 0.1:
                rule = name.replace("|", "/")
                lines.append([run["switch"], run["table"], rule, f"{before:.3f}", f"{share:.3f}"])
    return lines
