"""The synchronous client, with one method for each call of the service's REST API."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from gcvae_client.answers import WantedTable, copy, format_by_ending, wanted_table
from gcvae_client.bodies import (
    Rows,
    Table,
    bare_body,
    form_body,
    listed,
    name_of,
    present,
    rows_body,
)
from gcvae_client.connection import Body, Call
from gcvae_client.databases import database_body, is_database, wanted_database
from gcvae_client.errors import Document, NotFoundError
from gcvae_client.frames import (
    Frame,
    condition,
    date_formats,
    is_frame,
    row_documents,
    table_format,
)
from gcvae_client.objects import Dataset, Model
from gcvae_client.resources import Resource, any_path_of, id_of, path_of, path_of_id
from gcvae_client.schedules import Schedules
from gcvae_client.service import FilePath, document_of

_MAPS = (".json", ".png", ".svg")
_REPORTS = (".json", ".html")


class Client(Schedules):
    """Client of a gcvae service.

    Methods return the JSON objects of the REST API as dictionaries. Those of datasets, models and
    jobs (`Dataset`, `Model`, `Job`) also have methods: `dataset.train()`. Arguments for a dataset,
    model, job or result are its id or its dictionary; a model may also be given as the dictionary
    of its job or of one of its results. Tables are passed as a path, as bytes, or as a data frame
    of pandas, polars or Arrow. Tables are returned as a file if `to` is given, as bytes if only
    `format` is given, otherwise as a data frame. If a data frame was passed to the call, the
    returned frame is of the same library; otherwise it is a pandas frame.

    Args:
        base_url: Address of the service.
        api_key: API key, sent as a bearer token; None if the service requires none.
        timeout_seconds: Time without a byte from the service after which a request fails.
        retries: How often a request is repeated if the service does not respond or is busy.

    Raises:
        ValueError: The address or the key is invalid.
    """

    # Datasets

    def upload(
        self,
        table: Table | Mapping[str, Table],
        *,
        name: str | None = None,
        schema: Document | None = None,
        encoding: str | None = None,
    ) -> Dataset:
        """Uploads a table or a database and returns the new dataset.

        Args:
            table: A table: a path, the bytes of a CSV, gzipped CSV or Parquet file, or a data
                frame. Or a database of several tables: a dictionary of tables by name, a folder of
                files, or a ZIP file.
            name: Name of the dataset. Default: the file name without extension.
            schema: Known properties of the columns as JSON; all others are inferred. For a
                database, an object with `tables`, which may specify keys, and `invalid_references`.
            encoding: Encoding of a text file, such as cp1252, latin-1 or utf-16. Default: UTF-8.

        Raises:
            InvalidError: The input is not a table, or the schema contradicts it; `errors` of the
                exception gives the locations.
        """
        given = present(
            name=name_of(table) if name is None else name,
            schema=None if schema is None else json.dumps(schema),
            encoding=encoding,
        )
        kind = "database" if is_database(table) else "table"
        body = database_body(table) if kind == "database" else bare_body(table)
        call: dict[str, Any] = {"body": body, "params": given}
        if schema is not None:  # may be too long for a query parameter
            call = {"body": form_body(body, given, kind)}
        return self._json("POST", "/v1/datasets", **call, creates=True)

    def datasets(self) -> Iterator[Dataset]:
        """Yields all datasets of the workspace, the newest first."""
        return self._items("/v1/datasets")

    def dataset(self, dataset: Resource) -> Dataset:
        """Returns the current state of a dataset."""
        return self._json("GET", path_of("dataset", dataset))

    def replace_schema(self, dataset: Resource, schema: Document) -> Dataset:
        """Replaces a dataset's schema (JSON); properties that it does not specify are inferred.

        Returns:
            The dataset, whose member `changes` lists the differences to the earlier schema.
        """
        path = path_of("dataset", dataset, "/schema")
        return self._json("PUT", path, json=schema)

    def patch_schema(self, dataset: Resource, patch: Document) -> Dataset:
        """Changes properties of single columns in a dataset's schema.

        Args:
            patch: A JSON merge patch: `{"columns": {"note": {"drop": True}}}`. The value None
                removes a specified property, so that the service infers it.

        Returns:
            The dataset, whose member `changes` lists the differences to the earlier schema.

        Raises:
            InvalidError: The patch contradicts the table or the remaining schema.
        """
        headers = {"Content-Type": "application/merge-patch+json"}
        path = path_of("dataset", dataset, "/schema")
        return self._json("PATCH", path, json=patch, headers=headers)

    def profile(self, dataset: Resource, *, table: str | None = None) -> Document:
        """Returns statistics of a dataset's columns as JSON.

        Args:
            table: For a database, the name of the table.
        """
        return self._json("GET", path_of("dataset", dataset, "/profile"), params={"table": table})

    def first_rows(
        self, dataset: Resource, n_rows: int = 20, *, table: str | None = None
    ) -> list[dict[str, str | None]]:
        """Returns the first rows of a dataset as dictionaries of cells by column; cells are
        strings, or None if missing.

        Args:
            n_rows: Number of rows, at most 100.
            table: For a database, the name of the table.
        """
        path = path_of("dataset", dataset, "/rows")
        found = self._json("GET", path, params={"limit": n_rows, "table": table})
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    def rename(self, resource: Resource, name: str) -> Any:
        """Renames a dataset or a model and returns its new state as a `Dataset` or `Model`."""
        return self._json("PATCH", any_path_of(resource), json={"name": name})

    def rules(self, dataset: Resource, *, table: str | None = None) -> list[Document]:
        """Returns the rules between columns that most rows of a dataset satisfy.

        Each rule is a JSON object with the members `formula`, the rule as text; `rows`, the number
        of rows without missing cells in the columns of the rule; `kept`, how many of these rows
        satisfy the rule; `exceptions`, the first rows that violate it; and `rule`, the rule as a
        schema contains it.

        Args:
            table: For a database, the name of the table.
        """
        path = path_of("dataset", dataset, "/rules")
        return list(self._json("GET", path, params={"table": table})["rules"])

    def privacy(self, dataset: Resource, *, delta: float | None = None) -> Document:
        """Returns a dataset's privacy ledger: the privacy budget that its models have spent.

        The JSON object contains `spendings`, one for every training with differential privacy (also
        failed and deleted ones); `epsilon`, the joint epsilon of all trainings at `delta`, or None
        if some models were trained without differential privacy (`models_without_privacy`); and
        `cap`, the limit that `cap_privacy` sets.

        Args:
            delta: Delta at which `epsilon` is computed. Default: the delta of the cap or, without a
                cap, the smallest delta of the trainings.
        """
        return self._json("GET", path_of("dataset", dataset, "/privacy"), params={"delta": delta})

    def cap_privacy(self, dataset: Resource, cap: Mapping[str, float] | None) -> Document:
        """Limits the joint privacy budget of a dataset's models.

        Args:
            cap: The largest joint `epsilon` and the `delta` to which it refers; None removes the
                limit.

        Returns:
            The dataset's privacy ledger, as returned by `privacy`.
        """
        return self._json("PUT", path_of("dataset", dataset, "/privacy"), json={"cap": cap})

    # Models

    def train(
        self,
        /,
        dataset: Resource,
        *,
        name: str | None = None,
        preset: str = "default",
        seed: int = 0,
        device: str = "auto",
        scoring: str = "full",
        **settings: Any,
    ) -> Model:
        """Starts a job that trains a model, and returns the untrained model. Call `wait` to wait
        for the job.

        Args:
            dataset: The dataset to train on.
            name: Name of the model. Default: that of the dataset.
            preset: Name of a preset, a predefined configuration of model and training.
            seed: Seed of the training.
            device: `auto`, `cpu` or `cuda`.
            scoring: What the model reveals about rows: their scores (`full`), only whether a row is
                rare (`flag`), or nothing (`off`).
            settings: Settings that override those of the preset, such as `max_steps=200`.

        Raises:
            InvalidError: The preset or a setting is unknown or out of range.
        """
        training = {"preset": preset, "seed": seed, "device": device, **settings}
        document = present(
            dataset_id=id_of(dataset, "dataset"),
            training=training,
            scoring=None if scoring == "full" else scoring,
            name=name,
        )
        return self._json("POST", "/v1/models", json=document, creates=True)

    def import_model(
        self, model: str | os.PathLike[str] | bytes, *, name: str | None = None
    ) -> Model:
        """Imports a trained model into the service, where it is ready at once.

        Args:
            model: Path of a file from `download_model` or `gcvae train`, or its bytes.
            name: Name of the model. Default: the file name without extension.

        Raises:
            InvalidError: The file is not a model, or the model fails the service's test.
        """
        params = {"name": name_of(model) if name is None else name}
        call = {"body": bare_body(model), "params": params, "creates": True}
        return self._json("POST", "/v1/models/import", **call)

    def models(self, dataset: Resource | None = None) -> Iterator[Model]:
        """Yields all models, or those trained on a dataset, the newest first."""
        dataset_id = None if dataset is None else id_of(dataset, "dataset")
        return self._items("/v1/models", {"dataset_id": dataset_id})

    def model(self, model: Resource) -> Model:
        """Returns the current state of a model."""
        return self._json("GET", path_of("model", model))

    def restrict_scoring(self, model: Resource, scoring: str) -> Model:
        """Permanently restricts what a model reveals about rows.

        Args:
            scoring: `flag` (only whether a row is rare) or `off` (nothing).

        Raises:
            ConflictError: The model is already more restricted.
        """
        return self._json("PATCH", path_of("model", model), json={"scoring": scoring})

    def download_model(
        self, model: Resource, path: FilePath, *, minimal: bool = False, scoring: str | None = None
    ) -> Path:
        """Saves a trained model as a file and returns its path.

        `gcvae.Synthesizer.load` reads the file, or `gcvae.DatabaseSynthesizer.load` for a database.

        Args:
            path: Path of the file.
            minimal: Whether to omit everything that is not needed to generate and impute rows and
                to map the model's dependencies: the training record, scores of held-out rows, the
                dependency map, checksum and counts of the training table.
            scoring: What the loaded model reveals about rows: `flag` (only whether a row is rare)
                or `off` (nothing). Default: as the model of the service.
        """
        params = {"minimal": "true" if minimal else None, "scoring": scoring}
        return self._download(
            Call("GET", path_of("model", model, "/artifact"), params=params), path
        )

    # Use of models

    def sample(
        self,
        model: Resource,
        rows: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, Any] | None = None,
        given_rows: Sequence[Mapping[str, Any]] | Frame | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
        escape_formulas: bool = False,
        scale: float | None = None,
        parents: int | None = None,
        table: str | None = None,
        format: str | None = None,
        to: FilePath | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        """Generates synthetic rows and returns them as a data frame, as bytes, or as a file.

        For a database, the result is a dictionary of frames by table, or a ZIP file of tables. If
        there are too many rows for one response, the call waits for a job of the service.

        Args:
            rows: Number of rows. Default: one for each row of `given_rows`.
            seed: Seed; the same seed gives the same rows. Default: a new one for each call, which a
                pandas frame stores in `attrs["seed"]`.
            given: Condition on all rows, by column: a value, a list of allowed values, {"min": ...,
                "max": ...}, or None for a missing cell.
            given_rows: Known cells of single rows, as a frame or a list of dictionaries; None is an
                unknown cell, which is generated.
            distribution: {column: {level: share}}, the target shares of one column's levels.
            escape_formulas: Whether to prefix strings in a CSV file with ' if a spreadsheet would
                evaluate them as formulas.
            scale: For a database, number of rows relative to the real tables. Default: 1.
            parents: For a database, number of rows in each table without a parent; an alternative
                to `scale`.
            table: For a database, name of the only table to return.
            format: csv, parquet, json or jsonl. Default: that of the extension of `to`. Without
                `to`, the result is bytes.
            to: Path to save the rows at; the result is this path.
            on_progress: Function that is called with the job as JSON when the job has changed.

        Raises:
            InvalidError: A condition is invalid, or too improbable under the model.
            MissingPackageError: The result is a data frame, and pandas is not installed.
        """
        model_id = id_of(model, "model")
        kind = model.get("kind") if isinstance(model, Mapping) else None
        of_database = scale is not None or parents is not None or table is not None
        has_no_rows = rows is None and given_rows is None
        if kind == "database" or of_database or (has_no_rows and kind != "table"):
            known = None if given_rows is None else row_documents(given_rows, dict)
            wanted = wanted_database(format, to, table)
            of_rows: Document = {"rows": rows, "scale": scale, "parents": parents, "given": given}
        else:
            like = given_rows if is_frame(given_rows) else None
            wanted = wanted_table(format, to, like, table_format(like))
            formats = self._date_formats(model_id)
            known = None if given_rows is None else row_documents(given_rows, formats)
            n_rows = len(known) if rows is None and known is not None else rows
            conditions = given and {
                name: condition(asked, name, formats) for name, asked in given.items()
            }
            of_rows = {"rows": n_rows, "given": conditions}
        document = present(
            **of_rows,
            seed=seed,
            given_rows=known,
            distribution=distribution,
            escape_formulas=escape_formulas or None,
            format=wanted.format,
        )
        params = {"table": table}
        return self._table(
            model_id, "samples", lambda _: {"json": document}, params, wanted, on_progress
        )

    def score(
        self,
        model: Resource,
        rows: Rows,
        *,
        draws: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        measure: str = "density",
        score_missingness: bool = False,
        encoding: str | None = None,
        format: str | None = None,
        to: FilePath | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Scores rows by their log-likelihood under a model, in nats.

        The result has one row for each row of `rows`: a data frame, or bytes if `format` is given,
        or a file if `to` is given. If there are too many rows for one response, the call waits for
        a job of the service.

        For a database, `rows` contains all tables (frames or files by name, or a folder). The
        result then has one row for each row of a table without a parent, and the only options are
        `draws`, `seed` and `encoding`.

        Args:
            rows: Rows to score: a list of dictionaries, a path, the bytes of a file, or a frame.
            draws: Number of draws of the latent vector for each row. Default: as many as
                `tolerance` requires.
            tolerance: Target standard error of a score, in nats. Default: 0.1 if `draws` is None.
            seed: Seed of the draws.
            measure: What is scored of a continuous value: its density per unit (`density`), or the
                probability of all numbers that round to it (`rounding_cell`) or of its quantile bin
                (`pmf`).
            score_missingness: Whether a missing cell contributes its probability of being missing
                instead of being integrated out.
            encoding: Encoding of rows in a text file, such as cp1252. Default: UTF-8.
            format: csv or json, to return bytes or save a file. Default: that of the extension of
                `to`.
            to: Path to save the result at; the result is this path.
            on_progress: Function that is called with the job as JSON when the job has changed.
        """
        model_id = id_of(model, "model")
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        asked = {
            "draws": draws,
            "tolerance": tolerance,
            "measure": None if measure == "density" else measure,
            "score_missingness": score_missingness or None,
            "seed": seed,
            "format": wanted.format,
            "encoding": encoding,
        }
        if is_database(rows):
            body = database_body(rows)
        else:
            body = rows_body(rows, self._date_formats(model_id))
        return self._table(model_id, "scores", body, asked, wanted, on_progress)

    def impute(
        self,
        model: Resource,
        rows: Rows,
        *,
        draws: int = 1,
        seed: int = 0,
        columns: Sequence[str] | None = None,
        keep_missing: Sequence[str] | None = None,
        encoding: str | None = None,
        format: str | None = None,
        to: FilePath | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        """Returns rows with missing cells imputed, as a data frame, as bytes, or as a file.

        With several draws, the result has one row for each draw of each row, and a first column
        `draw` with the number of the draw. If there are too many rows for one response, the call
        waits for a job of the service.

        For a database, `rows` contains its tables by name, the result is a dictionary of frames by
        table or a ZIP file, and `seed` is the only option.

        Args:
            rows: Rows with missing cells: a list of dictionaries, a path, the bytes of a file, or a
                frame.
            draws: Number of imputations of each row.
            seed: Seed of the imputations.
            columns: Columns to impute. Default: all. Missing cells of the remaining columns stay
                missing and are integrated out.
            keep_missing: Columns in which a missing cell is information, such as "no second
                applicant": it stays missing, and other cells are imputed given that it is missing.
                Default: columns with `missing.is_value` in the schema.
            encoding: Encoding of rows in a text file, such as cp1252. Default: UTF-8.
            format: csv, parquet, json or jsonl, to return bytes or save a file. Default: that of
                the extension of `to`.
            to: Path to save the result at; the result is this path.
            on_progress: Function that is called with the job as JSON when the job has changed.
        """
        model_id = id_of(model, "model")
        if is_database(rows):
            wanted, body = wanted_database(format, to, None, rows), database_body(rows)
        else:
            like = rows if is_frame(rows) else None
            wanted = wanted_table(format, to, like, table_format(like))
            body = rows_body(rows, self._date_formats(model_id))
        asked = {
            "seed": seed,
            "format": wanted.format,
            "encoding": encoding,
            "columns": None if columns is None else listed(columns),
            "keep_missing": None if keep_missing is None else listed(keep_missing),
            "draws": None if draws == 1 else draws,
        }
        return self._table(model_id, "imputations", body, asked, wanted, on_progress)

    def dependencies(
        self,
        model: Resource,
        kind: str = "expected",
        *,
        row: Mapping[str, Any] | None = None,
        z: Sequence[float] | None = None,
        seed: int = 0,
        order: str | None = None,
        format: str | None = None,
        to: FilePath | None = None,
    ) -> Document | bytes | Path:
        """Returns a map of the pairwise dependence between columns, as JSON or as a picture.

        Args:
            kind: `total` (dependence in synthetic rows), `data` (in the training table),
                `difference` (total minus data), or `expected` (the decoder's copula averaged over
                z).
            row: Cells by column, for the map at this row's posterior; `kind` is then ignored.
            z: Latent vector, for the map at this vector; an alternative to `row`.
            seed: Seed of the map.
            order: Kind of the map that determines the order of the columns, so that pictures of
                different kinds can be compared. Default: `kind`. Not allowed with `row` or `z`.
            format: json (the result is a dictionary), png or svg (bytes). Default: that of the
                extension of `to`, else json.
            to: Path to save the map at; the result is this path.
        """
        format = _format_of(format, to, _MAPS)
        path = path_of("model", model, "/dependencies")
        if row is None and z is None:
            params = {"kind": kind, "seed": seed, "format": format, "order": order}
            return self._drawn(Call("GET", path, params=params), format, to)
        formats = self._date_formats(id_of(model, "model"))
        cells = None if row is None else row_documents([row], formats)[0]
        body = present(seed=seed, row=cells, z=z if z is None else list(z))
        call = Call("POST", path, params={"format": format}, json=body)
        return self._drawn(call, format, to)

    def encode(
        self,
        model: Resource,
        rows: Rows,
        *,
        encoding: str | None = None,
        format: str | None = None,
        to: FilePath | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Returns the mean and standard deviation of each row's posterior in the latent space.

        The result is a data frame, or bytes if `format` is given, or a file if `to` is given. If
        there are too many rows for one response, the call waits for a job of the service.

        Args:
            rows: Rows to encode: a list of dictionaries, a path, the bytes of a file, or a frame.
            encoding: Encoding of rows in a text file, such as cp1252. Default: UTF-8.
            format: csv or json, to return bytes or save a file. Default: that of the extension of
                `to`.
            to: Path to save the result at; the result is this path.
            on_progress: Function that is called with the job as JSON when the job has changed.
        """
        model_id = id_of(model, "model")
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        body = rows_body(rows, self._date_formats(model_id))
        asked = {"format": wanted.format, "encoding": encoding}
        return self._table(model_id, "encodings", body, asked, wanted, on_progress)

    def manifold(
        self,
        model: Resource,
        *,
        steps: int = 15,
        format: str | None = None,
        to: FilePath | None = None,
    ) -> Document | bytes | Path:
        """Returns each column's distribution on a grid of latent vectors, as JSON or as a picture,
        for a model with a two-dimensional latent space.

        Args:
            steps: Number of grid points for each dimension.
            format: json (the result is a dictionary), png or svg (bytes). Default: that of the
                extension of `to`, else json.
            to: Path to save the grid at; the result is this path.
        """
        format = _format_of(format, to, _MAPS)
        params = {"steps": steps, "format": format}
        return self._drawn(
            Call("GET", path_of("model", model, "/manifold"), params=params), format, to
        )

    def report(
        self,
        model: Resource,
        *,
        format: str | None = None,
        to: FilePath | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Document | bytes | Path:
        """Returns the quality report of a model: fidelity, utility, likelihood and privacy.

        If the model is in training, or a job is making its report, the call waits for the job.

        Args:
            format: json (the result is a dictionary) or html (bytes). Default: that of the
                extension of `to`, else json.
            to: Path to save the report at; the result is this path.
            on_progress: Function that is called with the job as JSON when the job has changed.

        Raises:
            NotFoundError: The model has no report, and no job is making one; call `make_report`.
            JobFailedError, JobCancelledError: The job for the report failed or was cancelled.
        """
        format = _format_of(format, to, _REPORTS)
        path = path_of("model", model, "/report")
        call = Call("GET", path, params={"format": format})
        while True:
            try:
                return self._drawn(call, format, to)
            except NotFoundError as error:
                if not error.problem.get("is_under_way"):
                    raise
                self.wait(error.problem["job_id"], on_progress)

    def make_report(
        self,
        model: Resource,
        *,
        dataset: Resource | None = None,
        holdout: Resource | None = None,
        columns: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Document:
        """Starts a job that makes or renews the quality report of a model.

        Args:
            dataset: Dataset of the training table; required if the model was imported or its
                dataset deleted.
            holdout: Dataset of real rows that were not used in training. Default: the rows that
                training set aside (`report_share`).
            columns: Columns to predict in the utility part. Default: all with enough rows.
            seed: Seed of the report.

        Returns:
            The unfinished report as JSON. Call `wait` with it to wait for the job.

        Raises:
            InvalidError: A required table is missing, or a table does not match the model.
        """
        document = present(
            seed=seed,
            dataset_id=None if dataset is None else id_of(dataset, "dataset"),
            holdout_dataset_id=None if holdout is None else id_of(holdout, "dataset"),
            columns=None if columns is None else list(columns),
        )
        path = path_of("model", model, "/report")
        return self._json("POST", path, json=document, creates=True)

    def dossier(
        self,
        model: Resource,
        purpose: str,
        *,
        retention: str | None = None,
        to: FilePath | None = None,
    ) -> bytes | Path:
        """Returns the quality report of a model as an HTML page for a data protection impact
        assessment, with purpose, retention, protections and SHA-256 digests.

        Args:
            purpose: Text that says for which purpose the synthetic rows or the model are released.
            retention: Text that says how long rows and model are kept.
            to: Path to save the page at; the result is this path.

        Raises:
            NotFoundError: The model has no report; call `report` or `make_report` first.
        """
        params = {"purpose": purpose, "retention": retention}
        call = Call("GET", path_of("model", model, "/dossier"), params=params)
        page = self._drawn(call, "html", to)
        assert isinstance(page, bytes | Path)
        return page

    def delete(self, resource: Resource, *, cascade: bool = False) -> None:
        """Deletes a dataset, a model, a connection, a webhook, a schedule or a result.

        Args:
            resource: Id or dictionary of the resource.
            cascade: For a dataset, whether to delete its models and their results too.
        """
        params = {"cascade": "true" if cascade else None}
        self._connection.request(Call("DELETE", any_path_of(resource), params=params))

    def _drawn(self, call: Call, format: str, to: FilePath | None) -> Document | bytes | Path:
        if to is not None:
            return self._download(call, to)
        answer = self._connection.request(call)
        return document_of(answer) if format == "json" else answer.content

    def _table(
        self,
        model_id: str,
        kind: str,
        body: Body,
        params: dict[str, Any],
        wanted: WantedTable,
        on_progress: Callable[[Document], None] | None,
    ) -> Frame | bytes | Path:
        path = f"/v1/models/{model_id}/{kind}"
        call = Call("POST", path, body=body, params=params, creates=True)
        formats = self._date_formats(model_id)
        with self._connection.stream(call) as response:
            if response.status_code != httpx.codes.ACCEPTED:
                seed = response.headers.get("Gcvae-Seed")
                return wanted.take(lambda file: copy(response, file), formats, seed)
            result = json.loads(response.read())
        self.wait(result, on_progress)
        call = Call("GET", f"{path_of_id(result['id'])}/content")
        seed = result["request"].get("seed")
        return wanted.take(lambda file: self._connection.download(call, file), formats, seed)

    def _date_formats(self, model_id: str) -> Callable[[], dict[str, str]]:
        """Returns a function that returns a model's date formats by column, and sends a request to
        the service on its first call only."""
        return cache(lambda: date_formats(self.model(model_id)["schema"]))


def _format_of(format: str | None, to: FilePath | None, endings: Sequence[str]) -> str:
    if format is not None:
        return format
    return "json" if to is None else format_by_ending(to, endings)
