"""The page of settings: what each does, its rule, and its value in every preset.

Read from the docstrings of `TrainingConfig`'s fields, so that there is one place to write them.
"""

from __future__ import annotations

import ast
import inspect

from gcvae.presets import PRESETS, TrainingConfig

_HEAD = """\
# Settings

Every setting of a model and of its training: `--set key=value` on the command line, a member of
`training` over REST, of `settings` in Python. `gcvae settings` prints this page, from
`gcvae/presets.py`.

*rule* in the table means: not set, but found from the table by the rule that the setting's text
names. A setting that you give `null` (`None` in Python) is found by its rule too; `gradient_limit`
has no rule and `null` is no limit. What a run went by is in the model's training record, under
`settings`.
"""


def settings_page() -> str:
    """The page, in Markdown."""
    texts = field_docstrings()
    described = "\n\n".join(f"**`{name}`** – {text}" for name, text in texts.items())
    return "\n".join([_HEAD, _presets(), "", "## What each does", "", described, "",
                      "## Values in the presets", "", _values(list(texts)), ""])  # fmt: skip


def field_docstrings() -> dict[str, str]:
    """The text under each field of `TrainingConfig`, in one line; empty where there is none."""
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
    """The presets, each with its sentence."""
    return "\n".join(f"- `{preset.name}`: {preset.description}" for preset in PRESETS.values())


def _values(names: list[str]) -> str:
    """A row for each setting, a column for each preset."""
    rows = [["setting", *PRESETS], ["---"] * (1 + len(PRESETS))]
    for name in names:
        values = [getattr(preset.config, name) for preset in PRESETS.values()]
        rows.append([f"`{name}`", *(_written(name, value) for value in values)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _written(name: str, value: object) -> str:
    """A value as JSON has it, but a missing one by what it means."""
    if value is None:
        return "no limit" if name == "gradient_limit" else "*rule*"
    return str(value).lower() if isinstance(value, bool) else f"{value}"
