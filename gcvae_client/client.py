"""The client: one method for each call of the service."""

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
    of_table,
    rows_body,
)
from gcvae_client.connection import Body, Call
from gcvae_client.databases import database_body, is_database, wanted_database
from gcvae_client.errors import Document
from gcvae_client.frames import (
    Frame,
    condition,
    date_formats,
    is_frame,
    row_documents,
    table_format,
)
from gcvae_client.objects import Dataset, Model, bind
from gcvae_client.reports import Reports
from gcvae_client.resources import (
    Resource,
    any_id_of,
    dataset_id_of,
    model_id_of,
    place_of,
)
from gcvae_client.service import Place, document_of

_MAPS = (".json", ".png", ".svg")


class Client(Reports):
    """A connection to one service. Responses are documents (dict) of the REST API.

    Documents of datasets, models and jobs have methods: `dataset.train()`. Resources are given by
    id or by document; a model also by the document of its job or of one of its results. Tables are
    given as a path, as bytes, or as a data frame of pandas, polars or Arrow. Tables are returned as
    a pandas frame, or as the kind of frame that was given; as bytes if `format` is given; as a file
    if `to` is given.

    Args:
        base_url: Address of the service.
        api_key: Sent as a bearer token.
        timeout_seconds: Longest silence of the service before a request counts as failed.
        retries: How often a request is repeated if the service does not respond or is busy.
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
        """Uploads a table (a path, bytes of CSV, gzipped CSV or Parquet, or a frame); returns the
        dataset.

        Several tables are a database, whose keys are inferred: a dictionary of tables by name, a
        folder of files, or a ZIP file. Its `schema` has `tables` with their
            keys, and `invalid_references`.

        Args:
            table: The table or tables.
            name: Name of the dataset.
            schema: Declarations of columns; the rest is inferred.
            encoding: Encoding of a text file, such as cp1252, latin-1 or utf-16. Default: UTF-8.

        Raises:
            InvalidError: The input is not a table, or the schema does not fit; `errors` name the
                locations.
        """
        fields = {
            "name": name_of(table) if name is None else name,
            "schema": None if schema is None else json.dumps(schema),
            "encoding": encoding,
        }
        given = {key: value for key, value in fields.items() if value is not None}
        kind = "database" if is_database(table) else "table"
        body = database_body(table) if kind == "database" else bare_body(table)
        call: dict[str, Any] = {"body": body, "params": given}
        if schema is not None:  # too long for a URL
            call = {"body": form_body(body, given, kind)}
        found: Dataset = self._json("POST", "/v1/datasets", **call, creates=True)
        return found

    def datasets(self) -> Iterator[Dataset]:
        """Yields all datasets, the newest first."""
        return self._items("/v1/datasets")

    def dataset(self, dataset: Resource) -> Dataset:
        """Returns a dataset."""
        found: Dataset = self._json("GET", f"/v1/datasets/{dataset_id_of(dataset)}")
        return found

    def replace_schema(self, dataset: Resource, schema: Document) -> Dataset:
        """Replaces a dataset's schema; what it does not declare is inferred.

        Returns:
            The dataset; `changes` lists the differences.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/schema"
        found: Dataset = self._json("PUT", path, body=lambda _: {"json": schema})
        return found

    def patch_schema(self, dataset: Resource, patch: Document) -> Dataset:
        """Changes the declarations of single columns of a dataset's schema.

        Args:
            dataset: The dataset.
            patch: A JSON merge patch: `{"columns": {"note": {"drop": True}}}`. None removes a
                declaration, so that it is inferred again.

        Returns:
            The dataset; `changes` lists the differences.

        Raises:
            InvalidError: The patch does not fit the table, or other declarations.
        """
        headers = {"Content-Type": "application/merge-patch+json"}
        body = {"content": json.dumps(patch), "headers": headers}
        path = f"/v1/datasets/{dataset_id_of(dataset)}/schema"
        found: Dataset = self._json("PATCH", path, body=lambda _: dict(body))
        return found

    def profile(self, dataset: Resource, *, table: str | None = None) -> Document:
        """Returns statistics of a dataset's columns; for a database those of one `table`."""
        path = f"/v1/datasets/{dataset_id_of(dataset)}/profile"
        found: Document = self._json("GET", path, params={} if table is None else {"table": table})
        return found

    def first_rows(
        self, dataset: Resource, n_rows: int = 20, *, table: str | None = None
    ) -> list[dict[str, str | None]]:
        """Returns the first rows of a dataset's table as they were uploaded, at most 100."""
        path = f"/v1/datasets/{dataset_id_of(dataset)}/rows"
        params = {"limit": n_rows} | ({} if table is None else {"table": table})
        found = self._json("GET", path, params=params)
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    def rename(self, resource: Resource, name: str) -> Any:
        """Renames a dataset or a model and returns it."""
        return self._json(
            "PATCH", place_of(any_id_of(resource)), body=lambda _: {"json": {"name": name}}
        )

    def rules(self, dataset: Resource) -> list[Document]:
        """Returns the rules that hold between a dataset's columns in most rows.

        Each has its `formula`, the number of `rows` with values in all its columns, how many of
        these `kept` it, the first `exceptions`, and the `rule` as in the schema.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/rules"
        return list(self._json("GET", path)["rules"])

    def privacy(self, dataset: Resource, *, delta: float | None = None) -> Document:
        """Returns the privacy ledger of a dataset: what its private models have spent together, and
        its cap.

        `spendings` lists every training, including failed and deleted ones. `epsilon` is the joint
        one at `delta` (default: the cap's, or the smallest of the trainings). It is None if some
        models of the table are not private (`models_without_privacy`).
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/privacy"
        params = {} if delta is None else {"delta": delta}
        found: Document = self._json("GET", path, params=params)
        return found

    def cap_privacy(self, dataset: Resource, cap: Mapping[str, float] | None) -> Document:
        """Sets the cap (`epsilon`, `delta`) on the joint privacy cost of a dataset's models; None
        removes it.

        Returns:
            The ledger, as `privacy`.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/privacy"
        found: Document = self._json("PUT", path, body=lambda _: {"json": {"cap": cap}})
        return found

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
        """Starts the training of a model and returns the model; `wait` waits for its job.

        Args:
            dataset: The dataset.
            name: Name of the model.
            preset: Preset of the settings.
            seed: Seed of the training.
            device: `auto`, `cpu` or `cuda`.
            scoring: Scores that the model gives: all (`full`), only whether a row is rare (`flag`),
                or none (`off`).
            settings: Settings that override those of the preset, such as `max_steps`.

        Raises:
            InvalidError: The preset or a setting is unknown.
        """
        training = {"preset": preset, "seed": seed, "device": device, **settings}
        document = {"dataset_id": dataset_id_of(dataset), "training": training}
        document |= {} if scoring == "full" else {"scoring": scoring}
        if name is not None:
            document["name"] = name
        found: Model = self._json(
            "POST", "/v1/models", body=lambda _: {"json": document}, creates=True
        )
        return found

    def import_model(
        self, model: str | os.PathLike[str] | bytes, *, name: str | None = None
    ) -> Model:
        """Imports a model (a file from `download_model` or `gcvae train`, or its bytes), which is
        ready at once.

        Raises:
            InvalidError: It is not a model, or can not be used.
        """
        known_as = name_of(model) if name is None else name
        params = {} if known_as is None else {"name": known_as}
        body = bare_body(model)
        found: Model = self._json(
            "POST", "/v1/models/import", body=body, params=params, creates=True
        )
        return found

    def models(self, dataset: Resource | None = None) -> Iterator[Model]:
        """Yields all models, or those of a dataset, the newest first."""
        filters = {} if dataset is None else {"dataset_id": dataset_id_of(dataset)}
        return self._items("/v1/models", filters)

    def model(self, model: Resource) -> Model:
        """Returns the current document of a model."""
        found: Model = self._json("GET", f"/v1/models/{model_id_of(model)}")
        return found

    def restrict_scoring(self, model: Resource, scoring: str) -> Model:
        """Restricts the scores that a model gives: whether a row is rare (`flag`), or none (`off`).

        Raises:
            ConflictError: The current setting is stricter; it can not be loosened.
        """
        path = f"/v1/models/{model_id_of(model)}"
        found: Model = self._json("PATCH", path, body=lambda _: {"json": {"scoring": scoring}})
        return found

    def download_model(
        self, model: Resource, path: Place, *, minimal: bool = False, scoring: str | None = None
    ) -> Path:
        """Saves a trained model as a file for `gcvae.Synthesizer.load`, or
        `gcvae.DatabaseSynthesizer.load`.

        Args:
            model: The model.
            path: Path of the file.
            minimal: Whether to omit what generation, imputation and the model's own maps do not
                need: training record, scores of held-out rows, the table's map and checksum,
                counts.
            scoring: `flag` or `off`, to restrict the scores that the file's model gives.
        """
        params: dict[str, Any] = {"minimal": "true"} if minimal else {}
        params |= {} if scoring is None else {"scoring": scoring}
        path_of_file = f"/v1/models/{model_id_of(model)}/artifact"
        return self._download(Call("GET", path_of_file, params=params), path)

        # What models do

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
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        """Returns synthetic rows: a frame, bytes if `format` is given, a file if `to` is given.

        For a database it returns a dictionary of frames by table; as bytes or file it is a ZIP
        file. If the rows are too many for one response, the call waits for a job. A pandas frame
        has the seed in `attrs["seed"]`.

        Args:
            model: The model.
            rows: Number of rows; optional with `given_rows`, for each of which one row is
                generated.
            seed: The same seed gives the same rows. Default: a new one for each call.
            given: Condition on all rows, by column: a value, a list of values, {"min": ..., "max":
                ...}, or None for a missing cell.
            given_rows: Known cells of single rows, None for unknown ones; documents or a frame.
            distribution: Target shares of one column's levels.
            escape_formulas: In a CSV, whether to write ' before texts that a spreadsheet would
                evaluate.
            scale: For a database, number of rows relative to the real tables. Default: 1.
            parents: For a database, in place of `scale`, number of rows of each table without a
                parent.
            table: For a database, the only table to return.
            format: csv, parquet, json or jsonl. Default: the extension of `to`.
            to: File to save the rows in.
            on_progress: Is called with the job each time it has changed.

        Raises:
            InvalidError: A condition is invalid, or its probability under the model is too small.
            MissingPackageError: A frame is requested, and pandas is not installed.
        """
        model_id = model_id_of(model)
        kind = model.get("kind") if isinstance(model, Mapping) else None
        of_database = scale is not None or parents is not None or table is not None
        has_no_rows = rows is None and given_rows is None
        if kind == "database" or of_database or (has_no_rows and kind != "table"):
            asked: Document = {"scale": scale, "parents": parents, "seed": seed, "rows": rows}
            known = None if given_rows is None else row_documents(given_rows, dict)
            asked |= {"given": given, "distribution": distribution, "given_rows": known}
            asked["escape_formulas"] = True if escape_formulas else None
            in_form = wanted_database(format, to, table)
            return self._sampled_database(model_id, asked, in_form, table, on_progress)
        like = given_rows if is_frame(given_rows) else None
        wanted = wanted_table(format, to, like, table_format(like))
        formats = self._date_formats(model_id)
        known = None if given_rows is None else row_documents(given_rows, formats)
        conditions = given and {
            name: condition(asked, name, formats) for name, asked in given.items()
        }
        n_rows = len(known) if rows is None and known is not None else rows
        document: Document = {"rows": n_rows, "format": wanted.format}
        choices = {"seed": seed, "given": conditions, "given_rows": known}
        choices["distribution"] = distribution
        choices["escape_formulas"] = True if escape_formulas else None
        document |= {name: choice for name, choice in choices.items() if choice is not None}
        return self._table(
            model_id, "samples", lambda _: {"json": document}, {}, wanted, on_progress
        )

    def _sampled_database(
        self,
        model_id: str,
        asked: Document,
        wanted: WantedTable,
        table: str | None,
        on_progress: Callable[[Document], None] | None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        document = {name: value for name, value in asked.items() if value is not None}
        document["format"] = wanted.format
        params = {} if table is None else {"table": table}
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
        jitters: int = 0,
        measure: str = "density",
        score_missingness: bool = False,
        encoding: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Returns scores of rows (documents, a path, bytes, a frame), in a form as for `sample`.

        If the rows are too many for one response, the call waits for a job. For a database, the
        rows are its tables (frames or files by name, or a folder), the options `draws` and `seed`,
        and the response has a line for each row of a table without a parent.

        Args:
            model: The model.
            rows: Rows to score.
            draws: Samples of z for each row. Default: an adaptive number, by `tolerance`.
            tolerance: Target for the standard error of a row's score, in nats. Default: 0.1,
                without `draws`.
            seed: Seed of the samples.
            jitters: Jitters of a copula's discrete cells for each sample; 0 integrates exactly.
            measure: Of continuous values: `density` per unit, probability of the `rounding_cell`,
                or of the quantile bin (`pmf`).
            score_missingness: Whether missing cells count with their probability; else they are
                integrated out.
            encoding: Encoding of rows in a text file, as for `upload`.
            format, to, on_progress: As for `sample`.
        """
        model_id = model_id_of(model)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        if is_database(rows):
            of_database = {
                "draws": draws,
                "seed": seed,
                "format": wanted.format,
                "encoding": encoding,
            }
            asked = {name: value for name, value in of_database.items() if value is not None}
            body = database_body(rows)
            return self._table(model_id, "scores", body, asked, wanted, on_progress)
        body = rows_body(rows, self._date_formats(model_id))
        needed = {"draws": draws, "tolerance": tolerance}
        params: dict[str, Any] = {name: n for name, n in needed.items() if n is not None}
        params |= {"seed": seed, "jitters": jitters, "measure": measure}
        params |= {"score_missingness": score_missingness, "format": wanted.format}
        params |= of_table(encoding)
        return self._table(model_id, "scores", body, params, wanted, on_progress)

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
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        """Returns rows (documents, a path, bytes, a frame) with missing cells imputed, as for
        `sample`. For a database, the rows are its tables, `seed` is the only option, and the result
        is as that of `sample`.

        With several draws each row is repeated, numbered in a first column `draw`. If the rows are
        too many for one response, the call waits for a job.

        Args:
            model: The model.
            rows: Rows to complete.
            draws: Number of imputations.
            seed: Seed of the imputations.
            columns: Columns to impute; missing cells of others stay, and are integrated out.
            keep_missing: Columns in which missing is a value of its own: these cells stay missing,
                and others are imputed given that. Default: as in the schema.
            encoding: Encoding of rows in a text file, as for `upload`.
            format, to, on_progress: As for `sample`.
        """
        model_id = model_id_of(model)
        lists = {"columns": columns, "keep_missing": keep_missing}
        named = {name: listed(names) for name, names in lists.items() if names is not None}
        if is_database(rows):
            tables = wanted_database(format, to, None)
            asked: Document = {"seed": seed, "format": tables.format} | of_table(encoding) | named
            asked |= {} if draws == 1 else {"draws": draws}  # which the service refuses
            body = database_body(rows)
            return self._table(model_id, "imputations", body, asked, tables, on_progress)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, table_format(like))
        body = rows_body(rows, self._date_formats(model_id))
        params = (
            {"draws": draws, "seed": seed, "format": wanted.format} | of_table(encoding) | named
        )
        return self._table(model_id, "imputations", body, params, wanted, on_progress)

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
        to: Place | None = None,
    ) -> Document | bytes | Path:
        """Returns a dependency map: a document (`json`), or the bytes of a picture (`png`, `svg`).

        Args:
            model: The model.
            kind: Kind of the map.
            row: Cells by column, for the local map at a row; `kind` is then ignored.
            z: A latent vector, for the local map there.
            seed: Seed of the samples.
            order: Kind of map whose column order is used, so that pictures can be compared.
                Default: the map's own. Not for local maps.
            format: json, png or svg. Default: the extension of `to`, else json.
            to: File to save the map in; its path is returned.
        """
        format = _drawn_format(format, to)
        path = f"/v1/models/{model_id_of(model)}/dependencies"
        if row is None and z is None:
            params: dict[str, Any] = {"kind": kind, "seed": seed, "format": format}
            params |= {} if order is None else {"order": order}
            return self._drawn(Call("GET", path, params=params), format, to)
        formats = self._date_formats(model_id_of(model))
        cells = None if row is None else row_documents([row], formats)[0]
        given = {"row": cells, "z": z if z is None else list(z)}
        body = {"seed": seed} | {name: value for name, value in given.items() if value is not None}
        call = Call("POST", path, params={"format": format}, body=lambda _: {"json": body})
        return self._drawn(call, format, to)

    def encode(
        self,
        model: Resource,
        rows: Rows,
        *,
        encoding: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Returns posterior means and deviations of z for rows, in a form as for `sample`.

        If the rows are too many for one response, the call waits for a job.
        """
        model_id = model_id_of(model)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        body = rows_body(rows, self._date_formats(model_id))
        params = {"format": wanted.format} | of_table(encoding)
        return self._table(model_id, "encodings", body, params, wanted, on_progress)

    def manifold(
        self,
        model: Resource,
        *,
        steps: int = 15,
        format: str | None = None,
        to: Place | None = None,
    ) -> Document | bytes | Path:
        """Returns the decoder on a grid of a two-dimensional prior: a document, or a picture's
        bytes."""
        format = _drawn_format(format, to)
        params = {"steps": steps, "format": format}
        return self._drawn(
            Call("GET", f"/v1/models/{model_id_of(model)}/manifold", params=params), format, to
        )

    def delete(self, resource: Resource, *, cascade: bool = False) -> None:
        """Deletes a dataset, a model, or a result, by id or by document.

        Args:
            resource: The resource.
            cascade: For a dataset, whether to delete its models with all their results.
        """
        params = {"cascade": "true"} if cascade else {}
        self._connection.request(Call("DELETE", place_of(any_id_of(resource)), params=params))

    def _bound(self, document: Document) -> Any:
        return bind(document, self)

    def _drawn(self, call: Call, format: str, to: Place | None) -> Document | bytes | Path:
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
        call = Call("GET", f"{place_of(result['id'])}/content")
        seed = result["request"].get("seed")
        return wanted.take(lambda file: self._connection.download(call, file), formats, seed)

    def _date_formats(self, model_id: str) -> Callable[[], dict[str, str]]:
        """Returns a function that requests the date formats of a model's table by column, once."""
        return cache(lambda: date_formats(self.model(model_id)["schema"]))


def _drawn_format(format: str | None, to: Place | None) -> str:
    if format is not None:
        return format
    return "json" if to is None else format_by_ending(to, _MAPS)
