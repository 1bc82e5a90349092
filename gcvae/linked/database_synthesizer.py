"""`DatabaseSynthesizer`: a model of linked tables that generates databases with valid keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.artifact.checks import artifact_errors
from gcvae.artifact.file import pack_tensors, read_artifact, unpack_tensors, write_artifact
from gcvae.artifact.versions import DATABASE_FORMAT, FORMAT
from gcvae.cells.data_frames import data_frame
from gcvae.cells.values import parse_table
from gcvae.errors import ArtifactError, Problem, SettingError, TableError
from gcvae.files.tables import read_table
from gcvae.linked.database_archive import (
    database_record,
    refuse_other_tables,
    written_columns,
    written_schemas,
)
from gcvae.linked.database_draw import Drawing
from gcvae.linked.database_file import VERSION, read_part, written_part
from gcvae.linked.database_fit import DatabaseFit, typed_table
from gcvae.linked.database_part import DatabasePart, of_table
from gcvae.linked.database_report import DatabaseReport, database_report
from gcvae.linked.database_schema import DatabaseSchema
from gcvae.linked.entities import Split, divided_tables, split_entities
from gcvae.linked.households import Households
from gcvae.linked.infer_links import infer_database
from gcvae.linked.plan import with_plans
from gcvae.linked.references import (
    checked_references,
)
from gcvae.numerics.seeds import fresh_seed
from gcvae.numerics.whole_numbers import whole_number
from gcvae.sampling.imputation import completed_rows, truth_words
from gcvae.schema.columns import TableSchema
from gcvae.scoring.anomalies import ANOMALY, ODD_CELL, p_values
from gcvae.scoring.row_scores import NO_ANOMALIES
from gcvae.training.checkpoints import CheckpointStore

_OF_SINGLE_TABLES = {
    "differential_privacy": "a person counts with all rows",
    "report_share": "their report takes other rows as its holdout",
}
_MOST_TIMES = 1_000_000
_REFERENCE_ROWS = 1_000
"""Maximum number of held-out households with which others are compared for p-values."""


class DatabaseSynthesizer:
    """Learns the tables of a database and generates synthetic databases with valid keys.

    Attributes:
        schema: Keys and row orders of the tables, specified or inferred, including the tables of
            entities that result from `splits`.
        splits: Divisions of a table into a table of entities, such as the customers in a table of
            orders, and a table of their rows.

    Examples:
        >>> users = pd.DataFrame({"id": range(40), "plan": ["free", "paid"] * 20})
        >>> of_users = [i // 3 for i in range(120)]
        >>> visits = pd.DataFrame({"user_id": of_users, "pages": [2, 5, 9] * 40})
        >>> model = DatabaseSynthesizer.fit({"users": users, "visits": visits}, preset="fast",
        ...     settings={"max_steps": 20}, progress=False)
        >>> drawn = model.sample(seed=1)
        >>> bool(drawn["visits"]["user_id"].isin(drawn["users"]["id"]).all())
        True
    """

    def __init__(
        self,
        schema: DatabaseSchema,
        parts: Mapping[str, DatabasePart],
        splits: tuple[Split, ...] = (),
    ) -> None:
        """Combines fitted tables to a model; users call `fit` or `load` instead."""
        self.schema, self.splits = schema, splits
        self._parts = dict(parts)

    def __repr__(self) -> str:
        """Returns a short text with the names of the tables."""
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
        invalid_references: str = "refuse",
        progress: Callable[[str, float], None] | bool | None = None,
        checkpoints: CheckpointStore | None = None,
    ) -> DatabaseSynthesizer:
        """Fits a model of each table, given the row of its parent.

        Args:
            tables: Data frames or paths of files, by table name.
            schema: Known tables, keys and columns (`DatabaseSchema`); everything else is inferred.
            preset, settings, seed, device: Name of a set of training settings, settings that differ
                from it, random seed, and device of the training of every table's model (see
                `Synthesizer.fit`).
            invalid_references: What to do if a foreign key leads to no row: `refuse` raises an
                error, `drop` leaves out the row, `null` makes its key missing.
            progress: Function that receives a table's name and the fraction of its fit that is
                done; or whether to show a progress bar for each table. None shows them in terminals
                and notebooks only.
            checkpoints: Store for finished models and the checkpoint of the one in training; an
                interrupted fit continues from it and gives the same model.

        Raises:
            TableError: A key is not unique, a reference leads to no row, or a table cannot be
                modelled.
            SchemaError: The schema names a table or column that does not exist.
            SettingError: `invalid_references` has another value, or a setting applies to single
                tables only, such as differential privacy.
        """
        if invalid_references not in ("refuse", "drop", "null"):
            message = f"invalid_references is {invalid_references!r}"
            raise SettingError(
                Problem(message, "/invalid_references", expected="refuse, drop or null")
            )
        for name, why in _OF_SINGLE_TABLES.items():
            if name in (settings or {}):
                message, pointer = f"databases have no {name}: {why}", f"/settings/{name}"
                expected = "a database without it, or a table with one row a person"
                raise SettingError(Problem(message, pointer, expected=expected))
        frames = {name: frame.reset_index(drop=True) for name, frame in _frames(tables).items()}
        document = schema.to_json() if isinstance(schema, DatabaseSchema) else schema
        links = infer_database(frames, document)
        frames = checked_references(frames, links, invalid_references)
        schemas, typed = {}, {}
        for name, frame in frames.items():
            schemas[name], typed[name] = typed_table(name, frame, links[name])
        (typed, schemas, links), splits = split_entities(typed, schemas, links)
        dtypes = {
            name: {str(c): str(dtype) for c, dtype in frame.dtypes.items()}
            for name, frame in frames.items()
        }
        how = preset, dict(settings or {}), seed, device, progress
        fitter = DatabaseFit(links, schemas, typed, *how, dtypes, checkpoints)
        parts = fitter.fit_parts()
        links = with_plans(links, {name: part.plan for name, part in parts.items()})
        model = cls(links, parts, splits)
        return model._with_household_tails(frames, fitter.held_out, seed)

    def _with_household_tails(
        self, frames: Mapping[str, pd.DataFrame], held_out: Mapping[str, Mask | None], seed: int
    ) -> DatabaseSynthesizer:
        """Returns the model with `household_tails`: anomaly statistics of held-out households,
        from which the p-values of other households are computed.

        `frames` are the training tables. `held_out` contains, by table, a mask of the held-out
        rows; for a table with None, the statistics of all households are stored.
        """
        parts = dict(self._parts)
        if self._has_anomalies:
            households = Households(self.schema, parts, self.splits, frames)
            households.trained = {
                name: np.flatnonzero(~rows) for name, rows in held_out.items() if rows is not None
            }
            for name in households.roots():
                is_held_out = held_out[name]
                at = None if is_held_out is None else np.flatnonzero(is_held_out)[:_REFERENCE_ROWS]
                statistic = households.tails(name, seed, at).statistic
                parts[name] = replace(parts[name], household_tails=tuple(np.sort(statistic)))
        return DatabaseSynthesizer(self.schema, parts, self.splits)

    @property
    def plans(self) -> dict[str, str]:
        """Description of how each table is generated, such as "given its row of users", by table
        name."""
        found = {}
        for name, part in self._parts.items():
            keys, plan = self.schema[name].foreign_keys, part.plan
            words = ["copied as it is"] if plan.is_catalogue else []
            if plan.parent is not None:
                words.append(f"given its row of {keys[plan.parent].table}")
            words += [f"in the order of {plan.order}"] if plan.order else []
            found[name] = ", ".join(words) or "by itself"
        return found

    @property
    def training_record(self) -> dict[str, Any]:
        """JSON description of the fit: numbers of rows and columns, parents and plans of the tables
        (see `database_record`)."""
        return database_record(self.schema, self._parts, self.splits, self.plans)

    @property
    def schemas(self) -> dict[str, TableSchema]:
        """Column schemas of the generated tables, by table name."""
        return written_schemas(self._parts, self.splits)

    def sample(
        self,
        parents: int | None = None,
        *,
        scale: float = 1.0,
        seed: int | None = None,
    ) -> dict[str, pd.DataFrame]:
        """Generates a synthetic database: one frame per table, with unique keys and valid
        references.

        Args:
            parents: Number of rows of each table without a parent; None: see `scale`.
            scale: If `parents` is None, each table without a parent gets this multiple of the
                number of rows of the real table.
            seed: The same seed gives the same rows. None: a random seed.

        Raises:
            SettingError: `parents` or `scale` is not a positive number.
        """
        is_number = isinstance(scale, Real) and not isinstance(scale, bool)
        if not is_number or not 0 < scale < _MOST_TIMES:
            message, expected = f"scale is {scale!r}", f"a number above 0 and below {_MOST_TIMES:,}"
            raise SettingError(Problem(message, "/scale", expected=expected))
        parents = None if parents is None else whole_number("parents", parents, 1)
        seed = fresh_seed() if seed is None else seed
        found = Drawing(self.schema, self._parts, seed).tables(parents, float(scale))
        for split in reversed(self.splits):
            found[split.table] = split.joined(found[split.table], found.pop(split.parent))
        return found

    def log_likelihood(
        self, tables: Mapping[str, Any], *, draws: int = 8, seed: int = 0
    ) -> dict[str, pd.Series[Any]]:
        """Returns the log-likelihood of each household, in nats.

        A household is a row of a table without a parent, with all rows below it, such as a customer
        with all orders.

        The random effect, a latent vector that the children of a parent share, is integrated out by
        importance sampling from its posterior. Some foreign keys do not lead to the parent. The
        model does not learn which row they reference, but the values of that row in some columns,
        and these values are scored. Keys and personal columns are not scored.

        Args:
            tables: All tables of the fitted database, with rows and columns in any order.
                Catalogues, the tables that are copied unchanged, are optional.
            draws: Number of draws of the random effect of each household's top row. For each
                draw, the random effects of its child rows are drawn half as many times, those of
                their child rows a quarter as many times, and so on, but at least twice.
            seed: The same seed gives the same numbers.

        Returns:
            By table without a parent, a series with the index of its rows. For a table of entities
            (`splits`), which was not passed, the index contains the keys of the entities.

        Raises:
            TableError: A table or column is missing, a cell cannot be parsed, a key is repeated, or
                a reference leads to no row.
        """
        found = self._households(tables)
        draws = whole_number("draws", draws, 1)
        return {
            name: pd.Series(
                found.log_likelihood(name, draws, seed)[0], found.index[name], name="log_likelihood"
            )
            for name in found.roots()
        }

    def score(
        self,
        tables: Mapping[str, Any],
        *,
        draws: int = 8,
        seed: int = 0,
        progress: Callable[[float], None] | None = None,
    ) -> dict[str, pd.DataFrame]:
        """Returns the log-likelihood and the anomaly of each household (see `log_likelihood`).

        Args:
            tables: All tables of the fitted database; catalogues (copied unchanged) are optional.
            draws: Number of draws of the random effect (vector that the children of a row share).
            seed: Seed; the same seed gives the same numbers.
            progress: Receives the fraction that is done; an exception that it raises ends the call.

        Returns:
            By table, a frame with the index of `log_likelihood`. Its columns are `log_likelihood`
            in nats, its `standard_error` over the draws (missing for one draw or a likelihood of
            zero), and the columns of `anomalies`, which are missing if the models of this preset
            cannot compute anomalies.

        Raises:
            TableError: A table, column or key is invalid, as for `log_likelihood`.
        """
        households = self._households(tables)
        draws = whole_number("draws", draws, 1)
        n_rows = {name: len(households.typed[name]) for name in households.roots()}
        before, found = 0, {}
        for name, n in n_rows.items():

            def report_done(done: int, before: int = before) -> None:
                if progress is not None:
                    progress((before + done) / max(sum(n_rows.values()), 1))

            values, errors = households.log_likelihood(name, draws, seed, report_done)
            index = households.index[name]
            scores = pd.DataFrame({"log_likelihood": values, "standard_error": errors}, index)
            found[name] = pd.concat([scores, self._anomalies(households, name, seed)], axis=1)
            before += n
        return found

    def extend(
        self, tables: Mapping[str, Any], rows: int, *, seed: int | None = None
    ) -> dict[str, pd.DataFrame]:
        """Continues every sequence: generates rows after the last row of each parent.

        A sequence is the rows of one parent in a table with an `order`, such as the days of a shop.

        Args:
            tables: All tables of the fitted database; the rows of ordered tables are the beginnings
                of the sequences.
            rows: Number of rows to add for each parent that already has at least one.
            seed: The same seed gives the same rows. None: a random seed.

        Returns:
            By ordered table, the new rows, grouped by parent and in order, with new keys and with
            references to their parents. Tables below an ordered table get no new rows.

        Raises:
            SettingError: No table of the database has an order, or `rows` is not a positive number.
            TableError: A table, column or key is invalid, as for `log_likelihood`.
        """
        ordered = [name for name, part in self._parts.items() if part.plan.order is not None]
        series = {split.parent for split in self.splits}
        names = [name for name in ordered if name not in series]
        if not names:
            message = "no table of the database has an order"
            raise SettingError(Problem(message, expected='an "order" in the schema of the fit'))
        rows = whole_number("rows", rows, 1)
        seed = fresh_seed() if seed is None else seed
        known = self._households(tables)
        found = {name: known.extend(name, rows, seed) for name in names}
        for split in reversed(self.splits):
            if split.table in found:
                found[split.table] = split.joined(found[split.table], known.typed[split.parent])
        return found

    def impute(self, tables: Mapping[str, Any], *, seed: int = 0) -> dict[str, pd.DataFrame]:
        """Returns the database with missing cells filled; known cells stay unchanged.

        Parents are completed before their children. A row is completed given its known cells, its
        completed parent row, the number of its children, and their random effect (a vector that
        summarises what they have in common). A column that a rule, a copy or a functional
        dependency determines gets the determined value. Keys and personal columns stay missing.

        Args:
            tables: All tables of the fitted database, with rows and columns in any order.
                Catalogues, the tables that are copied unchanged, are optional.
            seed: The same seed gives the same cells.

        Returns:
            By table that was passed, a frame with the same index, columns and order of rows.

        Raises:
            TableError: A table, column or key is invalid, as for `log_likelihood`.
        """
        frames = self._frames(tables)
        completed = Households(self.schema, self._parts, self.splits, frames).impute(seed)
        for split in reversed(self.splits):
            completed[split.table] = split.joined(completed[split.table], completed[split.parent])
        # No model learns keys and personal columns.
        unmodelled = {
            name: {*self.schema[name].referring}
            | {c.name for c in part.model.rows.schema if not c.is_modelled}
            for name, part in self._parts.items()
            if part.model is not None
        }
        for split in reversed(self.splits):
            unmodelled[split.table] |= unmodelled.get(split.parent, set())
        found = {}
        for name in tables:
            columns = [c for c in self.schemas[name] if c.name not in unmodelled.get(name, ())]
            found[name] = frames[name]
            if self._parts[name].catalogue is None and columns:
                schema, cells = TableSchema(tuple(columns)), frames[name].reset_index(drop=True)
                typed = parse_table(cells[list(schema.names)], schema)
                drawn = completed[name][list(schema.names)]
                words = truth_words(cells, typed, schema)
                filled = completed_rows(cells, typed, drawn, schema, words)
                found[name] = filled.set_axis(frames[name].index)
        return found

    def anomalies(self, tables: Mapping[str, Any], *, seed: int = 0) -> dict[str, pd.DataFrame]:
        """Returns a p-value and the least likely cell of each household (see `log_likelihood`).

        Args:
            tables: All tables of the fitted database; catalogues (copied unchanged) are optional.
            seed: Seed; the same seed gives the same numbers.

        Returns:
            By table, a frame with the index of `log_likelihood`. Column `anomaly` is the p-value of
            a household, found by comparison with held-out households: about a share p of new
            households from the same source has a value of at most p. Columns `odd_table`, `odd_row`
            (index in that table) and `odd_cell` (column name) locate its least likely cell.

        Raises:
            TableError: A table, column or key is invalid, as for `log_likelihood`.
            SettingError: The models of this preset cannot compute anomalies.
        """
        households = self._households(tables)
        if not self._has_anomalies:
            raise SettingError(NO_ANOMALIES)
        return {name: self._anomalies(households, name, seed) for name in households.roots()}

    @property
    def _has_anomalies(self) -> bool:
        models = [part.model for part in self._parts.values() if part.model is not None]
        return all(model.rows.scorer.has_anomalies for model in models)

    def _anomalies(self, households: Households, name: str, seed: int) -> pd.DataFrame:
        """Returns the frame of `anomalies` for root table `name`; all its cells are missing if the
        models cannot compute anomalies."""
        index, columns = households.index[name], (ANOMALY, "odd_table", "odd_row", ODD_CELL)
        if not self._has_anomalies:
            return pd.DataFrame(None, index, columns)
        of_splits = {split.parent: split.table for split in self.splits}
        tails = households.tails(name, seed)
        reference = {ANOMALY: list(self._parts[name].household_tails)}
        labels = [households.index[t][r] for t, r in zip(tails.table, tails.row, strict=True)]
        found = (
            p_values(reference, tails.statistic),
            [of_splits.get(t, t) for t in tails.table],
            pd.Series(labels, dtype=object).to_numpy(),
            tails.column,
        )
        return pd.DataFrame(dict(zip(columns, found, strict=True)), index)

    def report(
        self,
        real: Mapping[str, Any],
        holdout: Mapping[str, Any] | None = None,
        synthetic: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        progress: Callable[[str, float], None] | None = None,
    ) -> DatabaseReport:
        """Evaluates fidelity, utility and privacy of a synthetic database, table by table.

        Args:
            real: Training tables.
            holdout: Tables of the same source that were not used in training.
            synthetic: Database to evaluate; generated by the model if None.
            seed: The same seed gives the same report.
            progress: Receives the name of a table and the fraction of its report that is done.

        Raises:
            TableError: A table, column or key is invalid, as for `log_likelihood`.
        """
        judged = self.sample(seed=seed) if synthetic is None else synthetic
        plans = {name: part.plan for name, part in self._parts.items()}
        unseen = None if holdout is None else self._typed_tables(holdout)
        sides = self._typed_tables(real), self._typed_tables(judged), unseen
        return database_report(self.schema, plans, *sides, seed, progress)

    def _typed_tables(self, tables: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
        frames, _ = divided_tables(self._frames(tables), self.splits)
        return {name: part.typed(name, frames[name]) for name, part in self._parts.items()}

    def _frames(self, tables: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
        """Reads the tables of a database, and checks their names and columns. Catalogues that were
        not passed are taken from the model."""
        frames, columns = _frames(tables), written_columns(self._parts, self.splits)
        copied = {
            name: part.catalogue[list(part.column_names)]
            for name, part in self._parts.items()
            if part.catalogue is not None
        }
        passed = {name: [*map(str, frame.columns)] for name, frame in frames.items()}
        refuse_other_tables(passed, columns, self.schema, copied)
        return copied | frames

    def _households(self, tables: Mapping[str, Any]) -> Households:
        return Households(self.schema, self._parts, self.splits, self._frames(tables))

    def save(self, path: str | Path) -> None:
        """Writes the model to a file, which is replaced only once the new one is complete.

        Raises:
            UnwritableFileError: The folder does not exist, or the file cannot be written.
        """
        write_artifact(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the content of the model file. Equal models have equal bytes."""
        tensors: dict[str, Tensor] = {}
        documents = {
            name: written_part(f"{i}", part, tensors)
            for i, (name, part) in enumerate(self._parts.items())
        }
        manifest = {
            "format": DATABASE_FORMAT,
            "version": VERSION,
            "schema": self.schema.to_json(),
            "tables": documents,
            "names": list(self._parts),
            "splits": [vars(split) for split in self.splits],
        }
        return pack_tensors(tensors, manifest)

    @classmethod
    def load(cls, path: str | Path) -> DatabaseSynthesizer:
        """Reads a model from a file.

        Raises:
            ArtifactError: The file is missing or damaged, or does not contain the model of a
                database.
        """
        data = read_artifact(path)
        try:
            return cls.from_bytes(data)
        except ArtifactError as error:
            raise type(error)(f"{path}: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> DatabaseSynthesizer:
        """Reads a model from the content of its file. Raises the errors of `load`."""
        tensors, manifest = unpack_tensors(data)
        if manifest.get("format") == FORMAT:
            raise ArtifactError("the file holds a model of one table: Synthesizer.load reads it")
        if manifest.get("format") != DATABASE_FORMAT:
            raise ArtifactError("the file holds no model of a database")
        if manifest.get("version") != VERSION:
            found = manifest.get("version")
            raise ArtifactError(f"the file is of version {found}, this library reads {VERSION}")
        with artifact_errors("the file's manifest is none that this library writes"):
            names = manifest["names"]
            parts = {name: read_part(manifest["tables"][name], tensors) for name in names}
            splits = tuple(Split.from_json(each) for each in manifest["splits"])
            return cls(DatabaseSchema.from_json(manifest["schema"]), parts, splits)


def _frames(tables: Any) -> dict[str, pd.DataFrame]:
    """Reads tables into data frames by name; the cells of a file are text."""
    if not isinstance(tables, Mapping):
        message = f"the tables are {type(tables).__name__}"
        raise TableError(Problem(message, expected='data frames by name: {"users": frame}'))
    wrong = [name for name in tables if not isinstance(name, str)]
    if wrong:
        raise TableError(Problem(f"a table is called {wrong[0]!r}", expected="a text"))
    if not tables:
        raise TableError(Problem("there are no tables", expected='{"users": frame, ...}'))
    frames = {}
    for name, table in tables.items():
        with of_table(name):
            is_file = isinstance(table, str | Path)
            frames[name] = read_table(table, may_be_empty=True) if is_file else data_frame(table)
            if not len(frames[name].columns):
                raise TableError(Problem("the table has no columns"))
    return frames
