"""Fits a database: builds a frame of the columns that each table's model learns, and fits the
models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import TIMES, Mask
from gcvae.cells.values import parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.key_parts import KeyPart, learn_parts, without_parts
from gcvae.linked.database_part import (
    DatabasePart,
    of_table,
)
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey, LinkedTable
from gcvae.linked.entities import split_entities, with_keys
from gcvae.linked.infer_links import infer_database
from gcvae.linked.linked_rows import LinkedRows, effect_columns
from gcvae.linked.model_checkpoints import ModelCheckpoints
from gcvae.linked.plan import column_is_text, key_columns, plan_database, with_plans
from gcvae.linked.random_effect import RARE_ROWS, RandomEffect
from gcvae.linked.references import (
    NO_ROW,
    borrowed_columns,
    without_blanks,
)
from gcvae.linked.sequences import Clock
from gcvae.linked.table_model import (
    Fitting,
    fit_children,
    fit_table,
    with_filler_column,
)
from gcvae.linked.totals import Total, find_totals
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import derived_seed
from gcvae.profiling.infer import infer_schema
from gcvae.rules.reduction import Reduction
from gcvae.rules.search import find_rules
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.rule_documents import read_rules
from gcvae.schema.rules import Formula, Rule
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.loop import split
from gcvae.training.progress import Progress
from gcvae.training.settings import configure

_SPELLING = (
    "dtype",
    "parquet_type",
    "datetime_format",
    "number_format",
    "notation",
    "padded",
    "decimals",
    "never",
    "levels",
    "minimum",
    "maximum",
    "steps",
    "endings",
)
"""Schema members that describe how cells are written. The models learn parsed cells, so they do not
need these members."""


def typed_table(
    name: str, frame: pd.DataFrame, links: LinkedTable
) -> tuple[TableSchema, pd.DataFrame]:
    """Infers the schema of table `name`. Returns (schema, rows with cells of the columns' dtypes).

    `links` contains the keys of the table, and the columns and rules that the user specified.
    """
    stated = {c["name"]: dict(c) for c in (links.document or {}).get("columns", [])}
    own = {*links.primary_key} if len(links.primary_key) == 1 else set()
    own |= {*links.referring}
    own |= {columns[0] for columns in links.unique if len(columns) == 1}
    own = {
        c for c in own if not is_time_or_fraction(frame[c])
    }  # dates and fractions have no template
    # Stated columns come first, so that pointers of errors have their indices in the document.
    columns = [
        {"name": column}
        | ({"kind": "identifier"} if column in own else {})
        | stated.get(column, {})
        for column in (*stated, *(c for c in frame.columns if c in own and c not in stated))
    ]
    if not len(frame):  # no kind can be inferred without rows
        bare = [{"name": str(c), "kind": "identifier"} for c in frame.columns]
        return TableSchema.from_json({"version": 1, "columns": bare}), frame
    # All columns of a single row would be constant, which inference refuses.
    seen = pd.concat([frame, frame], ignore_index=True) if len(frame) == 1 else frame
    # Inference refuses a table of keys alone, so a filler column is added.
    with of_table(name):
        document: dict[str, Any] = {"columns": columns, "rules": links.rules or ()}
        document["separator"] = frame.attrs.get("separator")  # of its text file
        is_checked = bool(links.rules)  # rows that violate hard rules are refused
        inferred = infer_schema(with_filler_column(seen), document, rules=is_checked).schema
    schema = replace(inferred, columns=inferred.columns[: frame.shape[1]], rules=None)
    with of_table(name):
        return schema, parse_table(frame, schema)


def with_found_plans(
    typed: Mapping[str, pd.DataFrame], schemas: Mapping[str, TableSchema], links: DatabaseSchema
) -> DatabaseSchema:
    """Returns the database schema `links`, extended by what a fit infers from parsed tables: the
    columns that order rows, and the catalogues. A catalogue is a reference table that is copied
    unchanged into every sample."""
    (tables, of_tables, split_links), _ = split_entities(typed, schemas, links)
    return with_plans(links, plan_database(tables, of_tables, split_links)[0])


def completed_schema(
    frames: Mapping[str, pd.DataFrame], document: Mapping[str, Any] | None
) -> tuple[DatabaseSchema, dict[str, TableSchema]]:
    """Infers everything about a database that the user did not specify.

    Returns (schema of the database, column schemas of its tables by name).

    Args:
        frames: Tables by name.
        document: JSON document of the schema, with all members optional; None infers everything.

    Raises:
        SchemaError: The document is malformed, or does not fit the tables.
        TableError: A table cannot be modelled.
    """
    links = infer_database(frames, document)
    frames = without_blanks(frames)
    schemas, typed = {}, {}
    for name, frame in frames.items():
        schemas[name], typed[name] = typed_table(name, frame, links[name])
    return with_found_plans(typed, schemas, links), schemas


_LEAST_SHARE = 0.95
"""Minimum share of the rows that satisfy a rule between tables."""
_MOST_CONTEXT = 60
"""Maximum number of columns of parents and other ancestors on which a table's model depends."""
_ROWS_TO_TELL_DATES = 200
"""Number of rows from which `is_time_or_fraction` infers whether texts are dates."""


def written_schema(schema: TableSchema) -> TableSchema:
    """Returns the schema that a model file stores, without the lists of levels, because rare levels
    may identify people.

    Columns with listed levels become identifiers, whose cells can be any text. Only a column of
    pandas dtype category keeps its list, which is part of the dtype.
    """
    listed = {c.name for c in schema if c.kind is ColumnKind.CATEGORICAL and c.dtype != "category"}
    return with_keys(schema, listed)


def with_columns_of_rules(reduction: Reduction) -> Reduction:
    """Returns a copy whose schema contains only the columns that the rules use.

    A reduction replaces a column y that a rule determines by its residual y - f(x), which is what
    the model learns (`gcvae.rules.reduction`).
    """
    named = {name for r in reduction.rewritings for name in (r.column, *r.parents)}
    columns = tuple(column for column in reduction.schema if column.name in named)
    return replace(reduction, schema=replace(reduction.schema, columns=columns))


def is_time_or_fraction(cells: pd.Series[Any]) -> bool:
    """Returns whether the cells of a key column are dates or fractional numbers."""
    if pd.api.types.is_datetime64_any_dtype(cells.dtype) or not len(cells):
        return len(cells) > 0
    if pd.api.types.is_float_dtype(cells.dtype):
        return True
    if not column_is_text(cells) or len(cells) < 2:
        return False
    seen = with_filler_column(cells.to_frame().head(_ROWS_TO_TELL_DATES))
    return infer_schema(seen, rules=False).schema[str(cells.name)].has_times


def key_grids(frame: pd.DataFrame, links: LinkedTable) -> dict[str, tuple[float, float]]:
    """Returns {column: (start, step)} if the primary key is one column of dates or fractional
    numbers.

    New values of such a key are start + step * i for i = 0, 1, ...; other keys are generated as
    strings. Dates are in microseconds since 1970. The dictionary is empty for all other keys.
    """
    if len(links.primary_key) != 1 or not len(frame):
        return {}
    [column] = links.primary_key
    cells = frame[column]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        values = cells.astype(TIMES if cells.dt.tz is None else "datetime64[us, UTC]")
        numbers = np.sort(values.astype("int64").to_numpy(dtype=np.float64))
    elif pd.api.types.is_float_dtype(cells.dtype):
        numbers = np.sort(cells.to_numpy(dtype=np.float64))
    else:
        return {}
    steps = np.unique(np.diff(numbers), return_counts=True)
    step = float(steps[0][steps[1].argmax()]) if len(numbers) > 1 else 1.0
    return {column: (float(numbers[0]), step)}


def _outer_reduction(
    joined: pd.DataFrame, schema: TableSchema, stated: Sequence[Rule], outside: set[str]
) -> Reduction:
    """Finds the rules y = f(x), such as `shipped >= customers.joined`, that compute a column y of a
    table from columns that are known only after its model has generated a row, or from columns y
    of other such rules.

    The model learns the residual y - f(x) instead of y, which is computed after x is known.

    Args:
        joined: Rows of the table with the columns of their parent rows.
        schema: Schema of `joined`.
        stated: Rules that the user specified. No rule replaces a column of those that are not
            computed here.
        outside: Columns of `joined` that no rule computes: those of the parent row, the time,
            copied columns and totals.
    """
    if not outside:
        return Reduction(schema)
    rules = tuple(
        rule
        for rule in (f.rule for f in find_rules(joined, replace(schema, rules=tuple(stated))))
        if isinstance(rule.form, Formula) and rule.keep != "off"
        if not outside.issuperset(rule.columns)
        if outside.isdisjoint(rule.columns) or rule.share is None or rule.share >= _LEAST_SHARE
    )
    kept: set[str] = set()
    while True:
        of_rules = replace(schema, rules=rules)
        found = Reduction.of_table(joined, of_rules, left_out=kept, constant=outside)
        found = replace(found.depending_on(outside), schema=schema)
        waiting = [
            rule
            for rule in stated
            if rule.keep != "off" and not any(map(found.computes, rule.sides))
        ]
        broken = {c for rule in waiting for c in rule.columns} & set(found.rewritten)
        if not broken:
            return found
        kept |= broken


class DatabaseFit(LinkedRows):
    """Fits the models of all tables of a database.

    Frames are built for children before parents, because a parent's additional columns summarise
    its children; models are fitted in the opposite order.
    """

    def __init__(
        self,
        links: DatabaseSchema,
        schemas: Mapping[str, TableSchema],
        typed: Mapping[str, pd.DataFrame],
        preset: str,
        settings: dict[str, object],
        seed: int,
        device: str,
        progress: Callable[[str, float], None] | bool | None,
        dtypes: Mapping[str, Mapping[str, str]],
        checkpoints: CheckpointStore | None = None,
    ) -> None:
        """Plans the tables and builds the frame of columns that each model learns.

        Args:
            schemas: Column schemas by table name.
            typed: Rows of each table, with cells of the columns' dtypes.
            preset, settings, seed, device: Arguments with which `Synthesizer.fit` trains each
                table's model.
            progress: Function that receives a table's name and the fraction of its fit that is
                done, or whether to show a progress bar for each table; None lets `Synthesizer.fit`
                decide.
            dtypes: Names of the dtypes of the columns that the user passed, by table and column.
            checkpoints: Store from which an interrupted fit continues; None saves nothing.
        """
        self.dtypes = dtypes
        self.schemas = schemas
        self.preset, self.settings, self.seed, self.device = preset, settings, seed, device
        self.progress = progress
        self.checkpoints = None if checkpoints is None else ModelCheckpoints(checkpoints)
        self.grids = {name: key_grids(typed[name], links[name]) for name in typed}
        plans, rows = plan_database(typed, schemas, links)
        super().__init__(links, plans, typed, rows)
        self.held_out = self._held_out()
        self.totals = {name: self._totals(name) for name in self.plans}
        self.reductions: dict[str, Reduction] = {}
        for name in self.plans:
            self.reductions[name] = self._reduction(name)
        self.key_parts = {name: self._key_parts(name) for name in self.plans}
        self.reduced = {name: self._reduced(name) for name in self.plans}
        self.frames = self.degrees()
        self.degree_columns = {name: set(map(str, f.columns)) for name, f in self.frames.items()}
        self.child_column_names: dict[str, dict[str, tuple[str, ...]]] = {
            name: {} for name in typed
        }
        self.effects: dict[str, RandomEffect] = {}
        self.borrowed: dict[str, dict[int, tuple[tuple[str, ...], ContextCodec]]] = {}
        for name in reversed(list(self.plans)):
            self._gather(name)

    def _held_out(self) -> dict[str, Mask | None]:
        """Returns a mask of the held-out rows of each table; None for a table from which none are
        held out.

        Rows are held out by household: with a parent row, all rows below that row.
        """
        found: dict[str, Mask | None] = {}
        share = configure(self.preset, self.settings).held_out_share
        for name in self.plans:
            key, n = self.key(name), len(self.typed[name])
            if key is None or self.plans[key.table].is_catalogue:
                training, held_out = split(
                    n, share, derived_seed(str(self.seed), "households", name)
                )
                is_whole = len(training) == n
                found[name] = None if is_whole else np.isin(np.arange(n), held_out.numpy())
            else:
                of_parents = found[key.table]
                found[name] = None if of_parents is None else of_parents[self.parents(name)]
        return found

    def _parent_columns(self, name: str) -> dict[str, str]:
        """Returns the columns of the parent table that rules may use: {name in the rules: name in
        the parent table}."""
        key = self.key(name)
        if key is None:
            return {}
        own, above = set(self.typed[name].columns), self.schemas[key.table]
        sums = {total.column for total in self.totals[key.table] if total.child == name}
        later = {*sums, *self.reductions[key.table].depending_on(sums).rewritten}
        is_split = key.table == f"{name} by {', '.join(key.columns)}"
        return {
            (c.name if is_split and c.name not in own else f"{key.table} {c.name}"): c.name
            for c in above
            if c.name not in later  # known only after the table's own rows
            if c.is_modelled and (is_split or c.has_numbers or c.has_times)
        }

    def _totals(self, name: str) -> tuple[Total, ...]:
        """Returns the columns of a table that are sums over rows of its child tables."""
        if self.plans[name].is_catalogue:
            return ()
        children = {c: (self._without_keys(c), self.parents(c)) for c in self.children(name)}
        return find_totals(self._without_keys(name), children)

    def _reduction(self, name: str) -> Reduction:
        """Returns the rules that determine columns from the parent row, from the time column, from
        copied columns or from totals."""
        plan, schema = self.plans[name], self.schemas[name]
        if plan.is_catalogue or not len(self.typed[name]):
            return Reduction(schema)
        outside = self._parent_columns(name)
        key = self.key(name)
        above = schema if key is None else self.schemas[key.table]
        columns = [replace(above[column], name=here) for here, column in outside.items()]
        # Generated times, and values computed from them, may exceed the range of the real table.
        free = [
            replace(c, minimum=None, maximum=None, steps=None, endings=None)
            for c in (*schema.columns, *columns)
        ]
        joined = replace(schema, columns=tuple(free), rules=None)
        given = {*outside, *plan.copied, *(total.column for total in self.totals[name])}
        given |= {plan.order} if plan.order else set()
        stated = read_rules(self.links[name].rules or (), [])
        return _outer_reduction(self.joined(name, outside), joined, stated, given)

    def _key_parts(self, name: str) -> dict[str, tuple[KeyPart, ...]]:
        """Returns the parts of a table's own keys that other columns of the row determine.

        They are inserted into a generated key after all columns of its row are known.
        """
        schema, typed = self.schemas[name], self.typed[name]
        if self.plans[name].is_catalogue:
            return {}
        others = [c for c in schema if c.is_modelled and c.name not in self.links[name].referring]
        keys = [
            c
            for c in schema
            if c.kind.outcomes is Outcomes.KEYS and c.personal is None
            if c.name not in self.links[name].referring and column_is_text(typed[c.name])
        ]
        found = {key.name: learn_parts(typed, key, others) for key in keys}
        return {column: parts for column, parts in found.items() if parts}

    def _reduced(self, name: str) -> tuple[TableSchema, pd.DataFrame]:
        """Returns (schema, frame) in which residuals replace the columns that rules determine."""
        reduction, outside = self.reductions[name], set(self._parent_columns(name))
        if not len(reduction):
            return self.schemas[name], self.typed[name]
        schema = reduction.reduced_schema
        kept = tuple(column for column in schema if column.name not in outside)
        frame = reduction.reduce(self.joined(name, self._parent_columns(name)))
        return replace(schema, columns=kept), frame[[column.name for column in kept]]

    def _modelled(self, name: str) -> list[str]:
        """Returns the names of the columns that a table's model learns, which exclude references,
        copied columns and keys counted from a grid."""
        table, plan = self.links[name], self.plans[name]
        of_keys = {*table.referring}
        primary = set(table.primary_key)
        is_own_key = len(primary) == 1 and not primary & of_keys
        left_out = of_keys | set(plan.copied) | (set() if is_own_key else primary & of_keys)
        left_out |= set(self.grids[name])
        return [c for c in self.reduced[name][1].columns if c not in left_out]

    def _gather(self, name: str) -> None:
        """Builds the frame of a table, and adds to its parent's frame the number of children and
        their random effect."""
        plan, key, typed = self.plans[name], self.key(name), self.typed[name]
        frame = self.reduced[name][1][self._modelled(name)].copy()
        for column, parts in self.key_parts[name].items():
            frame[column] = frame[column].map(partial(without_parts, parts=parts), "ignore")
        self.borrowed[name] = {}
        for i, other in enumerate(self.links[name].foreign_keys):
            if i == plan.parent or plan.is_catalogue or not len(typed):
                continue
            columns, _ = self.borrowed[name][i] = self._borrow(other)
            frame = pd.concat([frame, self.borrowed_cells(name, i, columns)], axis=1)
        added = self.frames.get(name)
        frame = frame if added is None else pd.concat([frame, added], axis=1)
        self.frames[name] = frame
        if key is None:
            return
        parents, n_parents = self.parents(name), len(self.typed[key.table])
        learned = [c for c in frame.columns if self._is_learned(name, str(c)) and c != plan.order]
        held_out = self.held_out[name]
        trained = slice(None) if held_out is None else ~held_out
        effect = RandomEffect.fit(frame[learned][trained], parents[trained], self.seed)
        noise = numpy_generator(self.seed, "effect", name)
        drawn = effect.draw(
            frame[learned],
            parents,
            n_parents,
            noise.standard_normal((n_parents, effect.n_directions)),
        )
        clock = None if plan.order is None else Clock.of(typed[plan.order])
        added = self.child_columns(name, drawn, clock)
        self.effects[name] = effect
        self.child_column_names[key.table][name] = tuple(map(str, added.columns))
        before = self.frames.get(key.table)
        self.frames[key.table] = added if before is None else pd.concat([before, added], axis=1)

    def _is_learned(self, name: str, column: str) -> bool:
        """Returns whether models learn this column: additional columns, and columns of a modelled
        kind."""
        schema = self.reduced[name][0]
        return column not in schema or schema[column].is_modelled

    def _borrow(self, key: ForeignKey) -> tuple[tuple[str, ...], ContextCodec]:
        """Returns (names of the columns by which the rows of a referenced table are chosen, their
        codec)."""
        others = self.typed[key.table]
        links, plan = self.links[key.table], self.plans[key.table]
        not_own = {*links.referring, *plan.copied}
        free = [
            c
            for c in others.columns
            if c not in not_own
            and c not in self.reductions[key.table].rewritten  # computed after the choice
            and self._is_learned(key.table, str(c))
        ]
        rare = 1 if plan.is_catalogue else RARE_ROWS
        chosen = borrowed_columns(others[free], rare)
        return tuple(chosen), ContextCodec.fit(others[chosen], rare_groups=rare)

    def _context_columns(self, name: str) -> list[str]:
        """Returns the columns of a table on which the models of tables below it depend."""
        counts = {columns[0] for columns in self.child_column_names[name].values()}
        return [
            c
            for c in self.frames[name].columns
            if (c in self.reduced[name][0] and self._is_learned(name, str(c))) or c in counts
        ]

    def _document(self, name: str) -> dict[str, Any]:
        """Returns the JSON schema document with which a table's model is fitted: columns and
        rules."""
        schema, parts = self.reduced[name][0], self.reductions[name].owners
        counts = {columns[0] for columns in self.child_column_names[name].values()}
        counts |= self.degree_columns.get(name, set())
        columns = [
            {
                k: v
                for k, v in schema[str(c)].to_json().items()
                if c in parts or k not in _SPELLING  # a residual's limits come from its rule
            }
            if c in schema
            else {"name": str(c), "kind": "integer"}
            for c in self.frames[name].columns
            if c in schema or str(c) in counts
        ]
        rules, computes = self.links[name].rules, self.reductions[name].computes
        if rules is None:
            return {"columns": columns}
        of_model = [
            {**document, "keep": "off"} if any(map(computes, rule.sides)) else document
            for document, rule in zip(rules, read_rules(rules, []), strict=True)
        ]
        return {"columns": columns, "rules": of_model}

    def parts(self) -> dict[str, DatabasePart]:
        """Fits all tables. Returns the fitted tables by name, parents before their children."""
        return {name: self._part(name) for name in self.plans}

    def _part(self, name: str) -> DatabasePart:
        """Fits one table. Input errors name the table."""
        with of_table(name):
            part = self._fitted(name)
        if callable(self.progress):
            self.progress(name, 1.0)
        return part

    def _fitted(self, name: str) -> DatabasePart:
        plan, key, frame = self.plans[name], self.key(name), self.frames[name]
        model, context = None, pd.DataFrame()
        if not plan.is_catalogue and len(frame):
            fitting = Fitting(
                self.preset,
                self.settings,
                derived_seed(str(self.seed), name),
                self.device,
                self._progress_of(name),
                self.checkpoints,
            )
            document = self._document(name)
            frame = frame.reset_index(drop=True)
            if key is None:
                model = fit_table(fitting, frame, document, self.held_out[name])
            else:
                context = self._context_for(name, key)
                model = fit_children(
                    fitting,
                    frame,
                    document,
                    context,
                    self.parents(name),
                    self.effects[name],
                    self._effect_names(name, key),
                    plan.order,
                    self.held_out[name],
                )
        degrees = {
            i: np.bincount(rows[rows != NO_ROW], minlength=len(self.typed[other.table]))
            / max(len(rows), 1)
            for i, (rows, other) in enumerate(
                zip(self.rows[name].values(), self.links[name].foreign_keys, strict=True)
            )
            if i in self.borrowed[name] and self.plans[other.table].is_catalogue
        }
        kept = None
        if plan.is_catalogue or model is None:
            beside = [c for columns in self.child_column_names[name].values() for c in columns]
            kept = pd.concat([self.typed[name], self.frames[name][beside]], axis=1)
        return DatabasePart(
            written_schema(self.schemas[name]),
            plan,
            len(self.typed[name]),
            model,
            self.child_column_names[name],
            tuple(map(str, context.columns)),
            self.borrowed[name],
            degrees,
            kept,
            self.totals[name],
            tuple(map(str, self.typed[name].columns)),
            with_columns_of_rules(self.reductions[name]),
            self._parent_columns(name),
            self._key_dtypes(name),
            self._disjoint(name),
            self.grids.get(name, {}),
            self.key_parts[name],
        )

    def _progress_of(self, name: str) -> Callable[[Progress], None] | bool | None:
        """Returns the progress option for the fit of one table."""
        option = self.progress
        if option is None or isinstance(option, bool):
            return option
        return lambda progress: option(name, progress.fraction)

    def _key_dtypes(self, name: str) -> dict[str, str]:
        """Returns the dtypes of a table's key columns as the user passed them."""
        given, typed = self.dtypes.get(name, {}), self.typed[name]
        return {c: given.get(c, str(typed[c].dtype)) for c in key_columns(name, self.links)}

    def _disjoint(self, name: str) -> dict[int, tuple[int, ...]]:
        """Returns, for each foreign key, the other foreign keys that never lead to the same row as
        it does, such as home team and away team."""
        keys, rows = self.links[name].foreign_keys, self.rows[name]
        return {
            i: tuple(
                j
                for j, other in enumerate(keys)
                if j != i
                and other.table == keys[i].table
                and not ((rows[i] == rows[j]) & (rows[i] != NO_ROW)).any()
            )
            for i in range(len(keys))
        }

    def _without_keys(self, name: str) -> pd.DataFrame:
        """Returns the typed table without its key columns."""
        return self.typed[name].drop(columns=key_columns(name, self.links))

    def _context_for(self, name: str, key: ForeignKey) -> pd.DataFrame:
        """Returns the context of each parent: the random effect on its children, its columns, and
        those of its ancestors."""
        effect = self.frames[key.table][self._effect_names(name, key)]
        frames = {t: self.frames[t][self._context_columns(t)] for t in self.plans}
        context = pd.concat([effect, self.lineage(key.table, frames)], axis=1)
        return context.iloc[:, :_MOST_CONTEXT]  # without those of distant ancestors

    def _effect_names(self, name: str, key: ForeignKey) -> list[str]:
        """Returns the names of the columns of the random effect on a table's rows."""
        return effect_columns(name, self.child_column_names[key.table][name])
