"""The page of settings: description, rule, and value in every preset.

Generated from the docstrings of `TrainingConfig`'s fields.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

from gcvae.training.foreign_names import FOREIGN_NAMES
from gcvae.training.settings import PRESETS, TrainingConfig, usual_settings

_HEAD = """\
# Settings

After this page you can change how a model is trained, and know the default of everything.

Every setting of a model and of its training: `--set key=value` on the command line, a member of
`training` over REST, of `settings` in Python. `gcvae settings` prints this page, from
`gcvae/training/settings.py`.

*rule* in the table means: not set, but found from the table by the rule that the setting's text
names. A setting that you give `null` (`None` in Python) is found by its rule too; `gradient_limit`
has no rule and `null` is no limit. What a run went by is in the model's training record, under
`settings`.
"""


_EXPERT = """\
A preset sets these together, each with the others in view. They are there to compare models."""

_FOREIGN = """\
## Names from other tools

They are refused, with the name here. An epoch is a pass over the rows: `max_passes` limits those
where `max_steps`, which counts parameter updates, is left to its rule. `preset`, `seed` and
`device` are no settings and stand beside them.

| here | elsewhere |
| --- | --- |"""


def settings_page() -> str:
    """Returns the page in Markdown."""
    texts = field_docstrings()
    usual = usual_settings()
    expert = [name for name in texts if name not in usual]
    return "\n".join([_HEAD, _presets(), "",
                      "## Settings that people set", "", _described(texts, usual), "",
                      "## Settings for experts", "", _EXPERT, "", _described(texts, expert), "",
                      _FOREIGN, _foreign_names(), "",
                      "## Values in the presets", "", _values([*usual, *expert]), ""])  # fmt: skip


def _described(texts: Mapping[str, str], names: list[str]) -> str:
    """Returns the descriptions of these settings."""
    return "\n\n".join(f"**`{name}`** – {texts[name]}" for name in names)


def field_docstrings() -> dict[str, str]:
    """Returns the docstring of each field of `TrainingConfig` as one line; empty without one."""
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
    """Returns the list of presets with their descriptions."""
    return "\n".join(f"- `{preset.name}`: {preset.description}" for preset in PRESETS.values())


def _foreign_names() -> str:
    """Returns a table of names in other tools, a row for each setting."""
    return "\n".join(
        f"| `{own}` | {', '.join(f'`{name}`' for name, o in FOREIGN_NAMES.items() if o == own)} |"
        for own in dict.fromkeys(FOREIGN_NAMES.values())
    )


def _values(names: list[str]) -> str:
    """Returns a table with a row for each setting and a column for each preset."""
    rows = [["setting", *PRESETS], ["---"] * (1 + len(PRESETS))]
    for name in names:
        values = [getattr(preset.config, name) for preset in PRESETS.values()]
        rows.append([f"`{name}`", *(_written(name, value) for value in values)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _written(name: str, value: object) -> str:
    """Returns a value as JSON; null as its meaning."""
    if value is None:
        return "no limit" if name == "gradient_limit" else "*rule*"
    if isinstance(value, dict):
        return f"{value}" if value else "none"
    return str(value).lower() if isinstance(value, bool) else f"{value}"
