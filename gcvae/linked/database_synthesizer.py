"""A model of linked tables: draws whole databases whose keys hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Codes, Numbers
from gcvae.artifact.checks import artifact_errors
from gcvae.artifact.file import pack_tensors, read_artifact, unpack_tensors, write_artifact
from gcvae.cells.data_frames import data_frame
from gcvae.cells.values import parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.errors import ArtifactError, Problem, SettingError, TableError
from gcvae.files.frame_dtypes import with_dtypes
from gcvae.files.tables import read_table
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey, LinkedTable
from gcvae.linked.entities import Split, split_entities
from gcvae.linked.infer_links import infer_database
from gcvae.linked.outer_rules import outer_reduction
from gcvae.linked.plan import TablePlan, plan_database
from gcvae.linked.random_effect import RandomEffect
from gcvae.linked.references import (
    NO_ROW,
    Choice,
    borrowed_columns,
    checked_references,
    features_of,
)
from gcvae.linked.sequences import Clock
from gcvae.linked.table_model import (
    Fitting,
    Sequence_,
    TableModel,
    filled,
    fit_children,
    fit_table,
    limited,
)
from gcvae.linked.totals import Total, find_totals
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import fresh_seed
from gcvae.profiling.infer_schema import infer_schema
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema
from gcvae.synthesizer import Synthesizer

FORMAT = "gcvae database"
VERSION = 1
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
"""Members of a column's document that say how cells are written: rows are learned typed."""


@dataclass(frozen=True)
class _Part:
    """What is known of one table of a fitted database.

    Attributes:
        schema: Of its columns.
        plan: How it is modelled.
        n_rows: Of the real table.
        model: None of a catalogue.
        beside: For each table whose parent it is, the columns beside its own: the number of rows,
            the random effect, the time of the first.
        context: Names of the columns of its rows' context.
        borrowed: For each reference that is chosen, its columns and their codec.
        degrees: For each such reference how many rows refer to a row, in shares of the rows.
        kept: Rows of a catalogue, and those columns beside them.
        totals: Columns that add up columns of children.
        order: The table's column names.
        reduction: Of columns that rules give from the order or the parent's row.
        outside: Columns of the parent's row that rules may name, by their names in these.
    """

    schema: TableSchema
    plan: TablePlan
    n_rows: int
    model: TableModel | None
    beside: Mapping[str, tuple[str, ...]]
    context: tuple[str, ...]
    borrowed: Mapping[int, tuple[tuple[str, ...], ContextCodec]]
    degrees: Mapping[int, Numbers]
    kept: pd.DataFrame | None
    totals: tuple[Total, ...]
    order: tuple[str, ...]
    reduction: Reduction
    outside: Mapping[str, str]


class DatabaseSynthesizer:
    """The model of a database.

    Attributes:
        schema: Its tables, keys and orders, completed by inference, with entities as tables.
        splits: Tables that are modelled as a table of entities and one of their rows.

    Examples:
        >>> users = pd.DataFrame({"id": range(40), "plan": ["free", "paid"] * 20})
        >>> visits = pd.DataFrame({"user_id": [i // 3 for i in range(120)], "pages": [2, 5, 9] * 40})
        >>> model = DatabaseSynthesizer.fit({"users": users, "visits": visits}, preset="fast",
        ...     settings={"max_steps": 20}, progress=False)
        >>> drawn = model.sample(seed=1)
        >>> bool(drawn["visits"]["user_id"].isin(drawn["users"]["id"]).all())
        True
    """

    def __init__(
        self, schema: DatabaseSchema, parts: Mapping[str, _Part], splits: tuple[Split, ...] = ()
    ) -> None:
        """Joins the parts; `fit` and `load` are the ways to get one."""
        self.schema, self.splits = schema, splits
        self._parts = dict(parts)

    def __repr__(self) -> str:
        """The tables and how each is drawn."""
        return f"<DatabaseSynthesizer: {', '.join(self._parts)}>"

    @classmethod
    def fit(
        cls,
        tables: Mapping[str, Any],
        *,
        schema: DatabaseSchema | Mapping[str, Any] | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        seed: int = 0,
        device: str = "auto",
        dirty: str = "refuse",
        progress: Callable[[str, float], None] | bool | None = None,
    ) -> DatabaseSynthesizer:
        """Trains a model for each table, given the row of its parent.

        Args:
            tables: Data frames or paths of files, by name.
            schema: What is known of tables, keys and columns (`DatabaseSchema`); inference
                completes it.
            preset, settings, seed, device: As of `Synthesizer.fit`, for every table.
            dirty: What happens to rows whose foreign key does not exist: `refuse`, `drop` or
                `null`.
            progress: Called with a table's name and the fraction of its fit.

        Raises:
            TableError: A key is not unique, a reference is dirty, or a table can not be modelled.
            SchemaError: The schema names what is not there.
        """
        if dirty not in ("refuse", "drop", "null"):
            message = f"dirty is {dirty!r}"
            raise SettingError(Problem(message, "/dirty", expected="refuse, drop or null"))
        frames = {name: _frame(name, table) for name, table in tables.items()}
        if not frames:
            raise TableError(Problem("there are no tables", expected='{"users": frame, ...}'))
        document = schema.to_json() if isinstance(schema, DatabaseSchema) else schema
        links = infer_database(frames, document)
        frames = checked_references(frames, links, dirty)
        schemas, typed = {}, {}
        for name, frame in frames.items():
            schemas[name], typed[name] = _typed(name, frame, links[name])
        (typed, schemas, links), splits = split_entities(typed, schemas, links)
        fitter = _Fitter(links, schemas, typed, preset, dict(settings or {}), seed, device, progress)
        return cls(links, fitter.parts(), splits)

    @property
    def plans(self) -> dict[str, str]:
        """How each table is drawn, in words."""
        found = {}
        for name, part in self._parts.items():
            keys, plan = self.schema[name].foreign_keys, part.plan
            words = ["copied as it is"] if plan.is_kept else []
            if plan.parent is not None:
                words.append(f"given its row of {keys[plan.parent].table}")
            words += [f"in the order of {plan.order}"] if plan.order else []
            found[name] = ", ".join(words) or "by itself"
        return found

    def sample(
        self,
        parents: int | None = None,
        *,
        scale: float = 1.0,
        seed: int | None = None,
    ) -> dict[str, pd.DataFrame]:
        """A synthetic database: a frame for each table, every key unique and every reference found.

        Args:
            parents: How many rows the tables without a parent have.
            scale: How many times as many as the real ones they have, where `parents` is not given.
            seed: The same seed gives the same rows.

        Raises:
            SettingError: `parents` or `scale` is no positive number.
        """
        is_number = isinstance(scale, int | float) and not isinstance(scale, bool)
        if not is_number or not 0 < scale < 1e6:
            message = f"scale is {scale!r}"
            raise SettingError(Problem(message, "/scale", expected="a positive number"))
        if parents is not None and (not isinstance(parents, int) or parents < 1):
            message = f"parents is {parents!r}"
            raise SettingError(Problem(message, "/parents", expected="a positive whole number"))
        seed = fresh_seed() if seed is None else seed
        found = _Drawing(self.schema, self._parts, seed).tables(parents, float(scale))
        for split in reversed(self.splits):
            found[split.table] = split.joined(found[split.table], found.pop(split.parent))
        return found

    def save(self, path: str | Path) -> None:
        """Writes the model file, whole or not at all."""
        write_artifact(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model file's content. Equal models have equal bytes."""
        tensors: dict[str, Tensor] = {}
        documents = {
            name: _written(f"{i}", part, tensors)
            for i, (name, part) in enumerate(self._parts.items())
        }
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema.to_json(),
            "tables": documents,
            "names": list(self._parts),
            "splits": [split.to_json() for split in self.splits],
        }
        return pack_tensors(tensors, manifest)

    @classmethod
    def load(cls, path: str | Path) -> DatabaseSynthesizer:
        """Reads a model file. Raises: ArtifactError: it is missing, altered, or another's."""
        return cls.from_bytes(read_artifact(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> DatabaseSynthesizer:
        """The model of a file's content. Raises as `load`."""
        tensors, manifest = unpack_tensors(data)
        if manifest.get("format") != FORMAT:
            raise ArtifactError("the file holds no model of a database")
        if manifest.get("version") != VERSION:
            found = manifest.get("version")
            raise ArtifactError(f"the file is of version {found}, this library reads {VERSION}")
        with artifact_errors("the file's manifest is none that this library writes"):
            names = manifest["names"]
            parts = {name: _read(manifest["tables"][name], tensors) for name in names}
            splits = tuple(Split.from_json(each) for each in manifest["splits"])
            return cls(DatabaseSchema.from_json(manifest["schema"]), parts, splits)


def _frame(name: str, table: Any) -> pd.DataFrame:
    """The cells of a table: of a file as text."""
    frame = read_table(table) if isinstance(table, str | Path) else data_frame(table)
    if not len(frame.columns):
        raise TableError(Problem(f"table {name!r} has no columns"))
    return frame.reset_index(drop=True)


def _typed(
    name: str, frame: pd.DataFrame, links: LinkedTable
) -> tuple[TableSchema, pd.DataFrame]:
    """The schema of a table's columns, and its values."""
    said = {c["name"]: dict(c) for c in (links.document or {}).get("columns", [])}
    own = {*links.primary_key} if len(links.primary_key) == 1 else set()
    own |= {column for key in links.foreign_keys for column in key.columns}
    columns = [
        {"name": column} | ({"kind": "identifier"} if column in own else {}) | said.get(column, {})
        for column in frame.columns
        if column in own or column in said
    ]
    if not len(frame):  # nothing can be read of no rows
        bare = [{"name": str(c), "kind": "identifier"} for c in frame.columns]
        return TableSchema.from_json({"version": 1, "columns": bare, "constraints": []}), frame
    # A table of keys alone has nothing to model, and is none to a single model.
    inferred = infer_schema(filled(frame), {"columns": columns}, rules=False).schema
    schema = replace(inferred, columns=inferred.columns[: frame.shape[1]])
    return schema, parse_table(frame, schema)


class _Fitter:
    """A fit of all tables: what is beside the columns of a table needs its children's first."""

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
    ) -> None:
        """Plans the tables."""
        self.links, self.schemas, self.typed = links, schemas, typed
        self.preset, self.settings, self.seed, self.device = preset, settings, seed, device
        self.progress = progress if callable(progress) else None
        self.plans, self.rows = plan_database(typed, schemas, links)
        self.reductions = {name: self._reduction(name) for name in self.plans}
        self.inner = {name: self._inner(name) for name in self.plans}
        self.frames = self._degrees()
        self.beside: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in typed}
        self.effects: dict[str, RandomEffect] = {}
        self.borrowed: dict[str, dict[int, tuple[tuple[str, ...], ContextCodec]]] = {}
        for name in reversed(list(self.plans)):
            self._gather(name)

    def _key(self, name: str) -> ForeignKey | None:
        """The reference to the table's parent."""
        number = self.plans[name].parent
        return None if number is None else self.links[name].foreign_keys[number]

    def _outside(self, name: str) -> dict[str, str]:
        """Columns of the parent's row that rules may name: what they are called there, by what
        they are called here."""
        key = self._key(name)
        if key is None:
            return {}
        own, above = set(self.typed[name].columns), self.schemas[key.table]
        is_split = key.table == f"{name} by {', '.join(key.columns)}"
        return {
            (c.name if is_split and c.name not in own else f"{key.table} {c.name}"): c.name
            for c in above
            if c.is_modelled and (is_split or c.has_numbers or c.has_times)
        }

    def _joined(self, name: str) -> pd.DataFrame:
        """The table with the columns of the parent's row that rules may name."""
        key, typed = self._key(name), self.typed[name]
        if key is None:
            return typed
        rows = self.rows[name][self.plans[name].parent or 0]
        above = self.typed[key.table]
        outside = {here: taken_cells(above[c], rows) for here, c in self._outside(name).items()}
        return pd.concat([typed, pd.DataFrame(outside, index=typed.index)], axis=1)

    def _reduction(self, name: str) -> Reduction:
        """What replaces columns that rules give from the order, or from the parent's row."""
        key, plan, schema = self._key(name), self.plans[name], self.schemas[name]
        if key is None or plan.is_kept or not len(self.typed[name]):
            return Reduction(schema)
        outside = self._outside(name)
        columns = [replace(self.schemas[key.table][c], name=here) for here, c in outside.items()]
        joined = replace(schema, columns=(*schema.columns, *columns), constraints=(), rules=None)
        given = {*outside, *plan.copied, *([plan.order] if plan.order else [])}
        return outer_reduction(self._joined(name), joined, given)

    def _inner(self, name: str) -> tuple[TableSchema, pd.DataFrame]:
        """The columns that are learned in the place of the table's own."""
        reduction, outside = self.reductions[name], set(self._outside(name))
        if not len(reduction):
            return self.schemas[name], self.typed[name]
        schema = reduction.reduced_schema
        kept = tuple(column for column in schema if column.name not in outside)
        frame = reduction.reduce(self._joined(name))
        return replace(schema, columns=kept), frame[[column.name for column in kept]]

    def _degrees(self) -> dict[str, pd.DataFrame]:
        """How many rows refer to each row of a table, by references that are chosen."""
        found: dict[str, dict[str, Codes]] = {}
        for name, plan in self.plans.items():
            for i, key in enumerate(self.links[name].foreign_keys):
                other = self.plans[key.table]
                if i == plan.parent or plan.is_kept or other.is_kept:
                    continue
                rows = self.rows[name][i]
                n = len(self.typed[key.table])
                counts = np.bincount(rows[rows != NO_ROW], minlength=n)
                found.setdefault(key.table, {})[degree_name(name, key)] = counts
        return {name: pd.DataFrame(columns) for name, columns in found.items()}

    def _own(self, name: str) -> list[str]:
        """The columns that are modelled: no references, no copies of other rows' columns."""
        table, plan = self.links[name], self.plans[name]
        of_keys = {column for key in table.foreign_keys for column in key.columns}
        primary = set(table.primary_key)
        is_own_key = len(primary) == 1 and not primary & of_keys
        left_out = of_keys | set(plan.copied) | (set() if is_own_key else primary & of_keys)
        return [c for c in self.inner[name][1].columns if c not in left_out]

    def _gather(self, name: str) -> None:
        """The table's own columns and those beside them; its effect goes to its parent."""
        plan, key, typed = self.plans[name], self._key(name), self.typed[name]
        frame = self.inner[name][1][self._own(name)].copy()
        self.borrowed[name] = {}
        for i, other in enumerate(self.links[name].foreign_keys):
            if i == plan.parent or plan.is_kept or not len(typed):
                continue
            names = self._borrow(name, i, other, frame)
            self.borrowed[name][i] = names
        for of_child in self.beside[name].values():
            assert all(column in self.frames[name] for column in of_child)
        added = self.frames.get(name)
        frame = frame if added is None else pd.concat([frame, added], axis=1)
        self.frames[name] = frame
        if key is None:
            return
        parents = self.rows[name][plan.parent or 0]
        n_parents = len(self.typed[key.table])
        counts = np.bincount(parents, minlength=n_parents)
        beside = {f"{name} count": counts}
        learned = [c for c in frame.columns if self._is_learned(name, str(c)) and c != plan.order]
        effect = RandomEffect.fit(frame[learned], parents, self.seed)
        noise = numpy_generator(self.seed, "effect", name)
        drawn = effect.draw(
            frame[learned],
            parents,
            n_parents,
            noise.standard_normal((n_parents, effect.n_directions)),
        )
        beside |= {f"{name} effect {k + 1}": u for k, u in enumerate(drawn.T)}
        added = pd.DataFrame(beside)
        if plan.order is not None:
            times = typed[plan.order].groupby(parents).min()
            added[f"{name} first"] = times.reindex(range(n_parents))
        self.effects[name] = effect
        self.beside[key.table][name] = tuple(map(str, added.columns))
        before = self.frames.get(key.table)
        self.frames[key.table] = added if before is None else pd.concat([before, added], axis=1)

    def _is_learned(self, name: str, column: str) -> bool:
        schema = self.inner[name][0]
        return column not in schema or schema[column].is_modelled

    def _borrow(
        self, name: str, number: int, key: ForeignKey, frame: pd.DataFrame
    ) -> tuple[tuple[str, ...], ContextCodec]:
        """Adds columns of the rows that a reference leads to; missing where it is."""
        others = self.typed[key.table]
        keys = {c for k in self.links[key.table].foreign_keys for c in k.columns}
        free = [c for c in others.columns if c not in keys and self._is_learned(key.table, str(c))]
        chosen = borrowed_columns(others[free])
        rows = self.rows[name][number]
        for column in chosen:
            cells = others[column].take(np.maximum(rows, 0)).reset_index(drop=True)
            frame[f"{', '.join(key.columns)} {column}"] = cells.mask(rows == NO_ROW)
        if (rows == NO_ROW).any():
            frame[f"{', '.join(key.columns)} there"] = np.where(rows == NO_ROW, "no", "yes")
        return tuple(chosen), ContextCodec.fit(others[chosen])

    def _context(self, name: str) -> pd.DataFrame:
        """What the children of a table are told of its rows, and of those above them."""
        own = [
            c
            for c in self.frames[name].columns
            if (c in self.inner[name][0] and self._is_learned(name, str(c)))
            or any(c == columns[0] for columns in self.beside[name].values())
        ]
        context, key = self.frames[name][own].add_prefix(f"{name} "), self._key(name)
        if key is None:
            return context
        above = self._context(key.table).iloc[self.rows[name][self.plans[name].parent or 0]]
        return pd.concat([context, above.reset_index(drop=True)], axis=1)

    def _document(self, name: str) -> dict[str, Any]:
        """What the model of a table is told of its columns: their kinds."""
        schema = self.inner[name][0]
        columns = [
            {k: v for k, v in schema[str(c)].to_json().items() if k not in _SPELLING}
            if c in schema
            else {"name": str(c), "kind": "integer"}
            for c in self.frames[name].columns
            if c in schema or str(c).endswith(" count")
        ]
        rules = self.links[name].rules
        return {"columns": columns} | ({} if rules is None else {"rules": list(rules)})

    def parts(self) -> dict[str, _Part]:
        """The fitted tables, parents before their children."""
        return {name: self._part(name) for name in self.plans}

    def _part(self, name: str) -> _Part:
        plan, key, frame = self.plans[name], self._key(name), self.frames[name]
        model, context = None, pd.DataFrame()
        if not plan.is_kept and len(frame):
            fitting = Fitting(
                self.preset,
                self.settings,
                derived_number(self.seed, name),
                self.device,
                lambda fraction: None if self.progress is None else self.progress(name, fraction),
            )
            document = self._document(name)
            frame = frame.reset_index(drop=True)
            if key is None:
                model = fit_table(fitting, frame, document)
            else:
                context = self._context_for(name, key)
                model = fit_children(
                    fitting,
                    frame,
                    document,
                    context,
                    self.rows[name][plan.parent or 0],
                    self.effects[name],
                    self._effect_names(name),
                    plan.order,
                )
        degrees = {
            i: np.bincount(rows[rows != NO_ROW], minlength=len(self.typed[other.table]))
            / max(len(rows), 1)
            for i, (rows, other) in enumerate(
                zip(self.rows[name], self.links[name].foreign_keys, strict=True)
            )
            if i in self.borrowed[name]
        }
        kept = None
        if plan.is_kept or model is None:
            beside = [c for columns in self.beside[name].values() for c in columns]
            kept = pd.concat([self.typed[name], self.frames[name][beside]], axis=1)
        children = [child for child in self.plans if self._key(child) is not None]
        of_children = {
            child: (self.typed[child], self.rows[child][self.plans[child].parent or 0])
            for child in children
            if (found := self._key(child)) is not None and found.table == name
        }
        return _Part(
            self.schemas[name],
            plan,
            len(self.typed[name]),
            model,
            self.beside[name],
            tuple(map(str, context.columns)),
            self.borrowed[name],
            degrees,
            kept,
            () if plan.is_kept else find_totals(self.typed[name], of_children),
            tuple(map(str, self.typed[name].columns)),
            self.reductions[name],
            self._outside(name),
        )

    def _effect_names(self, name: str) -> list[str]:
        key = self._key(name)
        assert key is not None, "it has a parent"
        columns = self.beside[key.table][name]
        return [c for c in columns if c.startswith(f"{name} effect ")]

    def _context_for(self, name: str, key: ForeignKey) -> pd.DataFrame:
        """Of each parent: the effect on this table first, then its row and those above."""
        effect = self.frames[key.table][self._effect_names(name)]
        return limited(pd.concat([effect, self._context(key.table)], axis=1))


def derived_number(seed: int, name: str) -> int:
    """A seed of a table's own."""
    return int(numpy_generator(seed, "table", name).integers(1 << 31))


class _Drawing:
    """One draw of a database."""

    def __init__(self, links: DatabaseSchema, parts: Mapping[str, _Part], seed: int) -> None:
        self.links, self.parts, self.seed = links, parts, seed
        self.frames: dict[str, pd.DataFrame] = {}
        self.rows: dict[str, dict[int, Codes]] = {name: {} for name in parts}

    def tables(self, parents: int | None, scale: float) -> dict[str, pd.DataFrame]:
        """All tables, their columns as the real ones have them."""
        for name, part in self.parts.items():
            self._draw(name, part, parents, scale)
        for name, part in self.parts.items():
            self._refer(name, part)
        written: dict[str, pd.DataFrame] = {}
        for name in self.parts:
            self._write_keys(name, written, ())
        for name, part in reversed(self.parts.items()):
            for total in part.totals:
                rows = self.rows[total.child][self.parts[total.child].plan.parent or 0]
                cells = total.of_children(self.frames[total.child], rows, len(self.frames[name]))
                self.frames[name][total.column] = cells.astype(
                    self.frames[name][total.column].dtype
                )
                written[name][total.column] = self.frames[name][total.column]
        found = {}
        for name in self.links.tables:
            part = self.parts[name]
            frame = written[name][list(part.order)].reset_index(drop=True)
            frame = _without_repeated_keys(frame, self.links[name])
            found[name] = with_dtypes(frame, part.schema)
        return found

    def _draw(self, name: str, part: _Part, parents: int | None, scale: float) -> None:
        """The rows of a table, without references."""
        seed = derived_number(self.seed, name)
        if part.kept is not None:
            self.frames[name] = part.kept.copy()
            for i, key in enumerate(self.links[name].foreign_keys):
                self.rows[name][i] = np.asarray(part.degrees.get(i, np.zeros(0)), dtype=np.int64)
                del key
            return
        assert part.model is not None, "it is no catalogue"
        if part.plan.parent is None:
            n = parents if parents is not None else max(1, round(scale * part.n_rows))
            self.frames[name] = part.model.draw(n, seed)
            return
        key = self.links[name].foreign_keys[part.plan.parent]
        above, beside = self.frames[key.table], self.parts[key.table].beside[name]
        counts = above[beside[0]].to_numpy(dtype=np.float64, na_value=0.0).round().astype(np.int64)
        firsts = [c for c in beside if c.endswith(" first")]
        first = above[firsts[0]] if firsts else None
        if first is not None:
            is_there = first.notna().to_numpy()
            counts = np.where(is_there, counts, 0)
            first = first.fillna(first.dropna().iloc[0]) if is_there.any() else first
        context = self._context(key.table, name)[list(part.context)]
        frame, rows = part.model.draw_children(context, counts.clip(min=0), first, seed)
        self.frames[name] = frame
        self.rows[name][part.plan.parent] = rows

    def _context(self, name: str, child: str) -> pd.DataFrame:
        """What the rows of a child are told of those of a table, and of those above."""
        effect = [c for c in self.parts[name].beside[child] if c.startswith(f"{child} effect ")]
        return pd.concat([self.frames[name][effect], self._above(name)], axis=1)

    def _above(self, name: str) -> pd.DataFrame:
        part = self.parts[name]
        context = self.frames[name].add_prefix(f"{name} ")
        if part.plan.parent is None:
            return context
        key = self.links[name].foreign_keys[part.plan.parent]
        above = self._above(key.table).iloc[self.rows[name][part.plan.parent]]
        return pd.concat([context, above.reset_index(drop=True)], axis=1)

    def _refer(self, name: str, part: _Part) -> None:
        """Chooses the references beside the one to the parent."""
        if part.kept is not None:
            return
        for i, (columns, codec) in part.borrowed.items():
            key, frame = self.links[name].foreign_keys[i], self.frames[name]
            prefix, n = ", ".join(key.columns), len(frame)
            others = self.frames[key.table]
            degrees = part.degrees[i]
            if degree_name(name, key) in others:
                drawn = others[degree_name(name, key)].to_numpy(dtype=np.float64, na_value=0.0)
                degrees = drawn.clip(min=0.0)
            total = degrees.sum()
            capacity = degrees * (n / total) if total > 0 else np.full(len(others), 1.0)
            there = frame.get(f"{prefix} there")
            are_there = np.ones(n, dtype=bool) if there is None else (there == "yes").to_numpy()
            if not len(others) or not n:
                self.rows[name][i] = np.full(n, NO_ROW, dtype=np.int64)
                continue
            wanted = frame[[f"{prefix} {c}" for c in columns]].set_axis(list(columns), axis=1)
            at = np.flatnonzero(are_there)
            choice = Choice(features_of(others[list(columns)], codec), capacity)
            taken = self._taken(name, i, part)
            found = choice.assign(
                features_of(wanted, codec)[at],
                [rows[at] for rows in taken],
                at if key.table == name else None,
                derived_number(self.seed, f"{name} {i}"),
            )
            rows = np.full(n, NO_ROW, dtype=np.int64)
            rows[at] = found
            self.rows[name][i] = rows

    def _taken(self, name: str, number: int, part: _Part) -> list[Codes]:
        """The references that make up the primary key with this one: no pair comes twice."""
        primary, keys = set(self.links[name].primary_key), self.links[name].foreign_keys
        if not primary or not set(keys[number].columns) <= primary:
            return []
        others = [
            rows
            for i, rows in self.rows[name].items()
            if i != number and set(keys[i].columns) <= primary
        ]
        return others[:1]

    def _restored(
        self, name: str, found: pd.DataFrame, written: Mapping[str, pd.DataFrame]
    ) -> pd.DataFrame:
        """The rows with the columns that rules give from the order and the parent's row."""
        part = self.parts[name]
        if not len(part.reduction) or part.plan.parent is None:
            return found
        others = written[self.links[name].foreign_keys[part.plan.parent].table]
        rows = self.rows[name][part.plan.parent]
        for here, column in part.outside.items():
            found[here] = taken_cells(others[column], rows)
        made = {column for r in part.reduction.rewritings for column in [r.column]}
        kept = [c for c in part.order if c in found.columns or c in made]
        return part.reduction.restore(found)[kept]

    def _write_keys(
        self, name: str, written: dict[str, pd.DataFrame], above: tuple[str, ...]
    ) -> pd.DataFrame:
        """The table with its references and what it copies of the rows that they lead to."""
        if name in written:
            return written[name]
        part, frame = self.parts[name], self.frames[name]
        if part.kept is not None:
            written[name] = frame
            return frame
        found = frame.copy()
        copied: dict[int, list[tuple[str, str]]] = {}
        for column, (number, other) in part.plan.copied.items():
            copied.setdefault(number, []).append((column, other))
        written[name] = found  # a table may refer to itself
        for i, key in enumerate(self.links[name].foreign_keys):
            rows = self.rows[name][i]
            others = found if key.table == name else self._write_keys(key.table, written, above)
            pairs = [*zip(key.columns, key.references, strict=True), *copied.get(i, [])]
            for column, other in pairs:
                if other not in others:  # a circle: its key is made of its own number
                    continue
                found[column] = taken_cells(others[other], rows)
        found = self._restored(name, found, written)
        for column in part.order:
            if column not in found:
                found[column] = np.arange(1, len(found) + 1)
        self.frames[name] = found
        written[name] = found
        return found


def degree_name(name: str, key: ForeignKey) -> str:
    """What the number of rows that refer to a row is called beside its columns."""
    return f"{name} {', '.join(key.columns)} count"


def taken_cells(cells: pd.Series[Any], rows: Codes) -> Any:
    """Cells of these rows, missing where there is no row."""
    found = cells.take(np.maximum(rows, 0)).reset_index(drop=True)
    return found.mask(rows == NO_ROW) if (rows == NO_ROW).any() else found


def _without_repeated_keys(frame: pd.DataFrame, table: LinkedTable) -> pd.DataFrame:
    """The rows whose key comes for the first time."""
    if len(table.primary_key) < 2:
        return frame
    return frame[~frame.duplicated(list(table.primary_key))].reset_index(drop=True)


def _packed(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


def _written(prefix: str, part: _Part, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The document of a part; models and rows go to the tensors."""
    found: dict[str, Any] = {
        "schema": part.schema.to_json(),
        "plan": {
            "parent": part.plan.parent,
            "is_kept": part.plan.is_kept,
            "copied": {c: list(at) for c, at in part.plan.copied.items()},
            "order": part.plan.order,
        },
        "n_rows": part.n_rows,
        "beside": {name: list(columns) for name, columns in part.beside.items()},
        "context": list(part.context),
        "borrowed": {
            str(i): {"columns": list(columns), "codec": codec.to_json()}
            for i, (columns, codec) in part.borrowed.items()
        },
        "degrees": {str(i): values.tolist() for i, values in part.degrees.items()},
        "totals": [total.to_json() for total in part.totals],
        "order": list(part.order),
        "outside": dict(part.outside),
        "outer_schema": part.reduction.schema.to_json(),
        "outer_rules": part.reduction.to_json(),
    }
    if part.kept is not None:
        buffer = BytesIO()
        part.kept.to_parquet(buffer, index=False)
        tensors[f"{prefix}.kept"] = _packed(buffer.getvalue())
        found["kept"] = f"{prefix}.kept"
    if part.model is not None:
        model = part.model
        tensors[f"{prefix}.rows"] = _packed(model.rows.to_bytes())
        document: dict[str, Any] = {
            "columns": list(model.columns),
            "rows": f"{prefix}.rows",
            "effect": None if model.effect is None else model.effect.to_json(),
            "told": list(model.told),
        }
        if model.sequence is not None:
            sequence = model.sequence
            document["sequence"] = {
                "column": sequence.column,
                "clock": asdict(sequence.clock),
                "dtype": sequence.dtype,
            }
            if isinstance(sequence.gaps, float):
                document["sequence"]["gap"] = sequence.gaps
            else:
                tensors[f"{prefix}.gaps"] = _packed(sequence.gaps.to_bytes())
                document["sequence"]["gaps"] = f"{prefix}.gaps"
        found["model"] = document
    return found


def _read(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> _Part:
    """The part of a document that `_written` wrote."""
    plan, kept, model = document["plan"], None, None
    if "kept" in document:
        kept = pd.read_parquet(BytesIO(_bytes(tensors[document["kept"]])))
    if "model" in document:
        found = document["model"]
        sequence = None
        if "sequence" in found:
            said = found["sequence"]
            gaps: Synthesizer | float = (
                float(said["gap"])
                if "gap" in said
                else Synthesizer.from_bytes(_bytes(tensors[said["gaps"]]))
            )
            sequence = Sequence_(said["column"], Clock(**said["clock"]), said["dtype"], gaps)
        model = TableModel(
            tuple(found["columns"]),
            Synthesizer.from_bytes(_bytes(tensors[found["rows"]])),
            None if found["effect"] is None else RandomEffect.from_json(found["effect"]),
            sequence,
            tuple(found["told"]),
        )
    copied = {c: (int(i), str(other)) for c, (i, other) in plan["copied"].items()}
    return _Part(
        TableSchema.from_json(document["schema"]),
        TablePlan(plan["parent"], plan["is_kept"], copied, plan["order"]),
        document["n_rows"],
        model,
        {name: tuple(columns) for name, columns in document["beside"].items()},
        tuple(document["context"]),
        {
            int(i): (tuple(each["columns"]), ContextCodec.from_json(each["codec"]))
            for i, each in document["borrowed"].items()
        },
        {int(i): np.array(values) for i, values in document["degrees"].items()},
        kept,
        tuple(Total.from_json(each) for each in document["totals"]),
        tuple(document["order"]),
        Reduction.from_json(
            document["outer_rules"], TableSchema.from_json(document["outer_schema"])
        ),
        dict(document["outside"]),
    )
