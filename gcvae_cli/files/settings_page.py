"""Generates the documentation page of all settings, with their values in every preset.

The descriptions are the docstrings of the fields of `TrainingConfig`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

from gcvae.training.settings import PRESETS, TrainingConfig, usual_settings

_HEAD = """\
# Settings

After this page you can change how a model is trained, and you know the defaults.

A *setting* is an option of a model or of its training. A *preset* is a named list with a value for
every setting. To change a value of the preset, use `--set key=value` on the command line, a member
of `training` in REST, or a member of `settings` in Python.

Some settings have the value *rule* in a preset: a rule, which the description of the setting
states, computes the value from the size of the table. Give `null` (in Python, `None`) to use the
rule in place of another value. After training, the training record of the model lists all values.

`preset`, `seed` and `device` are separate arguments, not settings. The presets are:
"""

_EXPERT = """\
The values of these settings were chosen together. Change one only to measure its effect."""

_FEW_CHANGES = 10


def settings_page() -> str:
    """Returns a Markdown page that documents every setting of a model and of its training."""
    texts = field_docstrings()
    usual = usual_settings()
    expert = [name for name in texts if name not in usual]
    return "\n".join([_HEAD, _presets(), "",
                      "## Common settings", "", _described(texts, usual), "",
                      "## Settings for experts", "", _EXPERT, "", _described(texts, expert), "",
                      "## Values in the presets", "", _values([*usual, *expert]), ""])  # fmt: skip


def _described(texts: Mapping[str, str], names: list[str]) -> str:
    return "\n\n".join(f"**`{name}`** – {texts[name]}" for name in names)


def field_docstrings() -> dict[str, str]:
    """Returns the docstring of each field of `TrainingConfig` as one line; '' if it has none."""
    [tree] = ast.parse(inspect.getsource(TrainingConfig)).body
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            texts[statement.target.id] = _text(following)
    return texts


def _text(statement: ast.stmt | None) -> str:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return ""
    return " ".join(str(statement.value.value).split())


def _presets() -> str:
    return "\n".join(f"- `{preset.name}`: {preset.description}" for preset in PRESETS.values())


def _values(names: list[str]) -> str:
    """Returns Markdown with the value of each named setting in every preset.

    A table at the end has a column for each of the most different presets. Before it, a list says
    how each other preset differs from one of these, and a sentence names the settings that are
    equal in all presets; these are not in the table.
    """
    columns: dict[str, list[str]] = {}
    lines: list[str] = []
    differing: set[str] = set()
    for preset in PRESETS.values():
        values = [_written(name, getattr(preset.config, name)) for name in names]
        for other, others in columns.items():
            changes = [i for i in range(len(names)) if values[i] != others[i]]
            differing.update(names[i] for i in changes)
            if len(changes) <= _FEW_CHANGES:
                own = ", ".join(f"`{names[i]}`: {values[i]}" for i in changes)
                lines.append(f"- `{preset.name}` has the values of `{other}`, except {own}.")
                break
        else:
            columns[preset.name] = values
    rows = [["setting", *columns], ["---"] * (1 + len(columns))]
    equal: list[str] = []
    for name, *values in zip(names, *columns.values(), strict=True):
        if name in differing:
            rows.append([f"`{name}`", *values])
        else:
            equal.append(f"`{name}`: {values[0]}")
    table = "\n".join(f"|{'|'.join(row)}|" for row in rows)
    same = f"These settings are equal in every preset: {', '.join(equal)}."
    return "\n".join(["The table lists two presets. The others differ from them in few settings:",
                      "", *lines, "", same, "", table])  # fmt: skip


def _written(name: str, value: object) -> str:
    """Returns a setting's value as the page shows it.

    None is shown as "no limit" for `gradient_limit`, and otherwise as "*rule*", because a rule then
    determines the value.
    """
    if value is None:
        return "no limit" if name == "gradient_limit" else "*rule*"
    if isinstance(value, dict):
        return f"{value}" if value else "none"
    return str(value).lower() if isinstance(value, bool) else f"{value}"
