"""Parses expressions over columns with Python's own parser, restricted to some kinds of syntax
nodes.

    net == round(price * quantity, 2)          `order date` <= shipped          rate[grade] * salary

Column names with spaces are quoted by backticks; a backtick in a name is doubled. ≤ ≥ ≠ × ÷ − are
read as <= >= != * / -, and `23 %` as 0.23. `gcvae.expressions.terms` evaluates expressions.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal

# String literals come first, so that a backtick in a literal does not start a name.
_QUOTED_NAME = re.compile(r"""("[^"]*"|'[^']*')|`((?:[^`]|``)+)`""")
_SIGNS = {"≤": "<=", "≥": ">=", "≠": "!=", "×": "*", "÷": "/", "−": "-"}
"""Python operator for each mathematical sign."""
_NO_TERM = r"(?!\s*(?!(?:and|or|not|in|if|else)\b)[\w.(`'\"])"
# A number before a % is a percentage, unless a term follows: then % is the remainder.
_NOT_PYTHON = re.compile(
    rf"{_QUOTED_NAME.pattern}|([{''.join(_SIGNS)}])|(?<![\w.])(\d+\.?\d*|\.\d+)[ \t]*%{_NO_TERM}"
)
_STAND_IN = "\ua644"  # a rare letter, used as prefix of placeholders
_CONDITIONAL, _ELSE = re.compile(r"\bif\b"), re.compile(r"\belse\b")
_SLIPS = (
    (re.compile(r"=>|=<|<>"), "; comparisons are ==, !=, <, <=, > and >="),
    (re.compile(r"(?<![=<>!])=(?!=)"), "; values are compared with =="),
    (re.compile(r"\b(AND|OR|NOT)\b|&&|\|\|"), "; terms are joined by and, or, not"),
    (re.compile("`"), "; a backtick has no partner; one within a name is doubled"),
    (
        re.compile(r"^\s*(if|when)\b|\bthen\b", re.I),
        "; a premise follows its rule: b > 50 if a > 3",
    ),
    (re.compile(r"\bbetween\b", re.I), "; a range is written 3 <= a <= 5"),
)
"""Patterns of slips, such as operators from other languages, each with a hint that says what is
right."""
_ENDS = "; something is missing at the end"
_NAMES = "; a name with spaces or signs, or a word such as class, stands in backticks"
_MOST_SHOWN = 200  # characters of an expression in a message
_DEEPEST = 100  # nested terms, far under Python's limit of recursion
_ALLOWED_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Call, ast.Subscript,
    ast.IfExp,
)  # fmt: skip


_COMPARED = "; values are compared with ==, and is_missing(x) is true where x is missing"
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Is: _COMPARED,
    ast.IsNot: _COMPARED,
    ast.Attribute: "; a name with a full stop stands in backticks",
}
"""For syntax nodes that are not allowed, a hint at the permitted expression."""
MOST_CHARACTERS = 20_000
"""Maximum length of an expression; longer ones are refused."""


def parse_expression(text: str) -> ast.expr:
    """Parses an expression into a syntax tree, in which each ast.Name stands for a column or
    function.

    Raises:
        ValueError: The expression has a syntax error, contains syntax that is not allowed, names no
            column, or is too long.
    """
    if len(text) > MOST_CHARACTERS:
        message = (
            f"the expression has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read"
        )
        raise ValueError(f"{message}: {text[:40]} …")
    meant: dict[str, str | Percentage] = {}
    # End of each part whose Python code is longer, once per additional character.
    longer: list[int] = []

    def as_python(match: re.Match[str]) -> str:
        text, name, sign, number = match.groups()
        code = text or _SIGNS.get(sign)
        if code is None:
            # Padded, so that positions in errors are those of the original text.
            code = f"{_STAND_IN}{len(meant)}".ljust(len(match[0]), "_")
            is_name = name is not None
            meant[code] = name.replace("``", "`") if is_name else Percentage(Decimal(number) / 100)
        longer.extend([match.end()] * (len(code) - len(match[0])))
        return code

    source = outside_quotes(_NOT_PYTHON.sub(as_python, text), _in_one_line)
    before = len(source) - len(source.lstrip())
    source = source.strip()
    if not source:
        raise ValueError("the expression is empty")
    outside = unquoted(source)
    if _CONDITIONAL.search(outside) and not _ELSE.search(outside):
        source += " else True"  # Python requires an else
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        place = _position(before + (error.offset or len(source) + 1), longer)
        hint = next((hint for slip, hint in _SLIPS if slip.search(unquoted(text))), None)
        if hint is None and error.msg == "invalid syntax":
            hint = _ENDS if place > len(text.rstrip()) else _NAMES
        raise ValueError(
            f"the expression {_short(text)} cannot be read: {error.msg} at character {place}"
            f"{hint or ''}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the expression {_short(text)} cannot be read: {error}") from None
    _check_depth(tree)
    for node in ast.walk(tree):
        _check_node(node, source, before, longer)
    read: ast.expr = _Replaced(meant).visit(tree)
    if not names_in(read):
        raise ValueError("the expression names no column")
    return read


class Percentage(float):
    """A number that was written as a percentage, and whose repr is a percentage again.

    >>> Percentage(0.195)
    19.5 %
    """

    def __repr__(self) -> str:
        """Returns the percentage with its sign, such as "19.5 %"."""
        return f"{self.percent} %"

    @property
    def percent(self) -> str:
        """The percentage without "%", such as "19.5" for 0.195."""
        return f"{(Decimal(float.__repr__(self)) * 100).normalize():f}"


def _in_one_line(part: str) -> str:
    """Replaces comments and line breaks in a part of an expression by as many spaces."""
    return re.sub(r"#[^\r\n]*|[\r\n]", lambda match: " " * len(match[0]), part)


def _position(place: int, longer: Sequence[int]) -> int:
    """Converts a character position in the Python code to one in the original text, counted from 1.
    The code has more characters than the text where it has <= for ≤, for example. `longer` has the
    end in the text of each such part, as often as the code has additional characters."""
    for end in longer:
        place -= place > end
    return place


def _short(text: str) -> str:
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r} …"


def quoted_name(name: str) -> str:
    """Returns a column's name as expressions contain it, in backticks if necessary.

    >>> quoted_name("price"), quoted_name("net price"), quoted_name("in")
    ('price', '`net price`', '`in`')
    """
    is_plain = name.isidentifier() and not keyword.iskeyword(name)
    if is_plain and unicodedata.normalize("NFKC", name) == name and not name.startswith(_STAND_IN):
        return name
    return "`" + name.replace("`", "``") + "`"


def outside_quotes(text: str, change: Callable[[str], str]) -> str:
    """Applies the function `change` to each part of an expression outside of strings and of column
    names in backticks; returns the changed expression."""
    parts = []
    end = 0
    for match in _QUOTED_NAME.finditer(text):
        parts += [change(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, change(text[end:])])


def written(tree: ast.expr) -> str:
    """Converts a syntax tree back to an expression, with names quoted where necessary.

    >>> written(parse_expression("`net price`*2 <= total"))
    '`net price` * 2 <= total'
    """
    places = {name: f"{_STAND_IN}{i}_" for i, name in enumerate(names_in(tree))}
    text = ast.unparse(_Replaced(places).visit(deepcopy(tree)))
    for name, stand_in in places.items():
        text = text.replace(stand_in, quoted_name(name))
    return text


class _Replaced(ast.NodeTransformer):
    """Replaces placeholder names in a syntax tree by column names and percentages."""

    def __init__(self, meant: Mapping[str, str | Percentage]) -> None:
        self.meant = meant

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Returns the syntax node that replaces this column name, or the node itself."""
        found = self.meant.get(node.id, node.id)
        new = ast.Name(found, node.ctx) if isinstance(found, str) else ast.Constant(found)
        return ast.copy_location(new, node)


def unquoted(text: str) -> str:
    """Returns the expression without its strings and its column names in backticks.

    >>> unquoted("note == 'only if' or `what if` > 2")
    'note ==  or  > 2'
    """
    return _QUOTED_NAME.sub("", text)


def names_in(tree: ast.AST) -> tuple[str, ...]:
    """Returns the distinct columns in a syntax tree, in order of appearance; names of functions and
    lookup tables are excluded."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    functions |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    found = [node for node in names if id(node) not in functions]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in found))


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ValueError(f"the expression nests more than {_DEEPEST} terms in each other")


def _check_node(node: ast.AST, source: str, before: int, longer: Sequence[int]) -> None:
    """Raises a ValueError if a syntax node is not allowed.

    The message gives the node's position in the original text, computed from the Python code
    `source`, the number of spaces `before` the code, and `longer` (see `_position`).
    """
    where = ""
    if isinstance(node, ast.expr):
        place = before + len(source.encode()[: node.col_offset].decode()) + 1
        where = f" at character {_position(place, longer)}"
    if not isinstance(node, _ALLOWED_NODES):
        hint = _INSTEAD.get(type(node), "")
        raise ValueError(f"{type(node).__name__} is not allowed in an expression{where}{hint}")
    if isinstance(node, ast.Constant) and not isinstance(node.value, str | bool | int | float):
        hint = "; is_missing(x) is true where x is missing" if node.value is None else ""
        raise ValueError(f"{node.value!r} is not allowed in an expression{where}{hint}")
    if isinstance(node, ast.IfExp) and getattr(node.orelse, "value", None) is not True:
        raise ValueError(f"`a if b` has no else{where}: it is true wherever b is not")
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name):
        raise ValueError(f"only a table's name stands before [...]{where}")
    if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
        raise ValueError(f"only a function's name and its arguments make a call{where}")
